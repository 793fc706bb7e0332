//! A PluginRevision's name has a hash of what it contains, and a reader uses only a revision that matches its name.

use serde_json::{Value, json};
use trainyard_config::policy_plugin::{
    OciOrigin, Origin, PluginRevisionSpec, PolicyPluginSpec, ResolvedPlugin,
};

fn plugin(name: &str, settings: Value) -> ResolvedPlugin {
    let digest = format!("sha256:{}", "1".repeat(64));
    ResolvedPlugin {
        name: name.to_owned(),
        generation: 1,
        origin: Origin::Oci(OciOrigin {
            repository: "r.example.com/x".to_owned(),
            manifest_digest: digest.clone(),
        }),
        version: Some("1.0.0".to_owned()),
        digest: Some(digest),
        active_when: Some("always".to_owned()),
        settings: serde_json::from_value::<PolicyPluginSpec>(settings).unwrap(),
    }
}

fn revision(plugins: &[ResolvedPlugin]) -> PluginRevisionSpec {
    PluginRevisionSpec::new(7, plugins.to_vec())
}

#[test]
fn hash_covers_everything_but_number_and_generations() {
    let (a, b) = (
        plugin("a", json!({"config": {"x": 1, "y": 2}})),
        plugin("b", json!({})),
    );
    let first = revision(&[a.clone(), b.clone()]);
    let same = revision(&[
        b.clone(),
        ResolvedPlugin {
            generation: 9,
            ..plugin("a", json!({"config": {"y": 2, "x": 1}}))
        },
    ]);
    assert_eq!(first.hash(), same.hash());
    assert_eq!(
        PluginRevisionSpec {
            number: 8,
            ..first.clone()
        }
        .hash(),
        first.hash()
    );
    for changed in [
        ResolvedPlugin {
            version: Some("1.0.1".to_owned()),
            ..b.clone()
        },
        ResolvedPlugin {
            digest: None,
            ..b.clone()
        },
        ResolvedPlugin {
            active_when: None,
            ..b.clone()
        },
        plugin("b", json!({"limits": {"fuel": 5}})),
        plugin("b", json!({"grants": ["pod-sets[*].containers[*].image"]})),
        plugin("c", json!({})),
    ] {
        assert_ne!(revision(&[a.clone(), changed]).hash(), first.hash());
    }
}

/// The name is part of a released format: an upgrade of the controller loads the revision that the old one wrote.
#[test]
fn name_of_a_revision_stays_the_same_from_release_to_release() {
    let revision = revision(&[plugin(
        "a",
        json!({"limits": {"fuel": 5}, "disabledFor": {"namespaces": ["x"]}}),
    )]);
    assert_eq!(revision.name(), "rev-7-fbbcfbda609ce0de");
}

#[test]
fn revision_is_read_as_written() {
    let written = revision(&[
        plugin("b", json!({})),
        plugin("a", json!({"config": {"z": [1]}})),
    ]);
    let read = PluginRevisionSpec::decode(&written.name(), &json!(written)).unwrap();
    assert_eq!(read, written);
    assert_eq!(read.plugins[0].name, "a");
}

#[test]
fn other_revisions_are_refused_with_the_reason() {
    let written = revision(&[plugin("a", json!({})), plugin("b", json!({}))]);
    let name = written.name();
    let with = |pointer: &str, value: Value| {
        let mut spec = json!(written);
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        spec.pointer_mut(parent).unwrap()[key] = value;
        spec
    };
    for (spec, wanted) in [
        (
            with("/format", json!(2)),
            "spec.format: is 2, but this controller reads formats up to 1",
        ),
        (
            with("/number", json!(8)),
            "the name of an object with this spec is rev-8-",
        ),
        (
            with("/plugins/0/version", json!("2.0.0")),
            "the name of an object with this spec is rev-7-",
        ),
        (
            with("/plugins/0/settings/later", json!(1)),
            "spec.plugins[0].settings",
        ),
        (with("/later", json!(1)), "unknown field `later`"),
    ] {
        let error = PluginRevisionSpec::decode(&name, &spec)
            .unwrap_err()
            .to_string();
        assert!(error.contains(wanted), "{error}");
    }
    let mut unsorted = written.clone();
    unsorted.plugins.reverse();
    let mut twice = written.clone();
    twice.plugins[1].name = "a".to_owned();
    let mut sourced = written;
    sourced.plugins[1].settings =
        serde_json::from_value(json!({"source": {"file": {"name": "b.wasm"}}})).unwrap();
    for (spec, wanted) in [
        (unsorted, "spec.plugins[1]: its name is not after"),
        (twice, "spec.plugins[1]: its name is not after"),
        (sourced, "spec.plugins[1]: has `settings.source`"),
    ] {
        let error = PluginRevisionSpec::decode(&spec.name(), &json!(spec)).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
    }
}
