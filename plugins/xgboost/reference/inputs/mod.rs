//! Inputs of XGBoost, generated. This is a module of tests/differences_from_the_reference_are_listed.

use proptest::{prelude::*, strategy::BoxedStrategy};
use serde_json::{Value, json};

use super::{Generator, compare};
use crate::differences_from_the_reference_are_listed::generated::runtime;

pub(crate) const GENERATORS: &[Generator] = &[Generator {
    reserved_env: &["DMLC_TASK_ID"],
    ..Generator::new("xgboost", runtimes)
}];

fn runtimes() -> BoxedStrategy<Value> {
    runtime::with_policy("xgboost", 0.9, Just(json!({})).boxed())
}

#[test]
#[ignore = "needs Go: `make test-reference` runs it"]
fn generated_inputs_differ_as_listed() {
    compare(&GENERATORS[0], 1000);
}
