//! Runtimes of Torch, generated. This is a module of tests/differences_from_the_reference_are_listed.

mod torchtune;

use proptest::{prelude::*, strategy::BoxedStrategy};
use serde_json::{Value, json};

use super::{Generator, compare};
use crate::differences_from_the_reference_are_listed::generated::{fields, one_of, runtime};

pub(crate) const GENERATORS: &[Generator] = &[
    Generator {
        kept: 60,
        ..Generator::new("torch", runtime)
    },
    Generator {
        change: torchtune::change,
        ..Generator::new("torchtune", runtime)
    },
];

fn runtime() -> BoxedStrategy<Value> {
    let targets = one_of(vec![
        json!([{"jobName": "node", "containerNames": ["logger"]}]),
        json!([{"jobName": "node", "containerNames": ["prepare"]}]),
        json!([{"jobName": "observer", "containerNames": ["observer"]}]),
    ]);
    let torch = fields(vec![
        (
            "numProcPerNode",
            0.07,
            one_of(vec![json!(4), json!("auto"), json!("cpu"), json!("gpu")]),
        ),
        (
            "envInjection",
            0.1,
            targets
                .prop_map(|targets| json!({"targets": targets}))
                .boxed(),
        ),
    ]);
    runtime::with_policy("torch", 0.85, torch)
}

#[test]
#[ignore = "needs Go: `make test-reference` runs it"]
fn generated_inputs_differ_as_listed() {
    compare(&GENERATORS[0], 2000);
}

#[test]
#[ignore = "needs Go: `make test-reference` runs it"]
fn generated_torchtune_inputs_differ_as_listed() {
    compare(&GENERATORS[1], 1000);
}
