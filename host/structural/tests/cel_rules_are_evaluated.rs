//! CEL rules hold, or do not, as a real API server evaluates them: on creation and on update.

use crate::common;

#[test]
fn rules_are_evaluated_on_creation_and_on_update() {
    assert!(common::compare("rules.json") > 100);
}
