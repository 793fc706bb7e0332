//! TrainJobs and runtimes: what is admitted is admitted again without a change, reads back from YAML, and is read without a panic. Patches
//! that are merged twice change nothing more than once, and merging keeps the items of the runtime in their order.

use std::sync::LazyLock;

use serde_json::{Value, json};
use trainyard_api::{
    Admitted, Object, Source,
    merge::{fix, strategic},
    yaml,
};
use trainyard_schema::{Admission, documents::Kind};

use crate::generator::Generator;

static ADMISSION: LazyLock<Admission> = LazyLock::new(Admission::default);

static TRAIN_JOB: LazyLock<Value> = LazyLock::new(|| Kind::TrainJob.schema().unwrap());
static RUNTIME: LazyLock<Value> = LazyLock::new(|| Kind::ClusterTrainingRuntime.schema().unwrap());

/// The lists of a pod spec and of a container that have a merge key.
const POD_LISTS: [(&str, &str); 6] = [
    ("volumes", "name"),
    ("initContainers", "name"),
    ("containers", "name"),
    ("imagePullSecrets", "name"),
    ("schedulingGates", "name"),
    ("resourceClaims", "name"),
];

/// Checks a TrainJob and a runtime.
pub fn check(bytes: &[u8]) -> bool {
    let mut generator = Generator::new(bytes);
    let runtime = object(&mut generator, &RUNTIME, "ClusterTrainingRuntime");
    let job = object(&mut generator, &TRAIN_JOB, "TrainJob");
    let runtime = admit(runtime);
    let job = admit(job);
    let (Some(mut runtime), Some(mut job)) = (runtime, job) else {
        return false;
    };
    let template = runtime.object.value.pointer("/spec/template/spec").cloned();
    let patches = job.object.value.pointer("/spec/runtimePatches").cloned();
    if runtime.runtime().is_none() {
        assert!(!runtime.errors.is_empty());
    }
    if job.train_job().is_none() {
        assert!(!job.errors.is_empty());
    }
    let patches = patches
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    for patch in patches.filter_map(|patch| patch.pointer("/trainingRuntimeSpec/template/spec")) {
        if let Some(template) = &template {
            check_merge(template, patch);
        }
    }
    true
}

fn object(generator: &mut Generator<'_>, schema: &Value, kind: &str) -> Value {
    let mut object = generator.value(schema);
    if let Some(object) = object.as_object_mut() {
        object.insert(
            "apiVersion".to_owned(),
            json!("trainer.kubeflow.org/v1alpha1"),
        );
        object.insert("kind".to_owned(), json!(kind));
        let metadata = match generator.byte() {
            0xf0..=0xff => generator.anything(3),
            _ => json!({"name": "a"}),
        };
        object.insert("metadata".to_owned(), metadata);
    }
    object
}

/// Returns the object as it is stored; `None` if it is refused.
fn admit(value: Value) -> Option<Admitted> {
    let read = |value| Object::read(Source::new("fuzz.yaml", 1), value);
    let admitted = ADMISSION.admit(read(value).ok()?, None, "default").unwrap();
    if !admitted.errors.is_empty() {
        return None;
    }
    let stored = admitted.object.value.clone();
    let again = ADMISSION
        .admit(read(stored.clone()).unwrap(), None, "default")
        .unwrap();
    assert_eq!(again.errors, [], "{stored}");
    assert_eq!(again.object.value.to_string(), stored.to_string());
    let text = yaml::write(&stored);
    let documents = yaml::read(&text);
    assert_eq!(documents.len(), 1, "{text}");
    assert_eq!(documents[0].as_ref().unwrap().value, stored, "{text}");
    Some(admitted)
}

fn check_merge(base: &Value, patch: &Value) {
    for nothing in [
        json!({}),
        json!({"replicatedJobs": []}),
        json!({"replicatedJobs": null}),
    ] {
        let merged = strategic(base, &nothing).unwrap();
        assert_eq!(&merged, base);
        assert_eq!(fix(base, &nothing, merged).to_string(), base.to_string());
    }
    let Ok(once) = strategic(base, patch) else {
        return;
    };
    assert_eq!(
        strategic(&once, patch).unwrap(),
        once,
        "{base} with {patch}"
    );
    let fixed = fix(base, patch, once);
    let again = fix(&fixed, patch, strategic(&fixed, patch).unwrap());
    assert_eq!(again, fixed, "{base} with {patch}");
    begins_with(base, &fixed, &[("replicatedJobs", "name")]);
    for job in items(base, "replicatedJobs") {
        let same = items(&fixed, "replicatedJobs").find(|other| other["name"] == job["name"]);
        let pod = |job: &Value| job.pointer("/template/spec/template/spec").cloned();
        if let (Some(before), Some(after)) = (pod(job), same.and_then(pod)) {
            begins_with(&before, &after, &POD_LISTS);
        }
    }
}

/// Checks that keyed lists begin with the items of the base, in their order.
fn begins_with(base: &Value, merged: &Value, lists: &[(&str, &str)]) {
    for (list, key) in lists {
        let keys = |value: &Value| {
            items(value, list)
                .map(|item| item[*key].clone())
                .collect::<Vec<_>>()
        };
        let (before, after) = (keys(base), keys(merged));
        assert!(
            after.starts_with(&before),
            "{list}: {before:?} became {after:?}"
        );
    }
}

fn items<'v>(value: &'v Value, list: &str) -> impl Iterator<Item = &'v Value> {
    value
        .get(list)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}
