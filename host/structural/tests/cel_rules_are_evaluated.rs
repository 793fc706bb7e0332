//! CEL rules are evaluated as by a real API server, on creation and on update.

use crate::common;

#[test]
fn rules_are_evaluated_on_creation_and_on_update() {
    assert!(common::compare("rules.json") > 100);
}
