//! `trainyard validate` refuses the pods of the table `tests/cluster/pods.yaml` that an API server refuses when JobSet creates the Jobs, names
//! their fields in the runtime or the TrainJob, and accepts the others. `tests/cluster/tests/pods_are_refused_as_in_the_table.rs` compares
//! the table with a real API server.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use trainyard_cluster::PodRow;

use crate::common::{stderr, trainyard_with_input};

/// Returns a runtime with these pods and this Job, and a TrainJob of it.
fn objects(name: &str, pod: &Value, job: &Map<String, Value>) -> String {
    let mut spec = job.clone();
    spec.insert("template".to_owned(), json!({"spec": pod}));
    let job = json!({"name": "node", "template": {"spec": spec}});
    let runtime = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime", "metadata": {"name": name},
        "spec": {"template": {"spec": {"replicatedJobs": [job]}}},
    });
    let job = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": name},
        "spec": {"runtimeRef": {"name": name}},
    });
    format!("{runtime}\n---\n{job}\n---\n")
}

#[test]
fn every_pod_of_the_table_has_the_recorded_verdict() {
    let rows = PodRow::read_all().unwrap();
    let input: String = rows
        .iter()
        .map(|row| objects(&row.name, &row.pod, &row.job))
        .collect();
    let output = trainyard_with_input(&input, &["validate", "-f", "-"]);
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let job = "spec.template.spec.replicatedJobs[0].template.spec.";
    for line in stderr(&output).lines() {
        let Some((_, error)) = line.split_once(": ClusterTrainingRuntime ") else {
            panic!("{line}");
        };
        let (name, error) = error.split_once(": ").unwrap();
        let field = error.strip_prefix(job).unwrap_or(error);
        let field = field.split_once(": ").unwrap().0;
        let fields = found.entry(name.to_owned()).or_default();
        fields.insert(field.to_owned());
    }
    for row in rows {
        let found = found.remove(&row.name).unwrap_or_default();
        // The schema of the runtime refuses some of them too. It names the map or list instead of the entry, and the item instead of the
        // key that is there twice.
        let is_same = |found: &String, wanted: &String| {
            let rest = wanted.strip_prefix(found.as_str());
            rest.is_some_and(|rest| matches!(rest, "" | ".mountPath") || rest.starts_with('['))
        };
        let all = row.refused.iter();
        let mut all = all.map(|wanted| found.iter().any(|found| is_same(found, wanted)));
        let mut others = found.iter();
        let others = others.any(|found| !row.refused.iter().any(|wanted| is_same(found, wanted)));
        assert!(all.all(|found| found) && !others, "{}: {found:?}", row.name);
    }
    assert!(found.is_empty(), "{found:?}");
}

/// Returns the errors of a TrainJob with this `trainer`, whose runtime has GPUs.
fn refused(trainer: &Value, patch: &Value) -> String {
    let pod = json!({"containers": [{"name": "node", "image": "a"}]});
    let both = objects("gpus", &pod, &Map::new());
    let mut documents: Vec<Value> = both
        .split("\n---\n")
        .filter(|text| !text.is_empty())
        .map(|text| serde_json::from_str(text).unwrap())
        .collect();
    documents[0]["spec"]["mlPolicy"] = json!({"numNodes": 1});
    documents[0]["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["metadata"] =
        json!({"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}});
    documents[1]["spec"]["trainer"] = trainer.clone();
    let job = json!({"name": "node", "template": {"spec": {"template": {"spec": patch}}}});
    documents[1]["spec"]["runtimePatches"] = json!([{
        "manager": "a.example.com/b",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}},
    }]);
    let input: Vec<_> = documents.iter().map(Value::to_string).collect();
    let output = trainyard_with_input(&input.join("\n---\n"), &["validate", "-f", "-"]);
    assert_eq!(output.status.code(), Some(1));
    stderr(&output)
}

#[test]
fn errors_name_the_field_of_the_train_job_that_set_the_value() {
    let trainer = json!({"resourcesPerNode": {"requests": {"nvidia.com/gpu": 8}}});
    let error = refused(&trainer, &json!({}));
    assert!(
        error.contains("TrainJob default/gpus: spec.trainer.resourcesPerNode.requests[nvidia.com/gpu]: is requested without a limit, but cannot be overcommitted; set the same amount in `limits`"),
        "{error}"
    );
    let trainer = json!({"env": [{"name": "A=B", "value": "x"}]});
    let error = refused(&trainer, &json!({}));
    assert!(
        error.contains("TrainJob default/gpus: spec.trainer.env[0]"),
        "{error}"
    );
    let patch = json!({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]});
    let error = refused(&json!({}), &patch);
    assert!(
        error.contains("TrainJob default/gpus: spec.runtimePatches[0]."),
        "{error}"
    );
    assert!(error.contains("tolerations"), "{error}");
}
