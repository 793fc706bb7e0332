//! The env vars and the port of Torch, JAX and XGBoost.

use serde_json::{Value, json};

use super::{
    container,
    devices::Devices,
    input::{at, behind, of_env_var, of_runtime, of_train_job_env},
    order::is_after_its_references,
    pods_of,
};
use crate::seen::Seen;

/// The port on which the nodes meet by default.
const PORT: u64 = 29500;

/// What an env var of a framework has at the path, which may be nothing. `None` if it is not an env var of a framework.
fn of_framework(seen: &Seen<'_>) -> Option<Option<Value>> {
    of_env_var(seen, |name| {
        let value = |text: String| Some(json!({"value": text}));
        match name {
            "PET_NNODES" => value(nodes(seen)),
            "PET_NPROC_PER_NODE" => value(processes(seen)?),
            "PET_NODE_RANK" | "JAX_PROCESS_ID" | "DMLC_TASK_ID" => {
                Some(json!({"valueFrom": {"fieldRef": {
                    "fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']",
                }}}))
            }
            "PET_MASTER_ADDR" | "DMLC_TRACKER_URI" => value(master(seen)),
            "PET_MASTER_PORT" | "DMLC_TRACKER_PORT" => value(port(seen).to_string()),
            "PET_RDZV_BACKEND" => value("c10d".to_owned()),
            "PET_RDZV_ENDPOINT" => value(endpoint(seen)),
            "PET_RDZV_ID" => value(seen.name().to_owned()),
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE" => value("1".to_owned()),
            "PET_MAX_RESTARTS" => {
                let restarts = elastic(seen)?["maxRestarts"].as_u64();
                value(restarts.unwrap_or(3).to_string())
            }
            "JAX_NUM_PROCESSES" => value(pods_of(seen.made_trainer()).to_string()),
            "JAX_COORDINATOR_ADDRESS" => {
                value(chosen_address(seen).unwrap_or_else(|| endpoint(seen)))
            }
            "DMLC_NUM_WORKER" => value((pods_of(seen.made_trainer()) * workers(seen)?).to_string()),
            _ => None,
        }
    })
}

/// The env var of a framework, or else of the TrainJob.
pub(crate) fn is_right(seen: &Seen<'_>) -> bool {
    if seen.path().ends_with(".expands") {
        return is_after_its_references(seen);
    }
    let expected = of_framework(seen).or_else(|| of_train_job_env(seen).map(Some));
    expected.is_some_and(|expected| seen.ours() == expected.as_ref())
}

fn elastic<'d>(seen: &Seen<'d>) -> Option<&'d Value> {
    let torch = &seen.policy()["torch"];
    let mut fields = ["elastic", "elasticPolicy"].into_iter();
    fields.find_map(|field| Some(&torch[field]).filter(|value| value.is_object()))
}

fn nodes(seen: &Seen<'_>) -> String {
    let nodes = pods_of(seen.made_trainer());
    match elastic(seen) {
        Some(elastic) => format!("{}:{nodes}", elastic["minNodes"].as_u64().unwrap_or(nodes)),
        None => nodes.to_string(),
    }
}

/// The processes of torchrun on each node. It counts GPUs itself, and other accelerators not.
pub(crate) fn processes(seen: &Seen<'_>) -> Option<String> {
    let devices = Devices::of(seen, seen.made_trainer());
    let cpus = devices.cpus.max(1).to_string();
    let auto = || "auto".to_owned();
    if let Some(explicit) = seen.explicit_processes("torch", 1) {
        return Some(explicit.to_string());
    }
    let processes = match seen.policy()["torch"]["numProcPerNode"].as_str() {
        Some("gpu") => "gpu".to_owned(),
        Some("cpu") => cpus,
        _ if devices.gpus > 0 || devices.is_share => auto(),
        _ => match devices.accelerators() {
            Some(0) => cpus,
            Some(accelerators) => accelerators.to_string(),
            None => auto(),
        },
    };
    Some(processes)
}

/// The workers of XGBoost on each node, which use GPUs alone.
fn workers(seen: &Seen<'_>) -> Option<u64> {
    let devices = Devices::of(seen, seen.made_trainer());
    if let Some(explicit) = seen.explicit_processes("xgboost", 1) {
        return Some(explicit);
    }
    match devices.of_resources {
        0 => Some(devices.accelerators().unwrap_or(1).max(1)),
        _ => Some(devices.gpus.max(1)),
    }
}

/// The address of the first node.
pub(crate) fn master(seen: &Seen<'_>) -> String {
    seen.address(seen.made_trainer(), 0)
}

/// The port on which the nodes meet.
pub(crate) fn port(seen: &Seen<'_>) -> u64 {
    let trainer = &seen.made_trainer()["name"];
    let mut jobs = seen.replicated_jobs().filter(|job| job["name"] == *trainer);
    let ports = jobs
        .next()
        .and_then(|job| container(job, "containers", "node")["ports"].as_array());
    let is_chosen = |port: &&Value| {
        port["name"] == "rendezvous" && matches!(port["protocol"].as_str(), None | Some("TCP"))
    };
    let chosen = ports.into_iter().flatten().find(is_chosen);
    chosen
        .and_then(|port| port["containerPort"].as_u64())
        .unwrap_or(PORT)
}

pub(crate) fn endpoint(seen: &Seen<'_>) -> String {
    format!("{}:{}", master(seen), port(seen))
}

/// The address of JAX's coordinator in the TrainJob, of which the port can be chosen.
fn chosen_address(seen: &Seen<'_>) -> Option<String> {
    let mut vars = seen.trainer()["env"].as_array().into_iter().flatten();
    let var = vars.find(|var| var["name"] == "JAX_COORDINATOR_ADDRESS")?;
    var["value"].as_str().map(str::to_owned)
}

/// The ports of a container are the runtime's, and that on which the nodes meet.
pub(crate) fn is_right_port(seen: &Seen<'_>) -> bool {
    let policy = seen.policy();
    let is_framework = ["torch", "jax", "xgboost"]
        .iter()
        .any(|key| policy[*key].is_object());
    let is_chosen = policy["jax"].is_object()
        && chosen_address(seen).is_some_and(|address| address != endpoint(seen));
    let (number, key) = (port(seen), format!("[{}]", port(seen)));
    let opened = json!({"containerPort": number});
    let path = seen.path();
    let is_of_node =
        path.contains(".containers[node].ports") && seen.set_name() == seen.made_trainer()["name"];
    let is_opened = is_framework && is_of_node && !is_chosen;
    if path.ends_with(".ports") {
        let mut ports = of_runtime(seen).unwrap_or_else(|| json!({}));
        if let Some(ports) = ports.as_object_mut().filter(|_| is_opened) {
            ports.entry(key).or_insert(opened);
        }
        return seen.ours() == Some(&ports);
    }
    let opened = || {
        behind(path, ".ports")
            .filter(|_| is_opened)
            .and_then(|rest| at(&json!({key: opened}), rest).cloned())
    };
    seen.ours() == of_runtime(seen).or_else(opened).as_ref()
}

/// Whether an env var of the TrainJob is as its author wrote it.
pub(crate) fn is_as_written(seen: &Seen<'_>) -> bool {
    let written = of_train_job_env(seen);
    written.is_some() && seen.ours() == written.as_ref()
}
