//! The metadata of a runtime patch is typed; its pod specs are kept as written.

use serde_json::json;
use trainyard_api::{Inputs, RuntimePatch, TrainJob};

fn patches(list: &str) -> Vec<RuntimePatch> {
    let text = format!(
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {{name: job}}\n\
         spec: {{runtimeRef: {{name: torch}}, runtimePatches: {list}}}"
    );
    let inputs = Inputs::read_text("job.yaml", &text).into_result().unwrap();
    TrainJob::read(&inputs.objects[0]).unwrap().runtime_patches
}

#[test]
fn metadata_is_typed_and_pod_specs_stay_as_written() {
    let read = patches(
        r#"[{"manager": "example.com/a", "time": "2026-05-04T03:02:01Z", "trainingRuntimeSpec": {"template": {
            "metadata": {"labels": {"z": "1", "a": "2"}, "annotations": {"b": "3"}},
            "spec": {"replicatedJobs": [{"name": "node", "template": {
                "metadata": {"labels": {"c": "4"}},
                "spec": {"template": {"metadata": {"annotations": {"d": "5"}}, "spec": {"anything": [1]}}}}}]}}}},
          {"manager": "example.com/b"}]"#,
    );
    let patch = &read[0];
    assert_eq!(
        (patch.manager.as_str(), patch.time.as_deref()),
        ("example.com/a", Some("2026-05-04T03:02:01Z"))
    );
    let labels: Vec<_> = patch.labels.iter().collect();
    assert_eq!(labels[0], (&"z".to_owned(), &"1".to_owned()));
    assert_eq!(patch.annotations["b"], "3");
    let spec = patch.spec.as_ref().unwrap();
    let pod = "/replicatedJobs/0/template/spec/template";
    assert_eq!(
        spec.pointer(pod).unwrap(),
        &json!({"metadata": {"annotations": {"d": "5"}}, "spec": {"anything": [1]}})
    );
    assert_eq!(
        patch.path.to_string(),
        "spec.runtimePatches[0].trainingRuntimeSpec.template"
    );
    assert_eq!(
        (read[1].manager.as_str(), &read[1].spec),
        ("example.com/b", &None)
    );
}

#[test]
fn absent_patches_are_an_empty_list() {
    assert_eq!(patches("[]"), []);
    assert_eq!(patches("null"), []);
}
