//! Generated inputs of Volcano. This is a module of tests/differences_from_the_reference_are_listed, whose rows about gangs are those of both
//! schedulers.

use proptest::{prelude::*, strategy::BoxedStrategy};
use serde_json::{Value, json};

use super::{Generator, compare};
use crate::differences_from_the_reference_are_listed::generated::{
    Change, fields, gang, one_of, parts::scalar,
};

pub(crate) const GENERATORS: &[Generator] = &[Generator {
    change,
    ..Generator::new("volcano", gang::runtime)
}];

fn change() -> BoxedStrategy<Change> {
    gang::change(policy())
}

fn policy() -> BoxedStrategy<Value> {
    let tier = prop_oneof![20 => scalar(0..4), 1 => scalar(-1..0)];
    let topology = fields(vec![
        ("mode", 0.5, one_of(vec![json!("hard"), json!("soft")])),
        ("highestTierAllowed", 0.5, tier.boxed()),
    ]);
    fields(vec![("networkTopology", 0.4, topology)])
        .prop_map(|policy| json!({ "volcano": policy }))
        .boxed()
}

#[test]
#[ignore = "needs Go: `make test-reference` runs it"]
fn generated_inputs_differ_as_listed() {
    compare(&GENERATORS[0], 1000);
}
