//! Each method answers with what the TrainJob, its record, its configuration and the lookups contain, and uses as much of the limits of the call
//! as it takes and gives.
//!
//! `methods_answer_what_is_there.txt` has what all methods in the table of [`METHODS`] answer and use. `UPDATE=1` writes it again; review the
//! diff.

use std::{env, fs, path::Path, sync::Arc};

use serde_json::{Value, json};
use trainyard_model::{
    call::{Call, CallInputs},
    contract::handle,
    job::{Job, RuntimeRef},
    plugin::Phase,
    record::{Datum, Field, Record},
    value::Dependency,
};

use crate::common::{
    call, everything, job, lookups, manifest,
    methods::{METHODS, Method, On},
    plugin, record_with,
};

const FILE: &str = "tests/methods_answer_what_is_there.txt";

/// The record of the other tests, with a value in each field that a method of the table reads.
fn full_record() -> Record {
    let json = |value: Value| Datum::from(value);
    let mut record = record_with(&[
        (Field::Args, "", ["-v".to_owned()].as_slice().into()),
        (Field::WorkingDir, "", "/work".into()),
        (Field::RestartPolicy, "", "Always".into()),
        (Field::Limits, "cpu", "6".into()),
        (
            Field::ResourceClaimUses,
            "gpu",
            json(json!({"name": "gpu"})),
        ),
        (Field::Capabilities, "IPC_LOCK", "IPC_LOCK".into()),
        (
            Field::ContainerRaw,
            "readinessProbe",
            json(json!({"periodSeconds": 5})),
        ),
    ]);
    record
        .fields
        .load(Field::Annotations, "x", "of the record".into());
    let node = &mut record.pod_sets[0];
    node.depends_on.push(Dependency {
        pod_set: "launcher".to_owned(),
        status: "Ready".to_owned(),
    });
    node.replicas = 2;
    let claim = json!({"name": "gpu", "resourceClaimTemplateName": "four"});
    for (field, key, value) in [
        (Field::BackoffLimit, "", Datum::Integer(3)),
        (Field::ResourceClaims, "gpu", json(claim)),
        (Field::PodAnnotations, "x", "of the pods".into()),
        (Field::NodeSelector, "x", "of the machines".into()),
        (Field::PriorityClass, "", "high".into()),
        (Field::SchedulerName, "", "gangs".into()),
        (Field::DnsSearches, "ml.svc", "ml.svc".into()),
        (Field::FsGroup, "", Datum::Integer(1000)),
        (Field::PodRaw, "hostNetwork", json(true.into())),
    ] {
        node.fields.load(field, key, value);
    }
    record
}

fn full_job() -> Arc<Job> {
    let texts = |of: &str| [("x".to_owned(), of.to_owned())].into();
    Arc::new(Job {
        suspended: true,
        labels: texts("a label"),
        annotations: texts("an annotation"),
        runtime: RuntimeRef {
            kind: "TrainingRuntime".into(),
            name: "torch".into(),
            labels: texts("a label of the runtime"),
            annotations: texts("an annotation of the runtime"),
        },
        processes_per_node: Some(8),
        ..(*job()).clone()
    })
}

fn answer(method: &Method) -> String {
    let record = full_record();
    let inputs = CallInputs {
        plugin: plugin(&manifest("p", &method.all_claims())),
        rank: 1,
        config: Arc::new(json!({"other": {}, "list": ["text", 7, true, {"key": null}]})),
        job: full_job(),
        base: Arc::new(record.clone()),
        lookups: lookups(),
        kept: Arc::new([("a".to_owned(), "kept".into())].into()),
    };
    let mut call = Call::new(method.phase, record, inputs);
    let answer = (method.answer)(&mut call, On::Record).unwrap_or_else(|fault| fault.to_string());
    // With what it takes to get the handle that it is called on.
    let used = call.meter().used().into_iter();
    let used = used.filter(|(_, used, _)| *used > 0);
    let used: Vec<_> = used
        .map(|(limit, used, _)| format!("{limit} {used}"))
        .collect();
    if used.is_empty() {
        return answer;
    }
    format!("{answer}; {}", used.join(", "))
}

#[test]
fn only_suspended_jobs_are_suspended() {
    let mut call = call(Phase::Transform, &everything());
    assert_eq!(call.job_suspended(handle::Job(0)), Ok(false));
}

#[test]
fn every_method_answers_what_is_there() {
    let mut found = String::new();
    for method in METHODS {
        let answer = answer(method);
        found += &format!("{}({}): {answer}\n", method.name, method.arguments);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    if env::var_os("UPDATE").is_some_and(|value| value == "1") {
        fs::write(&path, &found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}
