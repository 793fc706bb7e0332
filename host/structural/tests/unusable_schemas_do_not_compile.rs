//! A schema that a real API server refuses in a CRD does not compile.

use trainyard_structural::Schema;

use crate::common;

#[test]
fn schemas_refused_by_the_api_server_are_refused() {
    let parts = common::read("refused.json");
    assert!(parts.len() > 40);
    for part in parts {
        let schema = &part["schema"];
        let theirs = part["refused"].as_array().unwrap();
        assert!(!theirs.is_empty(), "a server accepts {schema}");
        assert!(
            Schema::compile(schema).is_err(),
            "{schema}\nis refused by a server: {theirs:?}"
        );
    }
}
