//! A path that a person types is read as it is printed, and in the spellings of other tools.

#![allow(clippy::unwrap_used, missing_docs)]

use trainyard_api::{FieldPath, path::Segment};

#[test]
fn what_is_printed_is_read_as_it_was() {
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
fn a_key_may_stand_in_quotes_and_a_dot_before_the_path() {
    let labels = FieldPath::of(["metadata", "labels"]);
    for (text, key) in [
        ("metadata.labels['a]b']", "a]b"),
        (r#".metadata.labels["a\"b"]"#, "a\"b"),
        ("metadata.labels[\"0\"]", "0"),
    ] {
        assert_eq!(text.parse(), Ok(labels.key(key)), "{text}");
    }
    let by_position: FieldPath = "env[0]".parse().unwrap();
    assert_eq!(by_position.segments().last(), Some(&Segment::Index(0)));
}

#[test]
fn what_is_no_path_says_why() {
    for (text, problem) in [
        ("", "names no field"),
        (".", "names no field"),
        ("[[[", "has no `]`"),
        ("spec['a]", "has no `]`"),
        ("spec[]", "a position or a name"),
        ("spec[a[b]", "a position or a name"),
        ("spec[0]x", "behind `]`"),
        ("a..b", "without a field behind it"),
        ("..a", "without a field before it"),
        ("a.", "without a field behind it"),
        ("a b", "a character that no field has"),
    ] {
        let error = text.parse::<FieldPath>().unwrap_err().to_string();
        assert!(error.contains(problem), "{text}: {error}");
    }
}
