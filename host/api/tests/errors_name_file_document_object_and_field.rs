//! Every error names the file, line, object and field path, and all errors of a run are reported together.

use trainyard_api::{Inputs, Runtime, TrainJob};

/// All errors of a text, as the command line reports them.
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
fn documents_that_are_not_objects_are_reported() {
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
        "jobs.yaml:1: is not a Kubernetes object, but a list; an object has apiVersion, kind and metadata",
        "jobs.yaml:3: is not a Kubernetes object, but the string \"just text\"; an object has apiVersion, kind and metadata",
        "jobs.yaml:5: kind: is required",
        "jobs.yaml:5: metadata.name: is required",
        "jobs.yaml:7: ConfigMap a: metadata.labels[true]: must be a string; found the boolean true; quote it",
        "jobs.yaml:9: metadata: must be an object; found a list",
        "jobs.yaml:11: apiVersion: must be a version, or a group and a version with / between them; found \"a/b/c\"",
        "jobs.yaml:11: kind: must be a string; found the integer 5; quote it: \"5\"",
        "jobs.yaml:11: metadata.name: is required",
        "jobs.yaml: document 7: line 13, column 5: invalid YAML: ",
        "jobs.yaml:17: items[0]: is not a Kubernetes object, but the integer 5; an object has apiVersion, kind and metadata",
        "jobs.yaml:19: is not a Kubernetes object, but a mapping without apiVersion and kind; an object",
    ];
    let found = errors(text);
    assert_eq!(found.len(), wanted.len(), "{found:#?}");
    for (found, wanted) in found.iter().zip(wanted) {
        assert!(found.starts_with(wanted), "found  {found}\nwanted {wanted}");
    }
}

#[test]
fn train_job_errors_beyond_the_schema_are_reported() {
    let text = "apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: bert, namespace: ml}
spec:
  runtimeRef: {name: torch, kind: Runtime, apiGroup: example.com}
  initializer:
    dataset: {secretRef: {}}
  trainer:
    env:
    - {value: b, name: ''}
    - {name: A, value: x, valueFrom: {fieldRef: {fieldPath: a}}}
  podTemplateOverrides: [{}]
  podSpecOverrides: [{}]
  labels: {a: b}
  annotations: {a: b}
";
    let wanted = [
        (
            12,
            "spec.podTemplateOverrides: is not supported yet; remove it",
        ),
        (13, "spec.podSpecOverrides: is not supported yet; remove it"),
        (14, "spec.labels: is not supported yet; remove it"),
        (15, "spec.annotations: is not supported yet; remove it"),
        (
            5,
            "spec.runtimeRef.apiGroup: must be one of trainer.kubeflow.org; found \"example.com\"",
        ),
        (
            5,
            "spec.runtimeRef.kind: must be one of ClusterTrainingRuntime, TrainingRuntime; found \"Runtime\"",
        ),
        (7, "spec.initializer.dataset.secretRef.name: is required"),
        (10, "spec.trainer.env[0].name: is required"),
        (
            11,
            "spec.trainer.env[1].valueFrom: must not be set together with value; remove one of the two",
        ),
    ];
    assert_eq!(errors(text), of_bert(&wanted));
}

/// Errors have the line of their field, or of its parent if the field is absent.
fn of_bert(wanted: &[(usize, &str)]) -> Vec<String> {
    let error =
        |(line, wanted): &(usize, &str)| format!("jobs.yaml:{line}: TrainJob ml/bert: {wanted}");
    wanted.iter().map(error).collect()
}

/// A value of the wrong type is never treated as absent, even though a schema should have refused it.
#[test]
fn wrong_types_in_a_train_job_are_reported() {
    for (spec, error) in [
        ("{}", "spec: missing field `runtimeRef`"),
        ("{runtimeRef: {}}", "spec.runtimeRef: missing field `name`"),
        (
            "{runtimeRef: {name: a}, trainer: {numNodes: two}}",
            "spec.trainer.numNodes: invalid type: string \"two\", expected a nonzero u32",
        ),
        (
            "{runtimeRef: {name: a}, trainer: {numNodes: 0}}",
            "spec.trainer.numNodes: invalid value: integer `0`, expected a nonzero u32",
        ),
        (
            "{runtimeRef: {name: a}, trainer: {numProcPerNode: 5000000000}}",
            "spec.trainer.numProcPerNode: invalid value: integer `5000000000`, expected a nonzero u32",
        ),
        (
            "{runtimeRef: {name: a}, trainer: {args: [-c, 5]}}",
            "spec.trainer.args[1]: invalid type: integer `5`, expected a string",
        ),
        (
            "{runtimeRef: {name: a}, trainer: {image: {name: x}}}",
            "spec.trainer.image: invalid type: map, expected a string",
        ),
        (
            "{runtimeRef: {name: a}, trainer: {env: [{name: A, value: 1}]}}",
            "spec.trainer.env[0].value: invalid type: integer `1`, expected a string",
        ),
        (
            "{runtimeRef: {name: a}, suspend: 'yes'}",
            "spec.suspend: invalid type: string \"yes\", expected a boolean",
        ),
        (
            "{runtimeRef: {name: a}, activeDeadlineSeconds: a}",
            "spec.activeDeadlineSeconds: invalid type: string \"a\", expected i64",
        ),
        (
            "{runtimeRef: {name: a}, runtimePatches: [{manager: a, trainingRuntimeSpec: {template: {metadata: {labels: {a: 1}}}}}]}",
            "spec.runtimePatches[0].trainingRuntimeSpec.template.metadata.labels.a: invalid type: integer `1`, expected a string",
        ),
    ] {
        let text = format!(
            "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {{name: bert, namespace: ml}}\nspec: {spec}\n"
        );
        assert_eq!(errors(&text), of_bert(&[(4, error)]));
    }
}

#[test]
fn runtime_errors_beyond_the_schema_are_reported() {
    let text = "# none
---
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata:
  name: torch
  annotations: {trainyard.dev/plugins: '[{\"name\": \"a\", \"config\": 5}, {\"name\": \"a\", \"extra\": 1}]'}
spec:
  plugins: [{name: c}, {name: b}]
  podGroupPolicy: {}
  template:
    spec: {}
---
{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainingRuntime, metadata: {name: list}, spec: {template: {spec: []}}}
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
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: word, annotations: {trainyard.dev/plugins: '{}'}}
spec: {template: {spec: {}}}
";
    let annotation = "metadata.annotations[trainyard.dev/plugins]";
    let torch = "ClusterTrainingRuntime torch";
    let wanted = [
        format!("8: {torch}: {annotation}[0].config: must be an object; found the integer 5"),
        format!(
            "8: {torch}: {annotation}[1].extra: unknown field; valid fields are name, config, parameters"
        ),
        format!(
            "8: {torch}: {annotation}[1]: the name \"a\" is a duplicate; names in this list are unique"
        ),
        format!("8: {torch}: {annotation}: differs from spec.plugins; set only one of the two"),
        "15: TrainingRuntime list: spec.template.spec: must be an object; found a list".to_owned(),
        "17: TrainingRuntime ml/empty: spec.template: is required".to_owned(),
        format!(
            "21: TrainingRuntime json: {annotation}: must be JSON; line 1, column 3: invalid JSON: key must be a string"
        ),
        format!(
            "26: TrainingRuntime two: {annotation}: differs from spec.plugins; set only one of the two"
        ),
        format!("31: TrainingRuntime word: {annotation}: must be a list; found an object"),
    ];
    let wanted: Vec<_> = wanted
        .iter()
        .map(|wanted| format!("jobs.yaml:{wanted}"))
        .collect();
    assert_eq!(errors(text), wanted);
}
