//! A PolicyPlugin with errors is refused, and each error names its field and what to write.

use serde_json::{Value, json};
use trainyard_config::policy_plugin::PolicyPlugin;

fn errors(name: &str, spec: Value) -> Vec<String> {
    let object = json!({
        "apiVersion": "trainyard.dev/v1alpha1", "kind": "PolicyPlugin", "metadata": {"name": name}, "spec": spec,
    });
    let errors = PolicyPlugin::decode(&object, Default::default()).unwrap_err();
    let field = |error: &trainyard_config::ConfigError| {
        format!("{}: {}", error.location.field, error.problem)
    };
    errors.iter().map(field).collect()
}

#[test]
fn every_check_names_its_field() {
    let digest = format!("sha256:{}", "ab".repeat(32));
    let oci = |reference: &str, follow: bool| json!({"source": {"oci": {"reference": reference, "follow": follow}}});
    for (spec, wanted) in [
        (
            oci("rdma:1.0", false),
            "spec.source.oci.reference: `rdma:1.0` has no registry",
        ),
        (
            oci(&format!("oci:/srv/rdma@{digest}"), false),
            "is a folder, which a PolicyPlugin cannot name; copy the plugin into a registry with `trainyard plugin copy`",
        ),
        (
            oci("r.example.com/rdma:1.0", false),
            "spec.source.oci.reference: `r.example.com/rdma:1.0` is a tag, which may be moved; write `r.example.com/rdma:1.0@sha256:DIGEST`",
        ),
        (
            oci("r.example.com/rdma@sha256:12", false),
            "spec.source.oci.reference: `r.example.com/rdma@sha256:12` does not end in a digest",
        ),
        (
            oci(&format!("r.example.com/rdma@{digest}"), true),
            "has a digest, but `follow` is true",
        ),
        (
            json!({"source": {"file": {"name": "../x.wasm"}}}),
            "spec.source.file.name: `../x.wasm` is a path; write the name of a file of the plugin directory",
        ),
        (
            json!({"facts": {"other/x": "1"}}),
            "spec.facts.other/x: does not begin with `rdma/`; rename it, or move it to `rendering.facts`",
        ),
        (json!({"facts": {"rdma/X": "1"}}), "spec.facts.rdma/X: "),
        (
            json!({"facts": {"rdma/x": "y".repeat(40_000)}}),
            "spec.facts: the facts have 40006 bytes",
        ),
        (json!({"grants": ["nonsense"]}), "spec.grants[0]: "),
        (
            json!({"after": ["rdma"]}),
            "spec.after[0]: `rdma` cannot run after itself",
        ),
        (
            json!({"excludes": ["rdma"]}),
            "spec.excludes[0]: `rdma` excludes itself",
        ),
        (
            json!({"disabledFor": {"namespaces": ["A"]}}),
            "spec.disabledFor.namespaces[0]: `A` is not the name of a namespace",
        ),
        (
            json!({"enabledFor": {"runtimes": ["x"]}}),
            "spec.enabledFor.runtimes[0]: `x` is not a runtime",
        ),
        (json!({"limits": {"fuel": 1e30}}), "spec.limits.fuel: "),
    ] {
        let errors = errors("rdma", spec);
        assert!(
            errors.iter().any(|error| error.contains(wanted)),
            "{errors:#?}"
        );
    }
}

#[test]
fn name_is_that_of_a_plugin() {
    assert_eq!(
        errors("a.b", json!({})),
        [
            "metadata.name: `a.b` is not the name of a plugin; write 1 to 63 of a-z, 0-9 and `-`, with no `-` at either end"
        ]
    );
}

/// A tag that is followed, and a tag with a digest.
#[test]
fn references_that_are_safe_are_accepted() {
    let digest = format!("sha256:{}", "ab".repeat(32));
    for (reference, follow) in [
        ("localhost:5000/rdma:1.0".to_owned(), true),
        (format!("r.example.com/team/rdma:1.0@{digest}"), false),
        (format!("r.example.com/rdma@{digest}"), false),
    ] {
        let object = json!({
            "apiVersion": "trainyard.dev/v1alpha1", "kind": "PolicyPlugin", "metadata": {"name": "rdma"},
            "spec": {"source": {"oci": {"reference": reference, "follow": follow}}},
        });
        PolicyPlugin::decode(&object, Default::default()).unwrap();
    }
}
