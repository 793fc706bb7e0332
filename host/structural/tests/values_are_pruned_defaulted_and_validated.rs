//! What an object becomes on the way in is what a real API server makes of it: fields dropped, defaults set, values checked.

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
