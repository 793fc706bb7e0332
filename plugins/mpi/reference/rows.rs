//! Differences of MPI.

use serde_json::Value;

use crate::seen::{Seen, is_trainer};

/// Returns whether the runtime is one of MPI.
fn is_mpi(seen: &Seen<'_>) -> bool {
    seen.policy()["mpi"].is_object()
}

/// Returns whether the launcher is a node.
fn launcher_is_node(seen: &Seen<'_>) -> bool {
    seen.policy()["mpi"]["runLauncherAsNode"] == true
}

/// Returns the hosts of a hostfile, each with its slots.
fn hosts(hostfile: Option<&Value>) -> Vec<(&str, &str)> {
    let text = hostfile.and_then(Value::as_str).unwrap_or_default();
    let split = |line| str::split_once(line, " slots=").unwrap_or((line, ""));
    text.lines().map(split).collect()
}

fn is_hostfile(seen: &Seen<'_>) -> bool {
    seen.path() == "data[hostfile]"
}

/// Returns the pod of a host name.
fn pod(name: &str) -> &str {
    name.split_once('.').map_or(name, |(pod, _)| pod)
}

/// Returns whether both sides have the same pods.
fn same_hosts(seen: &Seen<'_>) -> bool {
    let pods = |side| -> Vec<&str> { hosts(side).into_iter().map(|(name, _)| pod(name)).collect() };
    pods(seen.ours()) == pods(seen.theirs())
}

fn is_count(path: &str) -> bool {
    let ends = [".parallelism", ".completions", "].count"];
    ends.iter().any(|end| path.ends_with(end))
}

/// An implementation that the reference's CRD does not accept, or the empty one with which its plugin fails.
pub(super) fn implementations(seen: &Seen<'_>) -> bool {
    let implementation = seen.policy()["mpi"]["mpiImplementation"].as_str();
    let is_other = implementation.is_some_and(|name| ["Intel", "MPICH", ""].contains(&name));
    is_other && seen.their_refusal().is_some()
}

pub(super) fn open_mpi_5(seen: &Seen<'_>) -> bool {
    is_mpi(seen) && seen.path().contains(".env[PRTE_MCA_") && seen.theirs().is_none()
}

/// The launcher's own line has its host name.
pub(super) fn own_line(seen: &Seen<'_>) -> bool {
    if !(is_mpi(seen) && launcher_is_node(seen) && is_hostfile(seen) && same_hosts(seen)) {
        return false;
    }
    let (ours, theirs) = (hosts(seen.ours()), hosts(seen.theirs()));
    let mut lines = ours.iter().zip(&theirs);
    lines.all(|((name, slots), (their_name, their_slots))| {
        let is_launchers = pod(name).ends_with("-launcher-0-0") && their_name.contains('.');
        (name == their_name || is_launchers) && (slots == their_slots || slots_are_ours(seen))
    })
}

/// The Secret of the keys can be changed.
pub(super) fn mutable_keys(seen: &Seen<'_>) -> bool {
    is_mpi(seen) && seen.path() == "immutable" && seen.ours().is_none()
}

/// A runtime with which mpirun cannot run.
pub(super) fn unfit(seen: &Seen<'_>) -> bool {
    let reasons = [
        "would replace their SSH server",
        "is reserved by the MPI plugin",
        "finds the pods by their DNS names",
        "finds the pods by their indexed names",
    ];
    is_mpi(seen)
        && seen
            .our_refusal()
            .is_some_and(|refusal| reasons.iter().any(|reason| refusal.error.contains(reason)))
}

/// The slots are the processes of each pod set's pods.
pub(super) fn slots(seen: &Seen<'_>) -> bool {
    let in_environment = seen
        .path()
        .contains(".env[OMPI_MCA_orte_set_default_slots]");
    is_mpi(seen)
        && slots_are_ours(seen)
        && (in_environment || is_hostfile(seen) && same_hosts(seen))
}

/// Returns whether neither the TrainJob nor the runtime sets a number of processes.
fn slots_are_ours(seen: &Seen<'_>) -> bool {
    let is_given = !seen.trainer()["numProcPerNode"].is_null()
        || seen.policy()["mpi"]["numProcPerNode"].as_u64() > Some(1);
    !is_given
}

/// The launcher is one pod, and the runtime sets the number of nodes.
pub(super) fn runtime_nodes(seen: &Seen<'_>) -> bool {
    let policy = seen.policy();
    let of_runtime = policy["numNodes"].is_u64();
    let counts = is_count(seen.path()) || is_hostfile(seen) && !same_hosts(seen);
    is_mpi(seen) && of_runtime && counts
}

/// The hosts of nodes that nothing counts but their own Job, whose completions the reference ignores.
pub(super) fn hosts_of_the_template(seen: &Seen<'_>) -> bool {
    let mut nodes_jobs = seen.replicated_jobs().filter(|job| job["name"] == "node");
    let has_fewer = nodes_jobs.any(|job| {
        let count = |field: &str| job["template"]["spec"][field].as_u64();
        count("completions") < count("parallelism") && count("completions").is_some()
    });
    is_mpi(seen) && seen.nodes().is_null() && has_fewer && is_hostfile(seen) && !same_hosts(seen)
}

pub(super) fn one_node(seen: &Seen<'_>) -> bool {
    let is_one = seen.launcher_is_the_only_node();
    let none = seen.path().ends_with("[node].replicas") && seen.ours() == Some(&0.into());
    let counts = is_count(seen.path()) || is_hostfile(seen) && !same_hosts(seen);
    is_one && (none || counts)
}

pub(super) fn resources(seen: &Seen<'_>) -> bool {
    let given = seen.trainer()["resourcesPerNode"].is_object();
    let resources = seen.path().contains(".containers[node].resources") || seen.needs(".requests[");
    let differs = !launcher_is_node(seen) || is_of_unlabelled_launcher(seen);
    is_mpi(seen) && given && resources && differs
}

/// Returns whether the path is that of a launcher whose Job template does not have the label of the trainer.
fn is_of_unlabelled_launcher(seen: &Seen<'_>) -> bool {
    let is_its = |job: &Value| job["name"] == "launcher" && seen.is_of(job);
    let mut jobs = seen.replicated_jobs();
    jobs.any(|job| is_its(job) && !is_trainer(job))
}

pub(super) fn image(seen: &Seen<'_>) -> bool {
    let path = "spec.replicatedJobs[node].template.spec.template.spec.containers[node]";
    let rest = seen.path().strip_prefix(path);
    let given = |field: &str| !seen.trainer()[field].is_null();
    is_mpi(seen)
        && rest.is_some_and(|rest| {
            rest == ".image" && given("image") || rest.starts_with(".env") && given("env")
        })
}

pub(super) fn roots_key(seen: &Seen<'_>) -> bool {
    let path = seen.policy()["mpi"]["sshAuthMountPath"].as_str();
    let of_root = path.is_none_or(|path| path.starts_with("/root/"));
    is_mpi(seen) && of_root && seen.path().ends_with("[id_rsa].mode")
}

/// Only the owner of the private key can read it.
pub(super) fn is_private(seen: &Seen<'_>) -> bool {
    seen.ours() == Some(&0o600.into())
}

/// A setting with which MPI cannot run.
pub(super) fn runtime_not_whole(seen: &Seen<'_>) -> bool {
    let reasons = [
        "mpi needs ",
        "must have a container `node`, which runs",
        "must be 1, because mpirun",
        "must be 1; found ",
        "other pod sets already use",
    ];
    is_mpi(seen)
        && seen
            .our_refusal()
            .is_some_and(|refusal| reasons.iter().any(|reason| refusal.error.contains(reason)))
}

pub(super) fn mount_path(seen: &Seen<'_>) -> bool {
    seen.we_refuse("spec.mlPolicy.mpi.sshAuthMountPath")
}

pub(super) fn command(seen: &Seen<'_>) -> bool {
    let is_blank = "must begin with the name of a program; found an empty word";
    is_mpi(seen)
        && seen
            .our_refusal()
            .is_some_and(|refusal| refusal.error.starts_with(is_blank))
}
