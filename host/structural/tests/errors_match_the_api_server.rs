//! A violation is printed as by an API server, and an unknown field as by kubectl, with a suggestion.

use serde_json::{Value, json};
use trainyard_structural::{Options, Outcome, Schema, Scope, ViolationKind};

fn admit(spec: Value) -> Outcome {
    let schema = Schema::compile(&json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "required": ["runtime"],
        "properties": {
            "runtime": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
            "trainer": {"type": "object", "properties": {
                "numNodes": {"type": "integer", "format": "int32", "minimum": 0},
                "image": {"type": "string", "maxLength": 5},
                "env": {
                    "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
                },
            }},
            "mode": {"type": "string", "enum": ["hard", "soft"]},
            "a": {"type": "object"},
            "b": {"type": "object"},
        },
        "x-kubernetes-validations": [{"rule": "!(has(self.a) && has(self.b))", "message": "only one of a and b"}],
    }}}))
    .unwrap();
    let mut value =
        json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}, "spec": spec});
    schema.admit(&mut value, None, &Options::default())
}

fn sentences(spec: Value) -> Vec<String> {
    admit(spec).errors.iter().map(ToString::to_string).collect()
}

#[test]
fn violations_have_the_api_servers_wording() {
    let found = sentences(
        json!({"runtime": {}, "trainer": {"numNodes": -1, "image": "too long"}, "mode": "firm"}),
    );
    let expected = [
        "spec.runtime.name: Required value",
        "spec.trainer.numNodes: Invalid value: -1: spec.trainer.numNodes in body should be greater than or equal to 0",
        "spec.trainer.image: Too long: may not be more than 5 bytes",
        "spec.mode: Unsupported value: \"firm\": supported values: \"hard\", \"soft\"",
        "Invalid value: null: some validation rules were not checked because the object was invalid; \
         correct the existing errors to complete validation",
    ];
    assert_eq!(found, expected);
}

#[test]
fn rules_and_lists_have_the_api_servers_wording() {
    let env = json!([{"name": "A"}, {"name": "A"}]);
    let found =
        sentences(json!({"runtime": {"name": "r"}, "trainer": {"env": env}, "a": {}, "b": {}}));
    let expected = [
        "spec.trainer.env[1]: Duplicate value: {\"name\":\"A\"}",
        "spec: Invalid value: only one of a and b",
    ];
    assert_eq!(found, expected);
}

#[test]
fn unknown_fields_come_with_a_suggestion() {
    let outcome = admit(
        json!({"runtime": {"name": "r"}, "trainer": {"imag": "x", "env": [{"name": "A", "zzz": 1}]}}),
    );
    let found: Vec<_> = outcome.unknown.iter().map(ToString::to_string).collect();
    let expected = [
        "unknown field \"spec.trainer.imag\", did you mean \"image\"?",
        "unknown field \"spec.trainer.env[0].zzz\"",
    ];
    assert_eq!(found, expected);
    assert!(outcome.errors.is_empty());
}

#[test]
fn violations_of_the_whole_object_have_the_api_servers_field() {
    let schema = Schema::compile(
        &json!({"type": "object", "required": ["spec"], "properties": {"spec": {"type": "object"}},
        "x-kubernetes-validations": [{"rule": "self.metadata.name != 'x'", "message": "not x"}]}),
    )
    .unwrap();
    let mut value =
        json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}, "spec": {}});
    let errors = schema.admit(&mut value, None, &Options::default()).errors;
    assert_eq!(errors[0].field(), "<nil>");
    assert_eq!(errors[0].to_string(), "Invalid value: not x");
    assert_eq!(errors[0].kind, ViolationKind::Invalid);
}

#[test]
fn terminal_control_characters_are_escaped() {
    let found = sentences(json!({"runtime": {"name": "r"}, "mode": "\u{1b}[31m\u{202e}"}));
    assert!(found[0].contains(r#""\x1b[31m\u202e""#), "{}", found[0]);
}

#[test]
fn cluster_scoped_objects_have_no_namespace_and_status_is_kept() {
    let schema = Schema::compile(&json!({"type": "object", "properties": {
        "status": {"type": "object", "properties": {"a": {"type": "integer"}}},
    }}))
    .unwrap();
    let options = Options {
        scope: Scope::Cluster,
        status_subresource: true,
    };
    let whole = |a: i64| json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}, "status": {"a": a}});
    let mut value = whole(1);
    value["metadata"]["namespace"] = "n".into();
    let outcome = schema.admit(&mut value, None, &options);
    assert_eq!(outcome.errors, []);
    assert_eq!(value["metadata"], json!({"name": "x"}));
    assert_eq!(value.get("status"), None);
    let mut value = whole(2);
    schema.admit(&mut value, Some(&whole(3)), &options);
    assert_eq!(value["status"]["a"], 3);
}
