//! The mock host refuses YAML as a cluster does, with the field and its line, and answers lookups with the objects of the YAML and of the
//! test.

use serde_json::json;
use trainyard_sdk::{
    Context, Failure, Phases, PluginParts, Transform,
    mock::{MockError, MockInput, Rendered},
};

/// Refuses TrainJobs with more nodes than its catalog allows.
struct Quota;

impl Transform for Quota {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let lookups = ctx.lookups();
        let owner = lookups.get("v1", "ConfigMap", "owner");
        let owner = owner.and_then(|map| map.text("/data/name"));
        ctx.info()
            .set_annotation("owner", &owner.unwrap_or_default());
        let url = ctx.fact("status/url").unwrap_or_default();
        ctx.info().set_annotation("url", &url);
        let most = lookups.find_in_catalog("v1", "ConfigMap", "quota");
        let most = most.and_then(|map| map.text("/data/nodes"));
        let most = most.and_then(|most| most.parse().ok());
        if most.is_some_and(|most| ctx.job().nodes() > most) {
            return Err(Failure {
                message: "is more than the quota".to_owned(),
                field: Some("spec.trainer.numNodes".to_owned()),
            });
        }
        Ok(())
    }
}

const QUOTA: PluginParts = PluginParts {
    manifest: r#"{"name":"quota","activeWhen":"plugins","claims":{
        "reads":["lookups[v1/ConfigMap/owner]","catalog[v1/ConfigMap/quota]"],
        "writes":["annotations[owner]","annotations[url]"]}}"#,
    parts: r#"{"version":"0.1.0","contract":"1.0.0","phases":["transform"]}"#,
    phases: Phases {
        transform: Some(Quota::transform),
        ..Phases::NONE
    },
};

const RUNTIME: &str = "apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: with-quota, namespace: research}
spec:
  mlPolicy: {numNodes: 2}
  plugins: [{name: quota}]
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, image: train}]}}}
";

const JOB: &str = "apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: bert, namespace: research}
spec:
  runtimeRef: {kind: TrainingRuntime, name: with-quota}
  trainer:
    numNodes: 4
";

const OWNER: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: owner, namespace: research}
data: {name: ml}
";

fn yaml(documents: &[&str]) -> String {
    documents.join("---\n")
}

fn input(documents: &[&str]) -> MockInput {
    MockInput::new(&yaml(documents)).plugin(&QUOTA)
}

fn annotation<'a>(rendered: &'a Rendered, key: &str) -> Option<&'a str> {
    let annotations = rendered.job_set().pointer("/metadata/annotations")?;
    annotations.get(key)?.as_str()
}

/// Returns the errors of a refused input.
fn refused(input: MockInput) -> Vec<String> {
    match input.render() {
        Err(MockError::Refused(errors)) => errors,
        Err(other) => panic!("{other}"),
        Ok(rendered) => panic!("{rendered:?}"),
    }
}

#[test]
fn objects_of_the_yaml_and_the_test_are_looked_up() {
    let rendered = input(&[RUNTIME, JOB, OWNER]).fact("status/url", "https://status");
    let rendered = rendered.render().unwrap();
    assert_eq!(annotation(&rendered, "owner"), Some("ml"));
    assert_eq!(annotation(&rendered, "url"), Some("https://status"));
    let owner = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "owner", "namespace": "research"}, "data": {"name": "nlp"}
    });
    let rendered = input(&[RUNTIME, JOB]).object(owner).render().unwrap();
    assert_eq!(annotation(&rendered, "owner"), Some("nlp"));
}

#[test]
fn objects_of_another_namespace_are_not_found() {
    let other = OWNER.replace("research", "other");
    let error = input(&[RUNTIME, JOB, &other]).render().unwrap_err();
    assert!(matches!(error, MockError::NoObject(_)), "{error}");
    let error = error.to_string();
    assert!(
        error.contains("ConfigMap `owner` (v1) for namespace `research`; add the object"),
        "{error}"
    );
    let rendered = input(&[RUNTIME, JOB]).not_served("v1", "ConfigMap");
    assert_eq!(annotation(&rendered.render().unwrap(), "owner"), Some(""));
}

#[test]
fn a_plugin_refuses_with_its_field() {
    let quota = OWNER
        .replace(
            "name: owner, namespace: research",
            "name: quota, namespace: shared",
        )
        .replace("name: ml", "nodes: '3'");
    let documents = [RUNTIME, JOB, OWNER, &quota];
    // Without a catalog, the object is only one of another namespace.
    input(&documents).render().unwrap();
    let errors = refused(input(&documents).catalog_namespace("shared"));
    assert_eq!(
        errors,
        [
            "yaml:21: TrainJob research/bert: spec.trainer.numNodes: is more than the quota (plugin quota 0.1.0 (native) in transform)"
        ]
    );
}

#[test]
fn unknown_fields_and_invalid_values_are_refused() {
    let job = JOB.replace("numNodes: 4", "numNode: 4\n    image: [train]");
    let errors = refused(input(&[RUNTIME, &job, OWNER]));
    assert_eq!(
        errors,
        [
            "yaml:21: TrainJob research/bert: unknown field \"spec.trainer.numNode\", did you mean \"numNodes\"?",
            "yaml:22: TrainJob research/bert: spec.trainer.image: Invalid value: \"array\": spec.trainer.image in body must be of type string: \"array\"",
        ]
    );
    let object = json!({"kind": "ConfigMap", "metadata": {"name": "x"}});
    let errors = refused(input(&[RUNTIME, JOB, OWNER]).object(object));
    assert_eq!(
        errors,
        ["object: document 1: ConfigMap x: apiVersion: is required"]
    );
}

#[test]
fn a_plugin_that_is_not_loaded_is_named_with_its_field() {
    let errors = refused(MockInput::new(&yaml(&[RUNTIME, JOB, OWNER])));
    assert_eq!(
        errors,
        [
            "yaml:6: TrainingRuntime research/with-quota: spec.plugins[0].name: no loaded plugin has the name `quota`; no loaded plugin is activated by `plugins`; declare it with a PolicyPlugin, or correct the name; add it to the test with `plugin`"
        ]
    );
}

#[test]
fn a_test_has_one_train_job_of_this_controller() {
    assert_eq!(
        refused(input(&[RUNTIME])),
        ["yaml: has no TrainJob; add a document with one"]
    );
    let second = JOB.replace("name: bert,", "name: gpt,");
    assert_eq!(
        refused(input(&[RUNTIME, JOB, &second])),
        [
            "yaml: has 2 TrainJobs, research/bert, research/gpt; keep one, because a test renders a single TrainJob"
        ]
    );
    let errors = refused(input(&[JOB]));
    assert!(
        errors
            .concat()
            .contains("`research/with-quota` is not in the input"),
        "{errors:?}"
    );
    let of_another = JOB.replace("spec:\n", "spec:\n  managedBy: kueue.x-k8s.io/multikueue\n");
    let errors = refused(input(&[RUNTIME, &of_another, OWNER]));
    assert!(
        errors
            .concat()
            .contains("another controller manages this TrainJob"),
        "{errors:?}"
    );
}
