//! Differences of Flux from the reference. This is a module of host/divergences.

mod effect;
mod expected;
mod refusals;
mod rows;

use serde_json::Value;

use super::{Plugin, Row, row};
use crate::{
    rows::uses::{flux, has_devices, has_disputed_devices, requests},
    seen::Subject,
};

pub(crate) const PLUGIN: Plugin = Plugin {
    rows: ROWS,
    effect: Some(effect::effect),
};

/// Every row of divergences.md, in the order of the table.
const ROWS: &[Row] = &[
    row("flux-without-trainer", rows::without_trainer)
        .says(refusals::WITHOUT_TRAINER)
        .when(has_no_nodes),
    row("flux-words", rows::words)
        .expects(expected::runs_the_command)
        .when(has_words),
    row("flux-args", rows::args)
        .expects(expected::runs_the_command)
        .when(has_args),
    row("flux-tasks", rows::tasks)
        .expects(expected::is_fact)
        .when(has_no_tasks),
    row("flux-cores", rows::cores)
        .expects(expected::is_fact)
        .when(requests_cpus),
    row("flux-binding", rows::binding)
        .expects(expected::is_fact)
        .when(flux),
    row("flux-gpus", rows::gpus)
        .expects(expected::is_fact)
        .when(has_gpus),
    row("flux-devices", rows::devices)
        .expects(expected::is_fact)
        .when(has_disputed),
    row("flux-address", rows::address)
        .expects(expected::is_fact)
        .when(has_subdomain),
    row("flux-pod-set", rows::pod_set)
        .expects(expected::is_of_pods)
        .when(is_elsewhere),
    row("flux-volume", rows::volume)
        .expects(expected::has_volume)
        .when(flux),
    row("flux-shared-memory", rows::shared_memory)
        .expects(expected::is_of_pods)
        .when(flux),
    row("flux-spread", rows::spread)
        .expects(expected::spreads)
        .when(flux),
    row("flux-group", rows::group)
        .expects(expected::is_of_pods)
        .when(is_not_root),
    row("flux-installer", rows::installer).says(refusals::INSTALLER),
    row("flux-command", rows::command).says(refusals::COMMAND),
    row("flux-network", rows::network)
        .expects(expected::is_fact)
        .when(flux),
    row("flux-architecture", rows::architecture)
        .expects(expected::is_of_pods)
        .when(flux),
    row("flux-installer-fits", rows::installer_fits)
        .expects(expected::is_of_pods)
        .when(has_limits),
    row("flux-settings", rows::settings).says(refusals::SETTINGS),
    row("flux-unfit", rows::unfit).says(refusals::UNFIT),
    row("flux-failure", rows::failure)
        .expects(expected::is_of_pods)
        .when(flux),
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

fn requests_cpus(job: &Subject<'_>) -> bool {
    flux(job) && (requests(job, "cpu") || has_devices(job))
}

fn has_gpus(job: &Subject<'_>) -> bool {
    flux(job) && has_devices(job)
}

fn has_disputed(job: &Subject<'_>) -> bool {
    flux(job) && has_disputed_devices(job)
}

/// Whether a pod may run as another user than root.
fn is_not_root(job: &Subject<'_>) -> bool {
    let mut pods = job.pods().chain(job.patched_pods());
    flux(job) && pods.any(|pod| pod.to_string().contains("runAs"))
}

/// Whether a word of the command is several for a shell.
fn has_words(job: &Subject<'_>) -> bool {
    let lists = |of: &Value| ["command", "args"].map(|list| of[list].clone());
    let all = [job.trainer()].into_iter().chain(job.node_containers());
    let mut words = all.flat_map(lists);
    let is_split = |word: &Value| {
        let word = word.as_str().unwrap_or_default();
        word.split_whitespace().count() != 1
    };
    flux(job)
        && words.any(|list| {
            list.as_array()
                .is_some_and(|list| list.iter().any(is_split))
        })
}

/// Whether container `node` has resources or restrictions.
fn has_limits(job: &Subject<'_>) -> bool {
    let has_own = |container: &Value| {
        container["resources"].is_object() || container["securityContext"].is_object()
    };
    let is_range = |document: &Value| document["kind"] == "LimitRange";
    flux(job)
        && (job.node_containers().any(has_own)
            || job.trainer()["resourcesPerNode"].is_object()
            || job.patched_pods().next().is_some()
            || job.documents.iter().any(is_range))
}
