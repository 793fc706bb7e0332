//! A field path that a user types is parsed as it is printed, and its keys may be quoted.

use trainyard_api::{FieldPath, path::Segment};

#[test]
fn printed_paths_round_trip() {
    for path in [
        FieldPath::of(["spec", "trainer", "env"])
            .index(2)
            .field("name"),
        FieldPath::of(["metadata", "labels"]).key("app.kubernetes.io/name"),
        FieldPath::root()
            .field("spec")
            .fields(["a", "b"])
            .key("x")
            .key("y"),
    ] {
        assert_eq!(path.to_string().parse(), Ok(path));
    }
}

#[test]
fn keys_can_be_quoted() {
    let labels = FieldPath::of(["metadata", "labels"]);
    for (text, key) in [
        ("metadata.labels['a]b']", "a]b"),
        (r#"metadata.labels["a\"b"]"#, "a\"b"),
        ("metadata.labels[\"0\"]", "0"),
    ] {
        assert_eq!(text.parse(), Ok(labels.key(key)), "{text}");
    }
    let by_position: FieldPath = "env[0]".parse().unwrap();
    assert_eq!(by_position.segments().last(), Some(&Segment::Index(0)));
}

#[test]
fn invalid_paths_have_a_reason() {
    for (text, problem) in [
        ("[[[", "has no `]`"),
        ("spec['a]", "a quote is not closed"),
        ("spec['a'", "has no `]`"),
        ("spec[]", "a position or a name"),
        ("spec[a[b]", "a position or a name"),
        ("spec[0]x", "may follow a `]`"),
        ("spec]", "has no `[`"),
        ("a..b", "no field after it"),
        (".a", "no field before it"),
        ("a.", "no field after it"),
    ] {
        let error = text.parse::<FieldPath>().unwrap_err().to_string();
        let shows = "such as spec.trainer.env[2].name or metadata.labels[app]";
        assert!(
            error.contains(problem) && error.contains(shows),
            "{text}: {error}"
        );
    }
}
