//! A schema that a real API server refuses in a CRD does not compile.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::common;
use serde_json::json;
use trainyard_schema::{documents::DocumentError, structural::Structural};

#[test]
fn what_a_server_refuses_is_refused() {
    let parts = common::read("refused.json");
    assert!(parts.len() > 40);
    for part in parts {
        let schema = &part["schema"];
        let theirs = part["refused"].as_array().unwrap();
        assert!(!theirs.is_empty(), "a server takes {schema}");
        assert!(
            Structural::compile(schema).is_err(),
            "{schema}\nis refused by a server: {theirs:?}"
        );
    }
}

#[test]
fn a_rule_that_does_not_compile_is_named_with_its_document_and_place() {
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object", "x-kubernetes-validations": [{"rule": "self.nodes >"}],
    }}});
    let problem = Structural::compile(&schema).unwrap_err();
    let name = "train-job".to_owned();
    let text = DocumentError::Schema { name, problem }.to_string();
    for part in ["train-job", "spec", "self.nodes >"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
