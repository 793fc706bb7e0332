//! Generated inputs of coscheduling. This is a module of tests/differences_from_the_reference_are_listed, whose rows about gangs are those of both
//! schedulers.

use proptest::{prelude::*, strategy::BoxedStrategy};
use serde_json::{Value, json};

use super::{Generator, compare};
use crate::differences_from_the_reference_are_listed::generated::{
    Change, fields, gang, parts::scalar,
};

pub(crate) const GENERATORS: &[Generator] = &[Generator {
    change,
    ..Generator::new("coscheduling", gang::runtime)
}];

fn change() -> BoxedStrategy<Change> {
    gang::change(policy())
}

fn policy() -> BoxedStrategy<Value> {
    let seconds = prop_oneof![20 => scalar(0..600), 1 => scalar(-1..0)];
    fields(vec![("scheduleTimeoutSeconds", 0.5, seconds.boxed())])
        .prop_map(|policy| json!({ "coscheduling": policy }))
        .boxed()
}

#[test]
#[ignore = "needs Go: `make test-reference` runs it"]
fn generated_inputs_differ_as_listed() {
    compare(&GENERATORS[0], 1000);
}
