//! An error about a runtime names the field in which its author made the mistake.

use std::fs;

use crate::common::{runtime, trainyard};

/// Renders a TrainJob of a runtime with these fields, which is refused, and returns the errors.
fn refused(annotations: &str, of_spec: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let metadata = format!("name: r, annotations: {annotations}");
    let job = "---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: bert}
spec: {runtimeRef: {name: r}}
";
    let input = runtime(&metadata, of_spec, "") + job;
    fs::write(folder.path().join("input.yaml"), input).unwrap();
    let output = trainyard(folder.path(), &["render", "-f", "input.yaml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn unloaded_plugin_is_reported_at_the_users_field() {
    let listed = r#"plugins: [{name: gone}],"#;
    let annotated = r#"{trainyard.dev/plugins: '[{"name": "gone"}]'}"#;
    for (annotations, of_spec, line, field) in [
        (
            annotated,
            "",
            3,
            "metadata.annotations[trainyard.dev/plugins][0].name",
        ),
        ("{}", listed, 4, "spec.plugins[0].name"),
        // If both have the same plugins, the list in the spec is named.
        (annotated, listed, 4, "spec.plugins[0].name"),
        (
            "{}",
            "mlPolicy: {plugin: {name: gone}},",
            4,
            "spec.mlPolicy.plugin.name",
        ),
    ] {
        let error = refused(annotations, of_spec);
        let wanted = format!(
            "error: input.yaml:{line}: ClusterTrainingRuntime r: {field}: no loaded plugin has the name `gone`; "
        );
        assert!(
            error.lines().count() == 1 && error.starts_with(&wanted),
            "{error}\n{wanted}"
        );
    }
}

/// A built-in plugin is activated by `mlPolicy`, and not by the list in which its name is misspelled.
#[test]
fn misspelled_plugin_has_a_suggestion() {
    for (of_spec, suggestion) in [
        (
            "plugins: [{name: torhc}],",
            "did you mean `torch`, which is activated by `mlPolicy.torch`?",
        ),
        (
            "mlPolicy: {plugin: {name: fluxx}},",
            "did you mean `flux`, which is activated by `mlPolicy.flux`?",
        ),
    ] {
        let error = refused("{}", of_spec);
        assert!(error.contains(suggestion), "{error}");
    }
}
