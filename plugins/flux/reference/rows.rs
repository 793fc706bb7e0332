//! Differences of Flux.

use serde_json::Value;

use crate::{answer::Refusal, seen::Seen};

fn is_flux(seen: &Seen<'_>) -> bool {
    seen.policy()["flux"].is_object()
}

/// Returns whether a fact of the scripts differs.
fn fact(seen: &Seen<'_>, name: &str) -> bool {
    seen.path() == format!("data[{name}]")
}

fn we_say(seen: &Seen<'_>, words: &str) -> bool {
    let says = |refusal: &Refusal| refusal.error.contains(words);
    is_flux(seen) && seen.our_refusal().is_some_and(says)
}

pub(super) fn without_trainer(seen: &Seen<'_>) -> bool {
    let panics = |refusal: &Refusal| refusal.by == "panic";
    is_flux(seen)
        && seen.trainer()["numNodes"].is_null()
        && seen.their_refusal().is_some_and(panics)
}

pub(super) fn words(seen: &Seen<'_>) -> bool {
    let list = |value: Option<&Value>| -> Vec<String> {
        let items = value.and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let (ours, theirs) = (list(seen.ours()), list(seen.theirs()));
    let is_split = ours.iter().any(|word| word.split_whitespace().count() != 1);
    seen.path().ends_with(".fluxRuns") && is_split && theirs.len() >= ours.len().min(2)
}

pub(super) fn args(seen: &Seen<'_>) -> bool {
    let (Some(ours), Some(theirs)) = (seen.ours(), seen.theirs()) else {
        return false;
    };
    let (ours, theirs) = (ours.as_array(), theirs.as_array());
    let runtimes = |container: &Value| container["args"].is_array();
    seen.path().ends_with(".fluxRuns")
        && seen.trainer()["args"].is_array()
        && theirs.map_or(0, Vec::len) > ours.map_or(0, Vec::len)
        && seen.node_containers().any(runtimes)
}

pub(super) fn tasks(seen: &Seen<'_>) -> bool {
    let given = |number: &Value| number.as_u64().is_some_and(|number| number > 1);
    let is_given = !seen.trainer()["numProcPerNode"].is_null()
        || given(&seen.policy()["flux"]["numProcPerNode"]);
    let follows = ["tasksPerNode", "cores"];
    !is_given && follows.iter().any(|name| fact(seen, name))
}

pub(super) fn cores(seen: &Seen<'_>) -> bool {
    fact(seen, "cores")
}

pub(super) fn binding(seen: &Seen<'_>) -> bool {
    fact(seen, "cpuAffinity")
}

/// The devices of a node are allocated to the node and not per task.
pub(super) fn gpus(seen: &Seen<'_>) -> bool {
    fact(seen, "gpusAskedPerNode")
}

pub(super) fn devices(seen: &Seen<'_>) -> bool {
    fact(seen, "gpus")
}

pub(super) fn address(seen: &Seen<'_>) -> bool {
    let network = &seen.runtime["spec"]["template"]["spec"]["network"];
    fact(seen, "connect") && network["subdomain"].is_string()
}

/// Returns whether the trainer's replicated job has another name than the reference expects.
fn is_elsewhere(seen: &Seen<'_>) -> bool {
    let is_node = |job: &Value| job["name"] == "node";
    !seen.replicated_jobs().any(is_node)
}

pub(super) fn pod_set(seen: &Seen<'_>) -> bool {
    let path = seen.path();
    let is_order = path.ends_with(".initContainers.order");
    let of_pods = path.starts_with("spec.replicatedJobs[") && (seen.theirs().is_none() || is_order);
    is_flux(seen) && is_elsewhere(seen) && (of_pods || fact(seen, "lead") || fact(seen, "hosts"))
}

pub(super) fn volume(seen: &Seen<'_>) -> bool {
    let path = seen.path();
    path.ends_with(".volumeMounts[/etc/flux-config].name")
        || path.ends_with(".volumes[flux-config]")
        || path.ends_with("-flux-entrypoint]") && path.contains(".volumes[")
}

pub(super) fn shared_memory(seen: &Seen<'_>) -> bool {
    let path = seen.path();
    is_flux(seen)
        && (path.contains(".volumes[shared-memory]") || path.contains(".volumeMounts[/dev/shm]"))
}

pub(super) fn spread(seen: &Seen<'_>) -> bool {
    let ours = seen.ours().map(Value::to_string).unwrap_or_default();
    seen.path().contains(".affinity") && ours.contains("jobset.sigs.k8s.io/replicatedjob-name")
}

pub(super) fn group(seen: &Seen<'_>) -> bool {
    let path = seen.path();
    is_flux(seen)
        && seen.theirs().is_none()
        && (path.ends_with(".securityContext.fsGroup") || path.ends_with(".securityContext"))
}

pub(super) fn installer(seen: &Seen<'_>) -> bool {
    let refused = |refusal: &Refusal| refusal.error.contains("'flux-installer' is reserved");
    is_flux(seen) && seen.their_refusal().is_some_and(refused)
}

pub(super) fn command(seen: &Seen<'_>) -> bool {
    we_say(seen, "Flux cannot use the image's default command")
        || we_say(seen, "must begin with the name of a program")
}

/// The brokers listen on all devices, unless an env var names one.
pub(super) fn network(seen: &Seen<'_>) -> bool {
    fact(seen, "bind") && seen.ours().is_some_and(|ours| ours == "tcp://*:%p")
}

pub(super) fn architecture(seen: &Seen<'_>) -> bool {
    let ours = seen.ours().map(Value::to_string).unwrap_or_default();
    let path = seen.path();
    let is_placed = path.contains(".nodeSelector") && seen.theirs().is_none();
    let is_image = path.ends_with(".initContainers[flux-installer].image");
    is_flux(seen) && (is_placed && ours.contains("amd64") || is_image && ours.contains(":arm-"))
}

/// The installer is accepted where the node container is. Kueue gives an installer without requests those of a LimitRange.
pub(super) fn installer_fits(seen: &Seen<'_>) -> bool {
    let is_range = |object: &Value| object["kind"] == "LimitRange";
    if is_flux(seen) && seen.needs(".requests[") && seen.documents.iter().any(is_range) {
        return true;
    }
    let fields = ["resources", "securityContext"];
    let of_installer = |field: &&str| {
        let path = format!(".initContainers[flux-installer].{field}");
        seen.path().contains(&path)
    };
    is_flux(seen) && seen.theirs().is_none() && fields.iter().any(of_installer)
}

pub(super) fn settings(seen: &Seen<'_>) -> bool {
    let all = [
        "the name of a network device",
        "a queue policy of Fluxion",
        "an image with a Flux view",
        "a duration of Flux",
    ];
    all.iter().any(|words| we_say(seen, words))
}

pub(super) fn unfit(seen: &Seen<'_>) -> bool {
    let all = [
        "derives its rank from the short host name",
        "Flux brokers connect by the DNS names",
        "derives its rank from the index",
        "derives its rank from the host name of its pod",
        "must finish before the node container starts",
        "is reserved by the Flux plugin",
        "is reserved for the init container",
        "flux needs a container `node`",
    ];
    all.iter().any(|words| we_say(seen, words))
}

/// A failed run fails the Job.
pub(super) fn failure(seen: &Seen<'_>) -> bool {
    let fields = [
        ".template.spec.backoffLimit",
        ".template.spec.restartPolicy",
    ];
    is_flux(seen)
        && seen.theirs().is_none()
        && fields.iter().any(|field| seen.path().ends_with(field))
}
