//! Differences of MPI from the reference. This is a module of host/divergences.

mod expected;
mod refusals;
mod rows;

use super::{Plugin, Row, row};
use crate::{
    expected::nothing,
    rows::uses::{has_devices, is_set, mpi},
    seen::Subject,
};

pub(crate) const PLUGIN: Plugin = Plugin {
    rows: ROWS,
    effect: None,
};

/// Every row of divergences.md, in the order of the table, and what else shows a row that plugins share.
const ROWS: &[Row] = &[
    row("mpi-implementations", rows::implementations)
        .says(refusals::IMPLEMENTATIONS)
        .when(is_of_another),
    row("mpi-open-mpi-5", rows::open_mpi_5)
        .expects(expected::is_of_open_mpi)
        .when(mpi),
    row("mpi-own-line", rows::own_line)
        .expects(expected::is_hostfile)
        .when(has_launcher_as_node),
    row("mpi-slots", rows::slots)
        .expects(expected::has_slots)
        .when(has_no_slots),
    row("mpi-runtime-nodes", rows::runtime_nodes)
        .expects(expected::has_nodes)
        .when(has_nodes),
    row("mpi-one-node", rows::one_node)
        .expects(expected::has_nodes)
        .when(is_one_node),
    row("mpi-resources", rows::resources)
        .expects(expected::has_resources)
        .when(has_resources),
    row("mpi-image", rows::image)
        .expects(expected::has_image_or_env)
        .when(has_image_or_env),
    row("mpi-roots-key", rows::roots_key)
        .expects(rows::is_private)
        .when(is_of_root),
    row("mpi-runtime-not-whole", rows::runtime_not_whole).says(refusals::RUNTIME_NOT_WHOLE),
    row("mpi-mount-path", rows::mount_path).says(refusals::MOUNT_PATH),
    row("mpi-command", rows::command).says(refusals::COMMAND),
    row("mpi-unfit", rows::unfit).says(refusals::UNFIT),
    row("mpi-mutable-keys", rows::mutable_keys)
        .expects(nothing)
        .when(mpi),
    row("counts", rows::hosts_of_the_template).expects(expected::is_hostfile),
];

fn is_of_another(job: &Subject<'_>) -> bool {
    let implementation = job.policy()["mpi"]["mpiImplementation"].as_str();
    implementation.is_some_and(|name| name != "OpenMPI")
}

fn has_launcher_as_node(job: &Subject<'_>) -> bool {
    job.policy()["mpi"]["runLauncherAsNode"] == true
}

/// Whether the number of slots is left to the policy.
fn has_no_slots(job: &Subject<'_>) -> bool {
    let of_runtime = job.policy()["mpi"]["numProcPerNode"].as_u64();
    let is_given = !job.trainer()["numProcPerNode"].is_null() || of_runtime.unwrap_or(1) > 1;
    mpi(job) && !is_given && has_devices(job)
}

fn has_nodes(job: &Subject<'_>) -> bool {
    mpi(job) && !job.policy()["numNodes"].is_null()
}

fn is_one_node(job: &Subject<'_>) -> bool {
    job.launcher_is_the_only_node()
}

fn has_resources(job: &Subject<'_>) -> bool {
    mpi(job) && job.trainer()["resourcesPerNode"].is_object()
}

fn has_image_or_env(job: &Subject<'_>) -> bool {
    mpi(job) && (is_set(&job.trainer()["image"]) || is_set(&job.trainer()["env"]))
}

fn is_of_root(job: &Subject<'_>) -> bool {
    let path = job.policy()["mpi"]["sshAuthMountPath"].as_str();
    mpi(job) && path.is_none_or(|path| path.starts_with("/root/"))
}
