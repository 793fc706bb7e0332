//! A placeholder is replaced by Kubernetes' own type: a pod that the API server refuses is refused here.

use serde_json::{Value, json};
use trainyard_schema::documents::{DocumentError, expand};
use trainyard_structural::{Options, Schema};

fn job_template() -> (Value, Schema) {
    let document = json!({
        "type": "object",
        "properties": {"template": {"$kubernetes": "io.k8s.api.batch.v1.JobTemplateSpec", "description": "A Job."}},
    });
    let schema = expand(&document).unwrap();
    let structural = Schema::compile(&schema).unwrap();
    (schema, structural)
}

/// An object with this pod spec, and its errors.
fn admit(pod: Value) -> (Value, Vec<String>, Vec<String>) {
    let mut value = json!({
        "apiVersion": "example.com/v1", "kind": "Example", "metadata": {"name": "a"},
        "template": {"spec": {"template": {"spec": pod}}},
    });
    let outcome = job_template()
        .1
        .admit(&mut value, None, &Options::default());
    let pod = value
        .pointer("/template/spec/template/spec")
        .cloned()
        .unwrap();
    (
        pod,
        outcome.unknown.iter().map(ToString::to_string).collect(),
        outcome.errors.iter().map(ToString::to_string).collect(),
    )
}

#[test]
fn complete_pod_is_accepted_and_defaulted() {
    let pod = json!({
        "containers": [{
            "name": "node", "image": "a",
            "ports": [{"containerPort": 1}],
            "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"key": "k"}}}],
            "resources": {"limits": {"cpu": 4, "memory": "1.5Gi"}, "claims": [{"name": "c"}]},
            "livenessProbe": {"httpGet": {"port": "http"}},
        }],
        "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {}}}}],
    });
    let (stored, unknown, errors) = admit(pod.clone());
    assert_eq!((unknown, errors), (vec![], vec![]));
    let mut wanted = pod;
    wanted["containers"][0]["ports"][0]["protocol"] = "TCP".into();
    wanted["containers"][0]["env"][0]["valueFrom"]["secretKeyRef"]["name"] = "".into();
    assert_eq!(stored, wanted);
}

#[test]
fn pods_refused_by_the_api_server_are_refused() {
    let pod = "template.spec.template.spec";
    for (container, wanted) in [
        (
            json!({"image": "a"}),
            format!("{pod}.containers[0].name: Required value"),
        ),
        (
            json!({"name": "a", "resources": {"limits": {"cpu": "banana"}}}),
            format!("{pod}.containers[0].resources.limits.cpu: Invalid value: \"banana\""),
        ),
        (
            json!({"name": "a", "env": [{"name": "A"}, {"name": "A"}]}),
            format!("{pod}.containers[0].env[1]: Duplicate value"),
        ),
        (
            json!({"name": "a", "command": "sh"}),
            format!("{pod}.containers[0].command: Invalid value: \"string\""),
        ),
    ] {
        let (_, unknown, errors) = admit(json!({"containers": [container]}));
        assert_eq!(unknown, Vec::<String>::new());
        assert!(errors[0].starts_with(&wanted), "{errors:?}");
    }
    let (_, unknown, _) = admit(json!({"containers": [{"name": "a", "imagee": "b"}]}));
    let wanted = format!("unknown field \"{pod}.containers[0].imagee\", did you mean \"image\"?");
    assert_eq!(unknown, [wanted]);
}

#[test]
fn fields_beside_a_placeholder_are_kept() {
    assert_eq!(
        job_template().0["properties"]["template"]["description"],
        "A Job."
    );
}

#[test]
fn unknown_placeholder_is_reported() {
    let document =
        json!({"properties": {"a/b": {"items": {"$kubernetes": "io.k8s.api.core.v1.Pod"}}}});
    let error = expand(&document).unwrap_err();
    assert!(error.to_string().starts_with(
        "/properties/a~1b/items: Kubernetes' document has no type `io.k8s.api.core.v1.Pod`"
    ));
    let nameless = expand(&json!({"a": {"$kubernetes": 5}})).unwrap_err();
    assert!(matches!(nameless, DocumentError::NoName { place } if place == "/a"));
    let missing = expand(&json!({"a": {"$document": "none"}})).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "/a: there is no document `none` in host/schema/documents"
    );
}

#[test]
fn expanded_schema_contains_only_what_a_crd_allows() {
    let text = job_template().0.to_string();
    for keyword in [
        "$ref",
        "allOf",
        "x-kubernetes-patch",
        "x-kubernetes-unions",
        "oneOf",
    ] {
        assert!(!text.contains(keyword), "{keyword}");
    }
    assert!(text.len() < 120_000, "{}", text.len());
}
