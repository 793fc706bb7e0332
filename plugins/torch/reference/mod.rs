//! Differences of Torch from the reference. This is a module of host/divergences.

mod line;
mod refusals;
mod rows;
mod torchtune_rows;

use serde_json::{Value, json};

use super::{Plugin, Row, row};
use crate::{
    expected::env,
    rows::uses::{has_disputed_devices, is_set},
    seen::Subject,
};

pub(crate) const PLUGIN: Plugin = Plugin {
    rows: ROWS,
    effect: None,
};

/// Every row of divergences.md, in the order of the table, and what else shows a row that plugins share.
const ROWS: &[Row] = &[
    row("runtime-processes", torchtune_rows::runtime_processes)
        .expects(line::is_completed_or_env)
        .says(refusals::RUNTIME_PROCESSES)
        .when(has_processes),
    row("torch-elastic", rows::torch_elastic)
        .expects(env::is_right)
        .says(refusals::ELASTIC)
        .when(is_elastic),
    row("torchtune-model", torchtune_rows::model)
        .expects(line::is_completed)
        .says(refusals::MODEL)
        .when(has_configuration),
    row("torchtune-devices", torchtune_rows::devices)
        .expects(line::is_completed)
        .says(refusals::DEVICES)
        .when(has_disputed),
    row("torchtune-address", torchtune_rows::address)
        .expects(line::is_completed)
        .when(has_other_address),
    row("torchtune-runtime-args", torchtune_rows::runtime_args)
        .expects(line::is_completed)
        .when(has_runtime_args),
    row(
        "torchtune-repeated-settings",
        torchtune_rows::repeated_settings,
    )
    .expects(line::is_completed)
    .when(has_args),
    row("torchtune-runtime-command", torchtune_rows::runtime_command)
        .expects(line::is_completed_with_env)
        .says(refusals::RUNTIME_COMMAND)
        .when(has_runtime_command),
    row("torchtune-complete-line", torchtune_rows::complete_line)
        .expects(line::is_as_written)
        .says(refusals::COMPLETE_LINE)
        .when(has_args),
    row("torchtune-options", torchtune_rows::options).says(refusals::OPTIONS),
    row("torchtune-configuration", torchtune_rows::configuration).says(refusals::CONFIGURATION),
    row("counts", torchtune_rows::nodes_of_the_template).expects(line::is_completed),
];

fn has_processes(job: &Subject<'_>) -> bool {
    is_set(&job.policy()["torch"]["numProcPerNode"])
}

fn is_elastic(job: &Subject<'_>) -> bool {
    let torch = &job.policy()["torch"];
    torch["elastic"].is_object() || torch["elasticPolicy"].is_object()
}

/// Whether the recipe is left to the policy.
fn is_torchtune(job: &Subject<'_>) -> bool {
    job.policy()["torch"].is_object() && job.trainer()["command"] == json!(["tune", "run"])
}

fn has_other_address(job: &Subject<'_>) -> bool {
    let network = &job.runtime["spec"]["template"]["spec"]["network"];
    let is_node = |of: &Value| of["name"] == "node";
    is_torchtune(job) && (network["subdomain"].is_string() || !job.replicated_jobs().any(is_node))
}

fn has_runtime_args(job: &Subject<'_>) -> bool {
    is_torchtune(job)
        && job
            .node_containers()
            .any(|container| is_set(&container["args"]))
}

fn has_args(job: &Subject<'_>) -> bool {
    is_torchtune(job) && is_set(&job.trainer()["args"])
}

/// Whether the runtime's own command is left to the policy.
fn has_runtime_command(job: &Subject<'_>) -> bool {
    let is_tune = |container: &Value| container["command"] == json!(["tune", "run"]);
    job.trainer()["command"].is_null() && job.node_containers().any(is_tune)
}

/// Whether the runtime names a configuration.
fn has_configuration(job: &Subject<'_>) -> bool {
    let names = |container: &Value| container.to_string().contains("--config");
    is_torchtune(job) && job.node_containers().any(names)
}

fn has_disputed(job: &Subject<'_>) -> bool {
    let is_explicit = job.trainer()["numProcPerNode"].as_u64() > Some(1);
    is_torchtune(job) && (is_explicit || has_disputed_devices(job))
}
