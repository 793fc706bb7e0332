//! Fields set by the schema's defaults are distinguished from fields that the object's author wrote.

use serde_json::{Value, json};
use trainyard_structural::{Options, Schema};

fn defaulted(mut value: Value) -> Vec<String> {
    let item = json!({"type": "object", "properties": {"b": {"type": "string", "default": "x"}}});
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "string", "default": "x"},
        "list": {"type": "array", "items": item},
        "map": {"type": "object", "additionalProperties": item},
        "part": item,
        "whole": {"type": "object", "default": {"b": "y"}, "properties": {"b": {"type": "string"}}},
    }});
    value["metadata"] = json!({"name": "name", "labels": {"a": null}});
    let structural = Schema::compile(&schema).unwrap();
    let outcome = structural.admit(&mut value, None, &Options::default());
    assert_eq!((outcome.unknown, outcome.errors), (vec![], vec![]));
    let mut paths: Vec<_> = outcome.defaulted.iter().map(ToString::to_string).collect();
    paths.sort();
    paths
}

#[test]
fn absent_and_null_fields_are_reported_as_defaulted() {
    assert_eq!(defaulted(json!({})), ["a", "whole"]);
    assert_eq!(defaulted(json!({"a": null, "whole": {}})), ["a"]);
}

#[test]
fn written_fields_are_not_reported_as_defaulted() {
    assert_eq!(
        defaulted(json!({"a": "x", "whole": {"b": "y"}})),
        [""; 0],
        "even if it equals the default"
    );
}

#[test]
fn defaulted_fields_are_reported_with_their_path() {
    let written = json!({
        "a": "x", "whole": {}, "part": {}, "list": [{"b": "z"}, {}], "map": {"k": {}, "l": {"b": "z"}},
    });
    assert_eq!(defaulted(written), ["list[1].b", "map.k.b", "part.b"]);
}
