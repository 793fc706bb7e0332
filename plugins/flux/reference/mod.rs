//! Differences of Flux from the reference. This is a module of host/divergences.

mod effect;
mod rows;

use serde_json::Value;

use super::{Plugin, Row, row};
use crate::{rows::uses::flux, seen::Subject};

pub(crate) const PLUGIN: Plugin = Plugin {
    rows: ROWS,
    effect: Some(effect::effect),
};

/// Every row of divergences.md, in the order of the table.
const ROWS: &[Row] = &[
    row("flux-without-trainer", rows::without_trainer).when(has_no_nodes),
    row("flux-words", rows::words).when(flux),
    row("flux-args", rows::args).when(has_args),
    row("flux-tasks", rows::tasks).when(has_no_tasks),
    row("flux-cores", rows::cores).when(flux),
    row("flux-binding", rows::binding).when(flux),
    row("flux-gpus", rows::gpus).when(flux),
    row("flux-devices", rows::devices).when(flux),
    row("flux-address", rows::address).when(has_subdomain),
    row("flux-pod-set", rows::pod_set).when(is_elsewhere),
    row("flux-volume", rows::volume).when(flux),
    row("flux-shared-memory", rows::shared_memory).when(flux),
    row("flux-spread", rows::spread).when(flux),
    row("flux-group", rows::group).when(flux),
    row("flux-installer", rows::installer).when(flux),
    row("flux-command", rows::command),
    row("flux-network", rows::network).when(flux),
    row("flux-architecture", rows::architecture).when(flux),
    row("flux-installer-fits", rows::installer_fits).when(flux),
    row("flux-settings", rows::settings),
    row("flux-unfit", rows::unfit),
    row("flux-failure", rows::failure).when(flux),
];

/// Whether both the TrainJob and the runtime have arguments.
fn has_args(job: &Subject<'_>) -> bool {
    let has_args = |container: &Value| container["args"].is_array();
    flux(job) && job.trainer()["args"].is_array() && job.node_containers().any(has_args)
}

fn has_subdomain(job: &Subject<'_>) -> bool {
    flux(job) && job.runtime["spec"]["template"]["spec"]["network"]["subdomain"].is_string()
}

/// Whether the trainer's replicated job has another name than the reference expects.
fn is_elsewhere(job: &Subject<'_>) -> bool {
    flux(job) && !job.replicated_jobs().any(|of| of["name"] == "node")
}

/// Whether the number of tasks is left to the policy.
fn has_no_tasks(job: &Subject<'_>) -> bool {
    let of_runtime = job.policy()["flux"]["numProcPerNode"].as_u64();
    flux(job) && job.trainer()["numProcPerNode"].is_null() && of_runtime.unwrap_or(1) == 1
}

fn has_no_nodes(job: &Subject<'_>) -> bool {
    flux(job) && job.trainer()["numNodes"].is_null()
}
