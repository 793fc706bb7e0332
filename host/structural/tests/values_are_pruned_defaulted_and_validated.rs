//! Objects are pruned, defaulted and validated as by a real API server.

use crate::common;

#[test]
fn values_and_lists_are_validated() {
    assert!(common::compare("values.json") > 200);
}

#[test]
fn defaults_are_set() {
    assert!(common::compare("defaults.json") > 10);
}

#[test]
fn metadata_and_embedded_objects_are_validated() {
    assert!(common::compare("metadata.json") > 30);
}
