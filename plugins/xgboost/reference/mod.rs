//! Differences of XGBoost from the reference, and generated inputs. This is a module of tests/differences_from_the_reference_are_listed.

use proptest::{prelude::*, strategy::BoxedStrategy};
use serde_json::{Value, json};

use super::{Generator, Plugin, Row, compare, row};
use crate::differences_from_the_reference_are_listed::{generated::runtime, seen::Seen};

pub(crate) const PLUGIN: Plugin = Plugin {
    rows: ROWS,
    generators: GENERATORS,
    ..Plugin::NONE
};

/// Every row of divergences.md, in the order of the table.
const ROWS: &[Row] = &[row("xgboost-workers", workers)];

const GENERATORS: &[Generator] = &[Generator {
    reserved_env: &["DMLC_TASK_ID"],
    ..Generator::new("xgboost", runtimes)
}];

fn runtimes() -> BoxedStrategy<Value> {
    runtime::with_policy("xgboost", 0.9, Just(json!({})).boxed())
}

fn workers(seen: &Seen<'_>) -> bool {
    // Theirs is a number of workers for each of the same nodes.
    let is_of_nodes = |per_node: u64| {
        let of = |side: Option<&Value>| side?.as_str()?.parse::<u64>().ok();
        let (ours, theirs) = (of(seen.ours())?, of(seen.theirs())?);
        let nodes = ours.checked_div(per_node)?;
        // Without `numNodes`, theirs is that of one node.
        let is_of_one = [seen.trainer(), seen.policy()]
            .iter()
            .all(|from| from["numNodes"].is_null());
        let is_theirs = is_of_one || theirs.is_multiple_of(nodes);
        Some(nodes > 0 && ours == nodes * per_node && is_theirs)
    };
    let per_node = seen.trainer()["numProcPerNode"].as_u64();
    seen.path().contains(".env[DMLC_NUM_WORKER]")
        && per_node.and_then(is_of_nodes).unwrap_or_default()
}

#[test]
#[ignore = "needs Go: `make test-reference` runs it"]
fn generated_inputs_differ_as_listed() {
    compare(&GENERATORS[0], 1000);
}
