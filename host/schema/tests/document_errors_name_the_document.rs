//! An error of a schema document names the document, the place in it and the rule.

use serde_json::json;
use trainyard_schema::documents::DocumentError;
use trainyard_structural::Schema;

#[test]
fn rules_that_do_not_compile_are_located() {
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object", "x-kubernetes-validations": [{"rule": "self.nodes >"}],
    }}});
    let problem = Schema::compile(&schema).unwrap_err();
    let name = "train-job".to_owned();
    let text = DocumentError::Schema { name, problem }.to_string();
    for part in ["train-job", "spec", "self.nodes >"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
