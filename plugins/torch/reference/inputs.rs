//! Runtimes of Torch.

use proptest::{prelude::*, strategy::BoxedStrategy};
use serde_json::{Value, json};

use crate::differences_from_the_reference_are_listed::generated::{fields, one_of, runtime};

pub(super) fn runtime() -> BoxedStrategy<Value> {
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
