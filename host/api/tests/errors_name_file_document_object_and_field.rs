//! Every error says where it is: file, document, object and field path; all errors of a run come together.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

use trainyard_api::{Inputs, Runtime, TrainJob};

/// Everything that is wrong with a text, as the command line does it.
fn errors(text: &str) -> Vec<String> {
    let inputs = match Inputs::read_text("jobs.yaml", text).into_result() {
        Ok(inputs) => inputs,
        Err(errors) => return errors.into_iter().map(|error| error.to_string()).collect(),
    };
    let typed = |object| match TrainJob::is(object) {
        true => TrainJob::read(object)
            .map(|_| ())
            .map_err(|errors| object.refuse(errors)),
        false => Runtime::read(object)
            .map(|_| ())
            .map_err(|errors| object.refuse(errors)),
    };
    inputs
        .objects
        .iter()
        .filter_map(|object| typed(object).err())
        .flatten()
        .map(|error| error.to_string())
        .collect()
}

#[test]
fn documents_that_are_no_objects() {
    let text = "- a
---
just text
---
apiVersion: v1
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {on: y}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: [a]}
---
{apiVersion: a/b/c, kind: 5, metadata: {generateName: a-}}
---
a: [
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: fine}}
---
{apiVersion: v1, kind: List, items: [5]}
---
{replicas: 1}
";
    let wanted = [
        "jobs.yaml: document 1: is no Kubernetes object: it is a list, not a mapping with apiVersion, kind and metadata",
        "jobs.yaml: document 2: is no Kubernetes object: it is the string \"just text\", not a mapping with apiVersion, kind and \
         metadata",
        "jobs.yaml: document 3: kind: is required",
        "jobs.yaml: document 3: metadata.name: is required",
        "jobs.yaml: document 4: ConfigMap a: metadata.labels[true]: must be a string, is the boolean true: quote it",
        "jobs.yaml: document 5: metadata: must be an object, is a list",
        "jobs.yaml: document 6: apiVersion: must be a version, or a group and a version with / between them, is \"a/b/c\"",
        "jobs.yaml: document 6: kind: must be a string, is the integer 5: quote it",
        "jobs.yaml: document 6: metadata.name: is required",
        "jobs.yaml: document 7: line 13, column 5: this is not YAML: ",
        "jobs.yaml: document 9: items[0]: is no Kubernetes object: it is the integer 5, not a mapping with apiVersion, kind and \
         metadata",
        "jobs.yaml: document 10: is no Kubernetes object: it is a mapping without apiVersion and kind, not a mapping",
    ];
    let found = errors(text);
    assert_eq!(found.len(), wanted.len(), "{found:#?}");
    for (found, wanted) in found.iter().zip(wanted) {
        assert!(found.starts_with(wanted), "found  {found}\nwanted {wanted}");
    }
}

#[test]
fn all_wrong_fields_of_a_train_job() {
    let text = "apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: bert, namespace: ml}
spec:
  runtimeRef: {name: torch, kind: Runtime, apiGroup: example.com}
  initializer:
    dataset: {storageUri: no-scheme, secretRef: {}}
    model: {storageURI: hf://a/b}
  trainer:
    numNodes: two
    numProcPerNode: 0
    command: bash
    args: [-c, 5, ~]
    image: {name: x}
    resourcesPerNode: 8
    env:
    - {name: A, value: 1}
    - {value: x}
    - {name: A, value: x, valueFrom: {fieldRef: {fieldPath: a}}}
    - text
    numNode: 3
    completelyElse: 3
  suspend: 'yes'
  activeDeadlineSeconds: 0
  managedBy: me
  runtimePatches:
  - {}
  - manager: a
    time: 5
    trainingRuntimeSpec:
      template:
        metadata: {name: x, labels: {a: 1}}
        spec:
          ttlSecondsAfterFinished: 5
          replicatedJobs:
          - replicas: 2
            name: node
            template:
              metadata: {namespace: x}
              spec: {parallelism: 2, template: {metadata: {finalizers: []}, spec: []}}
          - {name: node}
  - {manager: a}
  podTemplateOverrides: [{}]
  podSpecOverrides: [{}]
  labels: {a: b}
  annotations: {a: b}
";
    let wanted = [
        "spec.podTemplateOverrides: not supported yet: remove it",
        "spec.podSpecOverrides: not supported yet: remove it",
        "spec.labels: not supported yet: remove it",
        "spec.annotations: not supported yet: remove it",
        "spec.runtimeRef.apiGroup: must be one of trainer.kubeflow.org, is \"example.com\"",
        "spec.runtimeRef.kind: must be one of ClusterTrainingRuntime, TrainingRuntime, is \"Runtime\"",
        "spec.initializer.dataset.storageUri: must be a URI with a scheme, such as hf://owner/name, is \"no-scheme\"",
        "spec.initializer.dataset.secretRef.name: is required",
        "spec.initializer.model.storageURI: unknown field: did you mean storageUri?",
        "spec.trainer.image: must be a string, is an object",
        "spec.trainer.command: must be a list, is the string \"bash\"",
        "spec.trainer.args[1]: must be a string, is the integer 5: quote it",
        "spec.trainer.args[2]: must be a string, is null",
        "spec.trainer.env[0].value: must be a string, is the integer 1: quote it",
        "spec.trainer.env[1].name: is required",
        "spec.trainer.env[2].valueFrom: may not be set beside value",
        "spec.trainer.env[3]: must be an object, is the string \"text\"",
        "spec.trainer.env[2]: the name \"A\" is here a second time: names are unique in this list",
        "spec.trainer.numNodes: must be an integer, is the string \"two\"",
        "spec.trainer.resourcesPerNode: must be an object, is the integer 8",
        "spec.trainer.numProcPerNode: must be from 1 to 2147483647, is 0",
        "spec.trainer.numNode: unknown field: did you mean numNodes?",
        "spec.trainer.completelyElse: unknown field; known are image, command, args, env, numNodes, resourcesPerNode, \
         numProcPerNode",
        "spec.runtimePatches[0].manager: is required",
        "spec.runtimePatches[1].time: must be a string, is the integer 5: quote it",
        "spec.runtimePatches[1].trainingRuntimeSpec.template.metadata.labels[a]: must be a string, is the integer 1: quote it",
        "spec.runtimePatches[1].trainingRuntimeSpec.template.metadata.name: unknown field; known are labels, annotations",
        "spec.runtimePatches[1].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.metadata.namespace: unknown \
         field; known are labels, annotations",
        "spec.runtimePatches[1].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template.metadata.finalizers: \
         unknown field; known are labels, annotations",
        "spec.runtimePatches[1].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template.spec: must be an \
         object, is a list",
        "spec.runtimePatches[1].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.parallelism: unknown field; \
         known are template",
        "spec.runtimePatches[1].trainingRuntimeSpec.template.spec.replicatedJobs[0].replicas: unknown field; known are \
         template, name",
        "spec.runtimePatches[1].trainingRuntimeSpec.template.spec.replicatedJobs[1]: the name \"node\" is here a second time: \
         names are unique in this list",
        "spec.runtimePatches[1].trainingRuntimeSpec.template.spec.ttlSecondsAfterFinished: unknown field; known are \
         replicatedJobs",
        "spec.runtimePatches[2]: the name \"a\" is here a second time: names are unique in this list",
        "spec.suspend: must be true or false, is the string \"yes\"",
        "spec.activeDeadlineSeconds: must be at least 1, is 0",
        "spec.managedBy: must be one of trainer.kubeflow.org/trainjob-controller, kueue.x-k8s.io/multikueue, is \"me\"",
    ];
    let wanted: Vec<_> = wanted
        .iter()
        .map(|wanted| format!("jobs.yaml: document 1: TrainJob ml/bert: {wanted}"))
        .collect();
    assert_eq!(errors(text), wanted);
}

#[test]
fn all_wrong_fields_of_a_runtime() {
    let text = "# none
---
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata:
  name: torch
  annotations: {trainyard.dev/plugins: '[{\"name\": \"a\", \"config\": 5}, {\"name\": \"a\"}]'}
spec:
  mlPolicy:
    numNodes: 0
    torch: {}
    mpi: {}
    plugin: {name: x}
    torhc: {}
  plugins: [{config: {}}, {name: b}, {name: b, extra: 1}]
  podGroupPolicy: {coscheduling: {}}
  template:
    metadata: {labels: {a: 1}, name: x}
    spec: []
  other: 1
---
{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainingRuntime, metadata: {name: empty, namespace: ml}, spec: {}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: json, annotations: {trainyard.dev/plugins: '[{]'}}
spec: {template: {spec: {}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: two, annotations: {trainyard.dev/plugins: '[{\"name\": \"a\"}]'}}
spec: {plugins: [{name: b}], template: {spec: {}}}
";
    let wanted = [
        "2: ClusterTrainingRuntime torch: spec.podGroupPolicy: not supported yet: remove it",
        "2: ClusterTrainingRuntime torch: spec.mlPolicy.numNodes: must be from 1 to 2147483647, is 0",
        "2: ClusterTrainingRuntime torch: spec.mlPolicy: may have one of torch, mpi, flux, jax, xgboost, plugin, has torch and mpi \
         and plugin",
        "2: ClusterTrainingRuntime torch: spec.mlPolicy.torhc: unknown field: did you mean torch?",
        "2: ClusterTrainingRuntime torch: spec.plugins[0].name: is required",
        "2: ClusterTrainingRuntime torch: spec.plugins[2].extra: unknown field; known are name, config",
        "2: ClusterTrainingRuntime torch: spec.plugins[2]: the name \"b\" is here a second time: names are unique in this list",
        "2: ClusterTrainingRuntime torch: spec.template.metadata.labels[a]: must be a string, is the integer 1: quote it",
        "2: ClusterTrainingRuntime torch: spec.template.metadata.name: unknown field; known are labels, annotations",
        "2: ClusterTrainingRuntime torch: spec.template.spec: must be an object, is a list",
        "2: ClusterTrainingRuntime torch: spec.other: unknown field; known are podGroupPolicy, template, mlPolicy, plugins",
        "2: ClusterTrainingRuntime torch: metadata.annotations[trainyard.dev/plugins][0].config: must be an object, is the integer 5",
        "2: ClusterTrainingRuntime torch: metadata.annotations[trainyard.dev/plugins][1]: the name \"a\" is here a second time: \
         names are unique in this list",
        "2: ClusterTrainingRuntime torch: metadata.annotations[trainyard.dev/plugins]: differs from spec.plugins: set one of the two",
        "3: TrainingRuntime ml/empty: spec.template: is required",
        "4: TrainingRuntime json: metadata.annotations[trainyard.dev/plugins]: must be JSON: line 1, column 3: this is not JSON: key \
         must be a string",
        "5: TrainingRuntime two: metadata.annotations[trainyard.dev/plugins]: differs from spec.plugins: set one of the two",
    ];
    let wanted: Vec<_> = wanted
        .iter()
        .map(|wanted| format!("jobs.yaml: document {wanted}"))
        .collect();
    assert_eq!(errors(text), wanted);
}

#[test]
fn names_that_make_no_pods_are_refused() {
    let job = |name: &str| {
        format!(
            "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {{name: \"{name}\"}}\n\
             spec: {{runtimeRef: {{name: torch}}}}\n"
        )
    };
    for good in ["a", "a-1", "a1", &"a".repeat(63)] {
        assert_eq!(errors(&job(good)), Vec::<String>::new(), "{good}");
    }
    for bad in ["1a", "-a", "a-", "A", "a.b", "a_b", "é", &"a".repeat(64)] {
        let found = errors(&job(bad));
        assert_eq!(found.len(), 1, "{bad}: {found:?}");
        assert!(found[0].contains(": metadata.name: "), "{}", found[0]);
    }
}
