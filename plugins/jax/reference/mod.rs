//! Differences of JAX from the reference, and generated inputs. This is a module of tests/differences_from_the_reference_are_listed.

use proptest::{prelude::*, strategy::BoxedStrategy};
use serde_json::{Value, json};

use super::{Generator, Plugin, Row, compare, row};
use crate::differences_from_the_reference_are_listed::{
    difference::Refusal, generated::runtime, seen::Seen,
};

pub(crate) const PLUGIN: Plugin = Plugin {
    rows: ROWS,
    generators: GENERATORS,
    ..Plugin::NONE
};

/// Every row of divergences.md, in the order of the table.
const ROWS: &[Row] = &[row("jax-reserved-env", reserved_env)];

const GENERATORS: &[Generator] = &[Generator {
    reserved_env: &["JAX_PROCESS_ID"],
    ..Generator::new("jax", runtimes)
}];

fn runtimes() -> BoxedStrategy<Value> {
    runtime::with_policy("jax", 0.9, Just(json!({})).boxed())
}

fn reserved_env(seen: &Seen<'_>) -> bool {
    let names_it = |refusal: &Refusal| {
        refusal.error.starts_with("JAX_") && refusal.error.contains("is set by the plugin jax")
    };
    seen.we_refuse("spec.trainer.env[") && seen.our_refusal().is_some_and(names_it)
}

#[test]
#[ignore = "needs Go: `make test-reference` runs it"]
fn generated_inputs_differ_as_listed() {
    compare(&GENERATORS[0], 1000);
}
