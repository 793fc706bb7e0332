//! Each error of a configuration file has its line, its field and what to write instead, and all are reported at once.

use serde_json::{Value, json};
use trainyard_api::FieldPath;
use trainyard_config::{
    ConfigError, ConfigFile, ConfigProblem, ConfigSchema, FieldError, MAX_ERRORS, TypeMeta,
};

const KINDS: &[TypeMeta] = &[TypeMeta {
    api_version: "example.com/v1",
    kind: "Example",
}];

const DIGITS: &str = "^[0-9]+$";

fn schema() -> Value {
    json!({
        "type": "object", "additionalProperties": false, "required": ["apiVersion", "kind"],
        "properties": {
            "apiVersion": {"const": "example.com/v1"}, "kind": {"const": "Example"},
            "digits": {"type": "string", "pattern": DIGITS},
            "facts": {"type": "object", "additionalProperties": {"type": "string"}},
            "plugins": {"type": "array", "items": {"$ref": "#/$defs/Plugin"}},
        },
        "$defs": {"Plugin": {
            "type": "object", "additionalProperties": false, "required": ["name"],
            "properties": {"name": {"type": "string"}, "grants": {"type": "array", "items": {"type": "string"}}},
        }},
    })
}

fn errors(text: &str, check: impl FnOnce(&Value, &[FieldError]) -> Vec<FieldError>) -> Vec<String> {
    let file = ConfigFile::parse("a.yaml", text, KINDS).unwrap();
    let schema = ConfigSchema {
        schema: &schema(),
        patterns: &[(DIGITS, "digits")],
    };
    let mut errors: Vec<_> = match file.decode::<Value>(&schema, check) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    };
    errors.sort();
    errors
}

const FILE: &str = "# An example.
apiVersion: example.com/v1
kind: Exampel
digits: abc
plugins:
- name: a
  grants:
  - 5
- grant: [b]
  zzz: 1
";

#[test]
fn all_errors_of_a_file_are_reported_at_once() {
    let check = |_: &Value, found: &[FieldError]| {
        assert_eq!(found.len(), 6);
        let plugins = FieldPath::of(["plugins"]);
        let field_error = |field| FieldError {
            field,
            problem: "is checked".to_owned(),
        };
        // The schema has refused the first of the two.
        vec![
            field_error(FieldPath::of(["digits"])),
            field_error(plugins.index(0).field("name")),
        ]
    };
    assert_eq!(
        errors(FILE, check),
        [
            "a.yaml:10: plugins[1].zzz: unknown field; valid fields are name, grants",
            "a.yaml:3: kind: must be `Example`; found `Exampel`",
            "a.yaml:4: digits: must be digits; found `abc`",
            "a.yaml:6: plugins[0].name: is checked",
            "a.yaml:8: plugins[0].grants[0]: must be a string; found 5",
            "a.yaml:9: plugins[1].grant: unknown field; did you mean `grants`?",
            "a.yaml:9: plugins[1].name: is missing",
        ]
    );
}

#[test]
fn keys_of_digits_have_a_line() {
    let text = "apiVersion: example.com/v1\nkind: Example\nfacts:\n  a: b\n  '7': 5\n";
    assert_eq!(
        errors(text, |_, _| Vec::new()),
        ["a.yaml:5: facts.7: must be a string; found 5"]
    );
}

#[test]
fn errors_beyond_the_maximum_are_counted() {
    let entries = 3 * MAX_ERRORS;
    let header = "apiVersion: example.com/v1\nkind: Example\nplugins:\n";
    let text = format!("{header}{}", "- zzz: 1\n".repeat(entries));
    let file = ConfigFile::parse("a.yaml", &text, KINDS).unwrap();
    let schema = ConfigSchema {
        schema: &schema(),
        patterns: &[],
    };
    // Each entry has two errors of the schema, and one of the check that the schema does not have.
    let check = |_: &Value, _: &[FieldError]| {
        let field = |at| FieldPath::of(["plugins"]).index(at);
        let field_error = |at| FieldError {
            field: field(at),
            problem: "is checked".to_owned(),
        };
        (0..entries).map(field_error).collect()
    };
    let errors: Vec<ConfigError> = file.decode::<Value>(&schema, check).unwrap_err();
    let (last, first) = errors.split_last().unwrap();
    assert_eq!(first.len(), MAX_ERRORS);
    for error in first {
        assert!(matches!(error.problem, ConfigProblem::Field(_)), "{error}");
        let error = error.to_string();
        let line = error.strip_prefix("a.yaml:").unwrap().split(':').next();
        assert!(line.unwrap().parse::<usize>().is_ok(), "{error}");
    }
    assert_eq!(
        last.to_string(),
        "a.yaml: 800 more errors are not printed; correct those above first"
    );
}

#[test]
fn file_without_errors_is_decoded() {
    let text = "apiVersion: example.com/v1\nkind: Example\nplugins: null\n";
    assert_eq!(errors(text, |_, _| Vec::new()), [""; 0]);
    let file = ConfigFile::parse("a.yaml", text, KINDS).unwrap();
    assert_eq!(file.type_meta().unwrap().kind, "Example");
    assert_eq!(file.value().get("plugins"), None);
}

#[test]
fn hidden_characters_are_escaped() {
    let text =
        "apiVersion: example.com/v1\nkind: Example\nplugins: [{name: a, grants: \"\\u202e\"}]\n";
    assert_eq!(
        errors(text, |_, _| Vec::new()),
        [r"a.yaml:3: plugins[0].grants: must be a list; found `\u{202e}`"]
    );
}
