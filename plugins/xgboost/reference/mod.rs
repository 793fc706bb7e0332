//! Differences of XGBoost from the reference. This is a module of host/divergences.

use serde_json::Value;

use super::{Plugin, Row, row};
use crate::{
    expected::env,
    seen::{Seen, Subject},
};

pub(crate) const PLUGIN: Plugin = Plugin {
    rows: ROWS,
    effect: None,
};

/// Every row of divergences.md, in the order of the table.
const ROWS: &[Row] = &[row("xgboost-workers", workers)
    .expects(env::is_right)
    .when(has_processes)];

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

fn has_processes(job: &Subject<'_>) -> bool {
    job.policy()["xgboost"].is_object() && !job.trainer()["numProcPerNode"].is_null()
}
