//! Annotations of a JobSet that only the controller writes are ignored in runtimes and patches, with a warning at their field.

use serde_json::json;
use trainyard_render::InputObject;

use crate::common::{Scripted, catalog, render_job, renderer};

#[test]
fn only_other_annotations_are_rendered() {
    let catalog = catalog(
        r#"
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: runtime}
spec:
  template:
    metadata: {annotations: {trainyard.dev/started: "true", team: ml}}
    spec:
      replicatedJobs:
      - name: node
        template: {spec: {template: {spec: {containers: [{name: node, image: i}]}}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: job}
spec:
  runtimeRef: {name: runtime}
  runtimePatches:
  - manager: example.com/a
    trainingRuntimeSpec: {template: {metadata: {labels: {trainyard.dev/inputs: a}, annotations: {trainyard.dev/inputs: a, cost: low}}}}
"#,
    );
    let renderer = renderer(&[] as &[Scripted]).unwrap();
    let rendered = render_job(&renderer, &catalog.jobs[0]).unwrap();
    let metadata = &rendered.job_set["metadata"];
    assert_eq!(
        metadata["annotations"],
        json!({"team": "ml", "cost": "low"})
    );
    assert_eq!(metadata["labels"], json!({"trainyard.dev/inputs": "a"}));
    let warnings: Vec<_> = rendered.warnings.iter().collect();
    let found: Vec<_> = warnings
        .iter()
        .map(|warning| (warning.about, warning.field.as_deref().unwrap()))
        .collect();
    let of_patch = "spec.runtimePatches[0].trainingRuntimeSpec.template.metadata.annotations[trainyard.dev/inputs]";
    let of_runtime = "spec.template.metadata.annotations[trainyard.dev/started]";
    assert_eq!(
        found,
        [
            (InputObject::TrainJob, of_patch),
            (InputObject::Runtime, of_runtime)
        ]
    );
    assert!(warnings[0].message.contains("only the controller writes"));
}
