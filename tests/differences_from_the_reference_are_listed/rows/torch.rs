//! Differences of Torch.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::seen::Seen;

/// An env var that Torch sets.
pub(super) fn is_pet(path: &str) -> bool {
    path.contains(".env[PET_")
}

fn is_processes(seen: &Seen<'_>) -> bool {
    seen.path().contains(".env[PET_NPROC_PER_NODE]")
}

pub(super) fn env_without_trainer(seen: &Seen<'_>) -> bool {
    let path = seen.path();
    let of_node = path.contains(".containers[node].env[PET_")
        || path.contains(".containers[node].ports[29500]");
    of_node && seen.policy()["torch"].is_object() && seen.trainer().is_null()
}

/// Returns the lists and names of the resources in requirements.
fn named(requirements: &Value) -> BTreeSet<(&'static str, &str)> {
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
    let given = &seen.trainer()["resourcesPerNode"];
    let forgotten = |container: &Value| {
        named(&container["resources"])
            .difference(&named(given))
            .count()
            > 0
    };
    is_processes(seen) && given.is_object() && seen.node_containers().any(forgotten)
}

pub(super) fn accelerators(seen: &Seen<'_>) -> bool {
    // A resource that counts as an accelerator on only one side.
    let disputed = |name: &str| {
        let known = name.starts_with("nvidia.com/mig-")
            || name.starts_with("google.com/")
            || name.starts_with("habana.ai/");
        name.contains("gpu") && name != "nvidia.com/gpu" || known
    };
    let of_container = seen
        .node_containers()
        .flat_map(|container| named(&container["resources"]));
    let mut all = of_container.chain(named(&seen.trainer()["resourcesPerNode"]));
    is_processes(seen) && all.any(|(_, name)| disputed(name))
}

pub(super) fn master_address(seen: &Seen<'_>) -> bool {
    let job = seen.job["metadata"]["name"].as_str().unwrap_or_default();
    let subdomain = seen.runtime["spec"]["template"]["spec"]["network"]["subdomain"].as_str();
    let address = |pods: &Value| {
        let pods = pods["name"].as_str().unwrap_or_default();
        Value::from(format!("{job}-{pods}-0-0.{}", subdomain.unwrap_or(job)))
    };
    let is_one = seen
        .replicated_jobs()
        .any(|pods| seen.ours() == Some(&address(pods)));
    seen.path().ends_with(".env[PET_MASTER_ADDR].value") && is_one
}

pub(super) fn ports(seen: &Seen<'_>) -> bool {
    // One of them is duplicated or missing.
    let path = seen.path();
    let twice = path.ends_with(".ports") && seen.theirs().is_some_and(Value::is_array);
    let lost = path.ends_with(']') && path.contains(".ports[") && seen.theirs().is_none();
    twice || lost && seen.policy()["torch"].is_object() && !env_without_trainer(seen)
}

pub(super) fn env_sources(seen: &Seen<'_>) -> bool {
    let lost = [
        ".valueFrom.fieldRef.apiVersion",
        ".valueFrom.fileKeyRef",
        ".valueFrom",
    ];
    seen.theirs().is_none() && lost.iter().any(|end| seen.path().ends_with(end))
}

pub(super) fn runtime_processes(seen: &Seen<'_>) -> bool {
    let field = "spec.mlPolicy.torch.";
    let fields = ["numProcPerNode", "elasticPolicy"];
    let of_value = is_processes(seen) && seen.policy()["torch"]["numProcPerNode"] != Value::Null;
    of_value
        || fields.iter().any(|name| {
            seen.they_drop(&format!("{field}{name}")) || seen.we_refuse(&format!("{field}{name}"))
        })
}

pub(super) fn port_name(seen: &Seen<'_>) -> bool {
    seen.path().contains(".ports[29500].") && seen.theirs().is_none()
}

/// An env var that references others, more of which precede it on one side.
pub(super) fn env_reference(seen: &Seen<'_>) -> bool {
    let count = |names: Option<&Value>| names.and_then(Value::as_array).map_or(0, Vec::len);
    seen.path().ends_with("].expands") && count(seen.ours()) > count(seen.theirs())
}

pub(super) fn torch_without_trainer(seen: &Seen<'_>) -> bool {
    seen.our_refusal()
        .is_some_and(|refusal| refusal.error.starts_with("torch needs a container"))
}
