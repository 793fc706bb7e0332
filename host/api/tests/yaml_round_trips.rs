//! Written YAML reads back as the same value, and every string that a reader could take for another type is quoted.

use proptest::{collection::vec, prelude::*};
use serde_json::{Map, Value, json};
use trainyard_api::yaml;
use trainyard_text::is_hidden;

fn read_one(text: &str) -> Value {
    let mut documents = yaml::read(text);
    assert_eq!(documents.len(), 1, "{text}");
    documents
        .remove(0)
        .map(|document| document.value)
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Text of characters with a meaning in YAML.
fn awkward_text() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "a",
        "b c",
        "\n",
        "\n\n",
        " ",
        "  ",
        "\t",
        ":",
        ": ",
        "#",
        " #",
        "-",
        "- ",
        "?",
        "'",
        "\"",
        "\\",
        "|",
        ">",
        "&",
        "*",
        "!",
        "%",
        "@",
        "`",
        "{",
        "}",
        "[",
        "]",
        ",",
        "0",
        "1",
        "e",
        "+",
        ".",
        "_",
        "0x",
        "0o",
        "~",
        "=",
        "<<",
        "y",
        "no",
        "null",
        "true",
        ".inf",
        "---",
        "...",
        "\r",
        "\r\n",
        "\0",
        "\u{7f}",
        "\u{85}",
        "\u{a0}",
        "\u{2028}",
        "\u{feff}",
        "\u{1f600}",
        "\u{1b}",
        "\u{ad}",
        "\u{61c}",
        "\u{200b}",
        "\u{202e}",
        "\u{2066}",
        "\u{fff9}",
        "\u{e0041}",
        "\u{1}",
        "\\x01\"",
        "\u{200b}\u{1}\"",
    ]);
    vec(part, 0..8).prop_map(|parts| parts.concat())
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![4 => awkward_text(), 2 => any::<String>(), 1 => "[ -~]{1,40}", 1 => "[a-z ]{1000,1100}"]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(as_kubernetes_has_it),
        4 => text().prop_map(Value::from),
    ]
}

/// A number without a fraction is an integer in Kubernetes' JSON.
fn as_kubernetes_has_it(number: f64) -> Value {
    if !number.is_finite() || number.fract() == 0.0 && number.abs() < 1e20 {
        json!(0)
    } else {
        json!(number)
    }
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(5, 48, 5, |inner| {
        let entries = vec((text(), inner.clone()), 0..5);
        prop_oneof![
            vec(inner, 0..5).prop_map(Value::Array),
            entries.prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn every_value_round_trips(value in value()) {
        let value = json!({ "value": value });
        let text = yaml::write(&value);
        prop_assert_eq!(read_one(&text).to_string(), value.to_string(), "{}", text);
        prop_assert!(!text.chars().any(|c| !matches!(c, '\n' | '\t') && is_hidden(c)), "{}", text);
        prop_assert_eq!(yaml::write(&value), text);
    }

    #[test]
    fn every_document_of_a_stream_round_trips(values in vec(value(), 1..4)) {
        let values: Vec<Value> = values.into_iter().map(|value| json!([value])).collect();
        let text = yaml::write_documents(&values);
        let read: Vec<Value> = yaml::read(&text).into_iter().map(|document| document.unwrap().value).collect();
        prop_assert_eq!(read, values, "{}", text);
    }
}

#[test]
fn ambiguous_strings_are_quoted() {
    let words = [
        "y",
        "Y",
        "n",
        "N",
        "yes",
        "No",
        "on",
        "OFF",
        "true",
        "False",
        "null",
        "Null",
        "~",
        "",
        "0",
        "08",
        "0755",
        "0o17",
        "0x1f",
        "0b1",
        "1_000",
        "1e3",
        "1.",
        ".5",
        "-1",
        "+1",
        "1:30",
        "190:20:30",
        ".inf",
        "-.Inf",
        ".nan",
        "2001-01-01",
        "2001-12-14t21:59:43.10-05:00",
        "<<",
        "=",
        "- a",
        "a: b",
        "a #b",
        "#a",
        "!a",
        "&a",
        "*a",
        "%a",
        "@a",
        "`a",
        "[a",
        "{a",
        "|",
        ">",
        "'a",
        "\"a",
        " a",
        "a ",
        "a:",
        "---",
        "...",
    ];
    for word in words {
        let text = yaml::write(&json!({ "k": word }));
        assert!(
            text.starts_with("k: \"") || text.starts_with("k: '"),
            "{text}"
        );
        assert_eq!(read_one(&text)["k"], word);
    }
}

#[test]
fn multi_line_strings_are_literal_blocks() {
    let shown = |text: &str| yaml::write(&json!({ "k": text }));
    assert_eq!(shown("a\nb\n"), "k: |\n  a\n  b\n");
    assert_eq!(shown("a\nb"), "k: |-\n  a\n  b\n");
    assert!(
        shown("a\nb\n\n").starts_with("k: |+\n  a\n  b\n"),
        "{}",
        shown("a\nb\n\n")
    );
    assert_eq!(
        shown("#!/bin/bash\nset -e\n  x: \"$y\"\n"),
        "k: |\n  #!/bin/bash\n  set -e\n    x: \"$y\"\n"
    );
    // A tab at the start of a block is an error for go-yaml.
    assert_eq!(shown("\n\ta\n"), "k: \"\\n\\ta\\n\"\n");
}

#[test]
fn layout_matches_kubectl() {
    let value = json!({
        "kind": "JobSet",
        "spec": {"args": ["-c", "a b"], "containers": [{"name": "node", "env": []}], "labels": {}, "replicas": 1, "suspend": false}
    });
    let wanted = "kind: JobSet\nspec:\n  args:\n  - -c\n  - a b\n  containers:\n  - name: node\n    env: []\n  labels: {}\n  \
                  replicas: 1\n  suspend: false\n";
    assert_eq!(yaml::write(&value), wanted);
    let long = "word ".repeat(60) + "end";
    assert_eq!(yaml::write(&json!({ "k": long })), format!("k: {long}\n"));
}

#[test]
fn hidden_characters_are_escaped_in_keys_and_values() {
    let value = json!({"a\u{202e}": "x\u{200b}\"\\y\n", "b": ["\u{e0041}", "\u{ad}\u{1}"]});
    let wanted =
        "\"a\\u202E\": \"x\\u200B\\\"\\\\y\\n\"\nb:\n- \"\\U000E0041\"\n- \"\\xAD\\x01\"\n";
    assert_eq!(yaml::write(&value), wanted);
    assert_eq!(read_one(wanted), value);
}
