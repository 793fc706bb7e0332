//! A claim on objects means an API version, a kind and names, and is compared by these parts, never by its text.

use trainyard_model::claims::{ClaimPath, KeyPattern, NamePattern, ObjectPattern};

fn claim(text: &str) -> ClaimPath {
    text.parse().unwrap()
}

fn objects(text: &str) -> Option<ObjectPattern> {
    match claim(text).key {
        Some(KeyPattern::Objects(objects)) => Some(objects),
        _ => None,
    }
}

#[test]
fn claims_are_displayed_as_they_were_written() {
    let literal = |text: &str| NamePattern::Literal(text.into());
    let prefix = |text: &str| NamePattern::Prefix(text.into());
    for (text, api_version, kind, names) in [
        (
            "lookups[v1/ConfigMap/tracing]",
            "v1",
            "ConfigMap",
            literal("tracing"),
        ),
        ("lookups[v1/Node/*]", "v1", "Node", prefix("")),
        ("lookups[v1/Node/gpu-*]", "v1", "Node", prefix("gpu-")),
        ("lookups[\"v1/Node/*\"]", "v1", "Node", NamePattern::List),
        (
            "lookups[apps/v1/Deployment/#]",
            "apps/v1",
            "Deployment",
            NamePattern::Served,
        ),
        (
            "objects[v1/Secret/-mpi-ssh-auth]",
            "v1",
            "Secret",
            literal("-mpi-ssh-auth"),
        ),
        (
            "objects[scheduling.x-k8s.io/v1alpha1/PodGroup/*]",
            "scheduling.x-k8s.io/v1alpha1",
            "PodGroup",
            prefix(""),
        ),
        (
            "objects[scheduling.x-k8s.io/v1alpha1/PodGroup/]",
            "scheduling.x-k8s.io/v1alpha1",
            "PodGroup",
            literal(""),
        ),
    ] {
        let expected = ObjectPattern {
            api_version: api_version.into(),
            kind: kind.into(),
            names,
        };
        assert_eq!(objects(text), Some(expected), "{text}");
        assert_eq!(claim(text).to_string(), text);
    }
}

#[test]
fn a_key_without_a_whole_kind_is_not_a_pattern_of_objects() {
    for text in [
        "lookups[*]",
        "lookups[v1/*]",
        "lookups[v1/No*]",
        "lookups[apps/v1/*]",
        "lookups[apps/v1/Dep*]",
        "lookups[$config./kind]",
        "lookups[a/b/c/Kind/name]",
        "lookups[v1/node/a]",
        "objects[-scripts]",
        // Another field may have such keys, which are texts.
        "labels[v1/ConfigMap/a]",
    ] {
        assert_eq!(objects(text), None, "{text}");
        assert_eq!(claim(text).to_string(), text);
    }
}

#[test]
fn claims_cover_each_other_by_kind_and_then_by_name() {
    // In turn, each covers those behind it.
    let chains: [&[&str]; 5] = [
        &[
            "lookups[*]",
            "lookups[v*]",
            "lookups[v1/No*]",
            "lookups[v1/Node/*]",
            "lookups[v1/Node/gpu-*]",
            "lookups[v1/Node/gpu-1]",
        ],
        &[
            "lookups[v1/*]",
            "lookups[v1/Node/*]",
            "lookups[\"v1/Node/*\"]",
        ],
        &[
            "lookups[v1/Node*]",
            "lookups[v1/Node/*]",
            "lookups[v1/Node/#]",
        ],
        &[
            "lookups[apps/*]",
            "lookups[apps/v1/Dep*]",
            "lookups[apps/v1/Deployment/a]",
        ],
        &["objects[a.io/v1/PodGroup/*]", "objects[a.io/v1/PodGroup/]"],
    ];
    for chain in chains {
        for (at, wide) in chain.iter().enumerate() {
            for (other, narrow) in chain.iter().enumerate() {
                let (wide_path, narrow_path) = (claim(wide), claim(narrow));
                assert_eq!(
                    wide_path.covers(&narrow_path),
                    at <= other,
                    "{wide} {narrow}"
                );
                assert!(wide_path.overlaps(&narrow_path), "{wide} {narrow}");
            }
        }
    }
    for (one, other) in [
        ("lookups[v1/Node/a]", "lookups[v1/Node/b]"),
        ("lookups[v1/Node/gpu-*]", "lookups[v1/Node/#]"),
        ("lookups[v1/Node/gpu-*]", "lookups[\"v1/Node/*\"]"),
        ("lookups[v1/Node/*]", "lookups[v1/NodeClaim/*]"),
        ("lookups[v1/Node/a]", "lookups[example.com/v1/Node/a]"),
        ("lookups[v1/Pod*]", "lookups[v1/Node/a]"),
        ("lookups[v1/ConfigMap/-a]", "objects[v1/ConfigMap/-a]"),
        ("objects[a.io/v1/PodGroup/]", "objects[a.io/v1/PodGroup/-*]"),
    ] {
        let (one_path, other_path) = (claim(one), claim(other));
        assert!(!one_path.overlaps(&other_path), "{one} {other}");
        assert!(!other_path.overlaps(&one_path), "{one} {other}");
    }
}
