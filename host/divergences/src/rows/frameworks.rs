//! Differences of the frameworks whose nodes meet at the first one: Torch, JAX and XGBoost.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    answer::Refusal,
    expected::{devices::is_accelerator, env},
    seen::{Seen, Subject},
};

/// The beginnings of the env vars that these frameworks set.
pub(super) const PREFIXES: [&str; 3] = ["PET_", "JAX_", "DMLC_"];

/// Whether the runtime is one of these frameworks.
fn is_framework(seen: &Seen<'_>) -> bool {
    let keys = ["torch", "jax", "xgboost"];
    keys.iter().any(|key| seen.policy()[*key].is_object())
}

/// Whether the path is that of an env var of these frameworks.
pub(super) fn is_frameworks_env(path: &str) -> bool {
    PREFIXES
        .iter()
        .any(|prefix| path.contains(&format!(".env[{prefix}")))
}

/// Whether the path is that of a number that follows from the accelerators of a node.
pub(crate) fn is_of_accelerators(path: &str) -> bool {
    path.contains(".env[PET_NPROC_PER_NODE]") || path.contains(".env[DMLC_NUM_WORKER]")
}

fn is_processes(seen: &Seen<'_>) -> bool {
    is_of_accelerators(seen.path())
}

pub(super) fn env_without_trainer(seen: &Seen<'_>) -> bool {
    let path = seen.path();
    let of_node = path.contains(".containers[node].env[") && is_frameworks_env(path)
        || path.contains(".containers[node].ports[29500]");
    of_node && is_framework(seen) && seen.trainer().is_null()
}

/// Returns the lists and names of the resources in requirements.
pub(crate) fn named(requirements: &Value) -> BTreeSet<(&'static str, &str)> {
    let names = |list| {
        requirements[list]
            .as_object()
            .into_iter()
            .flatten()
            .map(move |(name, _)| (list, name.as_str()))
    };
    ["requests", "limits"].into_iter().flat_map(names).collect()
}

pub(super) fn partial_override(seen: &Seen<'_>) -> bool {
    is_processes(seen) && is_partial_override(seen)
}

/// Whether the TrainJob's resources lack some of the runtime's.
pub(crate) fn is_partial_override(seen: &Subject<'_>) -> bool {
    let given = &seen.trainer()["resourcesPerNode"];
    let forgotten = |container: &Value| {
        named(&container["resources"])
            .difference(&named(given))
            .count()
            > 0
    };
    given.is_object() && seen.node_containers().any(forgotten)
}

pub(super) fn accelerators(seen: &Seen<'_>) -> bool {
    is_processes(seen) && has_disputed_accelerators(seen)
}

/// Whether a node requests something that is an accelerator for one side only.
pub(crate) fn has_disputed_accelerators(seen: &Subject<'_>) -> bool {
    // The reference counts any name with `gpu`, and the amounts of GPU memory among these, so all but NVIDIA's whole GPUs are disputed.
    let disputed = |name: &str| {
        let is_of_reference = name.contains("gpu");
        is_of_reference && name != "nvidia.com/gpu"
            || is_of_reference != is_accelerator(name, seen.accelerators)
    };
    let of_container = seen
        .node_containers()
        .flat_map(|container| named(&container["resources"]));
    let mut all = of_container.chain(named(&seen.trainer()["resourcesPerNode"]));
    all.any(|(_, name)| disputed(name))
}

/// Whether this is the address of the first pod of one of the replicated jobs, with or without the port.
pub(crate) fn is_first_pod(seen: &Seen<'_>, given: &str) -> bool {
    let job = seen.job["metadata"]["name"].as_str().unwrap_or_default();
    let subdomain = seen.runtime["spec"]["template"]["spec"]["network"]["subdomain"].as_str();
    let address = |pods: &Value| {
        let pods = pods["name"].as_str().unwrap_or_default();
        format!("{job}-{pods}-0-0.{}", subdomain.unwrap_or(job))
    };
    let given = given.strip_suffix(":29500").unwrap_or(given);
    seen.replicated_jobs().any(|pods| given == address(pods))
}

pub(super) fn master_address(seen: &Seen<'_>) -> bool {
    let ours = seen.ours().and_then(Value::as_str).unwrap_or_default();
    let names = [
        "PET_MASTER_ADDR",
        "JAX_COORDINATOR_ADDRESS",
        "DMLC_TRACKER_URI",
    ];
    is_first_pod(seen, ours)
        && names
            .iter()
            .any(|name| seen.path().ends_with(&format!(".env[{name}].value")))
}

pub(super) fn ports(seen: &Seen<'_>) -> bool {
    // One of them is duplicated or missing.
    let path = seen.path();
    let twice = path.ends_with(".ports") && seen.theirs().is_some_and(Value::is_array);
    let lost = path.ends_with(']') && path.contains(".ports[") && seen.theirs().is_none();
    twice || lost && is_framework(seen) && !env_without_trainer(seen)
}

pub(super) fn env_sources(seen: &Seen<'_>) -> bool {
    let lost = [
        ".valueFrom.fieldRef.apiVersion",
        ".valueFrom.fileKeyRef",
        ".valueFrom",
    ];
    seen.theirs().is_none() && lost.iter().any(|end| seen.path().ends_with(end))
}

pub(super) fn port_name(seen: &Seen<'_>) -> bool {
    seen.path().contains(".ports[29500].") && seen.theirs().is_none()
}

/// What names the port on which the nodes meet, if the runtime chooses it by a port's name, or a TrainJob of JAX by its address.
pub(super) fn rendezvous_port(seen: &Seen<'_>) -> bool {
    let is_chosen = |port: &Value| {
        port["name"] == "rendezvous"
            && port["containerPort"] != 29500
            && matches!(port["protocol"].as_str(), None | Some("TCP"))
    };
    let mut ports = seen
        .node_containers()
        .filter_map(|container| container["ports"].as_array());
    let path = seen.path();
    let is_named = [
        ".env[PET_MASTER_PORT].value",
        ".env[JAX_COORDINATOR_ADDRESS].value",
        ".env[DMLC_TRACKER_PORT].value",
    ]
    .iter()
    .any(|end| path.ends_with(end));
    let is_opened = path.ends_with(".ports[29500]") && seen.ours().is_none();
    let vars = seen.trainer()["env"].as_array();
    let is_address = |var: &Value| var["name"] == "JAX_COORDINATOR_ADDRESS";
    let is_chosen_by_job = vars.is_some_and(|vars| vars.iter().any(is_address));
    (is_named || is_opened) && ports.any(|ports| ports.iter().any(is_chosen))
        || is_opened && is_chosen_by_job
}

/// An env var that references others, more of which precede it on one side.
pub(super) fn env_reference(seen: &Seen<'_>) -> bool {
    let count = |names: Option<&Value>| names.and_then(Value::as_array).map_or(0, Vec::len);
    seen.path().ends_with("].expands") && count(seen.ours()) > count(seen.theirs())
}

pub(super) fn without_trainer_pods(seen: &Seen<'_>) -> bool {
    let starts = ["torch", "jax", "xgboost"].map(|name| format!("{name} needs a container"));
    seen.our_refusal()
        .is_some_and(|refusal| starts.iter().any(|start| refusal.error.starts_with(start)))
}

/// A reserved env var that only the reference refuses, because it has the value that the policy sets.
pub(super) fn same_env(seen: &Seen<'_>) -> bool {
    let is_reserved = |refusal: &Refusal| {
        refusal.field == "spec.trainer.env" && refusal.error.contains("must not have reserved envs")
    };
    seen.trainer()["env"].is_array() && seen.their_refusal().is_some_and(is_reserved)
}

/// An env var of a framework, or the port on which its nodes meet.
pub(super) fn env_or_port(seen: &Seen<'_>) -> bool {
    match seen.path().contains(".ports[") {
        true => env::is_right_port(seen),
        false => env::is_right(seen),
    }
}
