//! Which rows may concern a TrainJob, by what it and its runtime use, if the reference has made nothing of it that could be compared. Rows
//! that only refuse TrainJobs are not here, because a refusal shows them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::frameworks::{PREFIXES, has_disputed_accelerators, is_partial_override, named};
use crate::seen::{STEP, Subject, is_trainer};

/// Returns whether a TrainJob uses what a row is about.
pub type Uses = fn(&Subject<'_>) -> bool;

fn has(job: &Subject<'_>, keys: &[&str]) -> bool {
    keys.iter().any(|key| job.policy()[*key].is_object())
}

fn is_framework(job: &Subject<'_>) -> bool {
    has(job, &["torch", "jax", "xgboost"])
}

fn counts_processes(job: &Subject<'_>) -> bool {
    has(job, &["torch", "xgboost"])
}

pub(crate) fn flux(job: &Subject<'_>) -> bool {
    has(job, &["flux"])
}

pub(crate) fn mpi(job: &Subject<'_>) -> bool {
    has(job, &["mpi"])
}

pub(crate) fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => true,
    }
}

pub(super) fn env_without_trainer(job: &Subject<'_>) -> bool {
    is_framework(job) && job.trainer().is_null()
}

pub(super) fn partial_override(job: &Subject<'_>) -> bool {
    counts_processes(job) && is_partial_override(job)
}

pub(crate) fn accelerators(job: &Subject<'_>) -> bool {
    counts_processes(job) && has_disputed_accelerators(job)
}

/// The address follows a replicated job of another name, or a subdomain.
pub(super) fn master_address(job: &Subject<'_>) -> bool {
    let network = &job.runtime["spec"]["template"]["spec"]["network"];
    let is_named = |of: &Value| of["name"] == "node";
    is_framework(job) && (network["subdomain"].is_string() || !job.replicated_jobs().any(is_named))
}

fn ports<'d>(job: &Subject<'d>) -> impl Iterator<Item = &'d Value> {
    let ports = |container: &'d Value| container["ports"].as_array();
    job.node_containers().filter_map(ports).flatten()
}

/// A port without a name, beside others or that of a framework.
pub(super) fn unnamed_ports(job: &Subject<'_>) -> bool {
    let is_mixed = |container: &Value| {
        let ports = container["ports"].as_array();
        ports
            .is_some_and(|ports| ports.len() > 1 && ports.iter().any(|port| port["name"].is_null()))
    };
    let of_pod = |pod: &Value| containers(pod).any(is_mixed);
    let is_unnamed = |port: &Value| port["name"].is_null() || port["containerPort"] == 29500;
    is_framework(job) && ports(job).any(is_unnamed)
        || patches(job, &["ports"])
        || job.pods().any(of_pod)
}

/// Returns the containers and init containers of a pod.
fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["containers", "initContainers"].into_iter();
    lists.flat_map(|list| pod[list].as_array().into_iter().flatten())
}

pub(super) fn port_name(job: &Subject<'_>) -> bool {
    let loses = |port: &Value| {
        port["containerPort"] == 29500 && (is_set(&port["name"]) || is_set(&port["hostPort"]))
    };
    is_framework(job) && ports(job).any(loses)
}

pub(super) fn rendezvous_port(job: &Subject<'_>) -> bool {
    let is_chosen = |port: &Value| port["name"] == "rendezvous";
    let is_address = |var: &Value| var["name"] == "JAX_COORDINATOR_ADDRESS";
    is_framework(job) && (ports(job).any(is_chosen) || job_env(job).any(is_address))
}

fn job_env<'d>(job: &Subject<'d>) -> impl Iterator<Item = &'d Value> {
    job.trainer()["env"].as_array().into_iter().flatten()
}

pub(super) fn env_sources(job: &Subject<'_>) -> bool {
    let is_lost = |var: &Value| {
        let source = &var["valueFrom"];
        is_set(&source["fieldRef"]["apiVersion"]) || is_set(&source["fileKeyRef"])
    };
    let initializers = ["dataset", "model"].into_iter();
    let mut of_initializers = initializers.flat_map(|step| {
        job.job["spec"]["initializer"][step]["env"]
            .as_array()
            .into_iter()
            .flatten()
    });
    job_env(job).any(is_lost) || of_initializers.any(is_lost)
}

/// An env var that names another one.
pub(super) fn env_reference(job: &Subject<'_>) -> bool {
    let of_pods = job.pods().chain(job.patched_pods()).flat_map(containers);
    let of_pods = of_pods.flat_map(|container| container["env"].as_array().into_iter().flatten());
    let of_initializers =
        ["dataset", "model"].map(|step| &job.job["spec"]["initializer"][step]["env"]);
    let of_initializers = of_initializers
        .into_iter()
        .filter_map(Value::as_array)
        .flatten();
    let all: Vec<_> = of_pods.chain(job_env(job)).chain(of_initializers).collect();
    let names = all.iter().filter_map(|var| var["name"].as_str());
    let names: BTreeSet<_> = names.collect();
    let refers = |var: &&Value| {
        let value = var["value"].as_str().unwrap_or_default();
        let mut referenced = value.split("$(").skip(1);
        referenced.any(|rest| {
            let name = rest.split(')').next().unwrap_or_default();
            names.contains(name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        })
    };
    all.iter().any(refers)
}

pub(super) fn resources_without_policy(job: &Subject<'_>) -> bool {
    job.policy().is_null() && job.trainer()["resourcesPerNode"].is_object()
}

pub(super) fn container_claims(job: &Subject<'_>) -> bool {
    let has_claims = |container: &Value| is_set(&container["resources"]["claims"]);
    job.trainer()["resourcesPerNode"].is_object()
        && (job.node_containers().any(has_claims) || claims_in_use(job))
}

pub(super) fn claims_in_use(job: &Subject<'_>) -> bool {
    let claimed = |pod: &Value| is_set(&pod["resourceClaims"]);
    job.pods().any(claimed) || job.patched_pods().any(claimed) || old_overrides(job)
}

/// Counts in the template that no number of nodes replaces.
pub(crate) fn counts(job: &Subject<'_>) -> bool {
    let has_counts = |of: &Value| {
        let spec = &of["template"]["spec"];
        let counts = ["parallelism", "completions"].map(|count| spec[count].as_u64().unwrap_or(1));
        let is_counted = is_trainer(of) && !job.nodes().is_null() && !mpi(job);
        !is_counted && counts != [1, 1]
    };
    job.replicated_jobs().any(has_counts)
}

/// Whether a node has devices that the sides count differently.
pub(crate) fn has_disputed_devices(job: &Subject<'_>) -> bool {
    is_partial_override(job) || has_disputed_accelerators(job) || claims_in_use(job)
}

/// Returns the names of the resources of a node.
fn resources<'d>(job: &Subject<'d>) -> BTreeSet<&'d str> {
    let of_nodes = job
        .node_containers()
        .map(|container| &container["resources"]);
    let all = of_nodes.chain([&job.trainer()["resourcesPerNode"]]);
    all.flat_map(named).map(|(_, name)| name).collect()
}

/// Whether a node requests a resource whose name contains this text.
pub(crate) fn requests(job: &Subject<'_>, text: &str) -> bool {
    resources(job).iter().any(|name| name.contains(text))
}

/// Whether a node may have accelerators.
pub(crate) fn has_devices(job: &Subject<'_>) -> bool {
    resources(job).iter().any(|name| name.contains('/')) || claims_in_use(job)
}

pub(super) fn empty_image(job: &Subject<'_>) -> bool {
    job.trainer()["image"] == ""
}

pub(super) fn label_on_pod(job: &Subject<'_>) -> bool {
    let labelled = |of: &Value| {
        let on_pod = &of["template"]["spec"]["template"]["metadata"]["labels"][STEP];
        on_pod.is_string() && of["template"]["metadata"]["labels"][STEP].is_null()
    };
    job.replicated_jobs().any(labelled)
}

fn patches(job: &Subject<'_>, lists: &[&str]) -> bool {
    let in_lists = |of: &Value| lists.iter().any(|list| is_set(&of[*list]));
    let in_pod = |pod: &Value| {
        let containers = ["containers", "initContainers"].into_iter();
        let mut containers = containers.flat_map(|list| pod[list].as_array().into_iter().flatten());
        in_lists(pod) || containers.any(in_lists)
    };
    job.patched_pods().any(in_pod)
}

/// A patch of Kueue, whose parts that the runtime does not have are ignored.
pub(super) fn patch_finds_nothing(job: &Subject<'_>) -> bool {
    let names = |jobs: &Value| {
        let jobs = jobs.as_array().into_iter().flatten();
        let names = jobs.flat_map(|of| {
            let pod = &of["template"]["spec"]["template"]["spec"];
            let lists = ["containers", "initContainers"].into_iter();
            let containers = lists.flat_map(|list| pod[list].as_array().into_iter().flatten());
            let job = of["name"].to_string();
            let of_job =
                containers.map(|container| format!("{} {}", of["name"], container["name"]));
            [job].into_iter().chain(of_job).collect::<Vec<_>>()
        });
        names.collect::<BTreeSet<_>>()
    };
    let known = names(&job.runtime["spec"]["template"]["spec"]["replicatedJobs"]);
    let patched =
        |patch: &Value| names(&patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]);
    job.patches().any(|patch| !patched(patch).is_subset(&known))
}

pub(super) fn init_order(job: &Subject<'_>) -> bool {
    patches(job, &["initContainers"]) && job.pods().any(|pod| is_set(&pod["initContainers"]))
}

pub(super) fn two_sources(job: &Subject<'_>) -> bool {
    patches(job, &["volumes", "env"])
}

pub(super) fn read_only_false(job: &Subject<'_>) -> bool {
    patches(job, &["volumeMounts"])
}

pub(super) fn patch_claims(job: &Subject<'_>) -> bool {
    job.patched_pods().any(|pod| is_set(&pod["resourceClaims"]))
}

pub(super) fn old_overrides(job: &Subject<'_>) -> bool {
    let spec = &job.job["spec"];
    is_set(&spec["podTemplateOverrides"]) || is_set(&spec["podSpecOverrides"])
}

pub(super) fn old_metadata(job: &Subject<'_>) -> bool {
    is_set(&job.job["spec"]["labels"]) || is_set(&job.job["spec"]["annotations"])
}

pub(super) fn old_processes(job: &Subject<'_>) -> bool {
    job.trainer()["numProcPerNode"].is_string()
}

pub(super) fn other_manager(job: &Subject<'_>) -> bool {
    let manager = job.job["spec"]["managedBy"].as_str();
    manager.is_some_and(|manager| manager != "trainer.kubeflow.org/trainjob-controller")
}

pub(super) fn plugins_by_name(job: &Subject<'_>) -> bool {
    let spec = &job.runtime["spec"];
    is_set(&spec["plugins"])
        || is_set(&spec["mlPolicy"]["plugin"])
        || is_set(&spec["podGroupPolicy"]["plugin"])
}

fn is_gang(job: &Subject<'_>) -> bool {
    is_set(&job.runtime["spec"]["podGroupPolicy"])
}

/// A gang whose pods do not all start together.
pub(super) fn gang_members(job: &Subject<'_>) -> bool {
    let spec = &job.runtime["spec"]["template"]["spec"];
    let waits = |of: &Value| is_set(&of["dependsOn"]);
    is_gang(job)
        && (spec["startupPolicy"]["startupPolicyOrder"] == "InOrder"
            || job.replicated_jobs().any(waits))
}

/// A gang whose pods other rows count differently.
pub(super) fn gang_pods(job: &Subject<'_>) -> bool {
    let changed = |of: &Value| {
        let spec = &of["template"]["spec"];
        is_set(&of["replicas"]) && of["replicas"] != 1
            || is_set(&spec["parallelism"])
            || is_set(&spec["completions"])
    };
    is_gang(job)
        && (job.replicated_jobs().any(changed)
            || label_on_pod(job)
            || mpi(job)
            || patch_finds_nothing(job)
            || resources_without_policy(job))
}

/// A gang with limits that have no request, or with what the cluster adds to requests.
pub(super) fn gang_requests(job: &Subject<'_>) -> bool {
    let is_limited = |resources: &Value| {
        let limits = resources["limits"].as_object().into_iter().flatten();
        limits
            .into_iter()
            .any(|(name, _)| resources["requests"][name].is_null())
    };
    let of_pod = |pod: &Value| {
        let lists = ["containers", "initContainers"].into_iter();
        let mut all = lists.flat_map(|list| pod[list].as_array().into_iter().flatten());
        all.any(|container| is_limited(&container["resources"])) || is_set(&pod["runtimeClassName"])
    };
    let is_range = |document: &Value| document["kind"] == "LimitRange";
    is_gang(job)
        && (job.pods().any(of_pod)
            || is_limited(&job.trainer()["resourcesPerNode"])
            || job.documents.iter().any(is_range))
}

pub(super) fn gang_priority(job: &Subject<'_>) -> bool {
    let is_outside = gang_members(job) || job.launcher_is_the_only_node();
    is_outside && job.pods().any(|pod| is_set(&pod["priorityClassName"]))
}

pub(super) fn gang_queue_of_others(job: &Subject<'_>) -> bool {
    job.runtime["spec"]["podGroupPolicy"]["volcano"].is_object()
        && (gang_members(job) || job.launcher_is_the_only_node())
        && [job.job, job.runtime]
            .iter()
            .any(|object| object.to_string().contains(QUEUE))
}

/// The annotation with the name of the queue.
const QUEUE: &str = "scheduling.volcano.sh/queue-name";
