//! What the hostfile, the environment and the counts of MPI have to be.

use serde_json::{Value, json};

use crate::{
    expected::{
        devices::Devices,
        input::{self, of_env_var, of_train_job_env},
        pods_of,
    },
    seen::Seen,
};

/// Returns the processes of a pod of a replicated job.
fn slots(seen: &Seen<'_>, job: &Value) -> u64 {
    let explicit = seen.explicit_processes("mpi", 2);
    explicit.unwrap_or_else(|| Devices::of(seen, job).accelerators().unwrap_or(1).max(1))
}

/// Returns whether the launcher is a node.
fn launcher_is_node(seen: &Seen<'_>) -> bool {
    seen.policy()["mpi"]["runLauncherAsNode"] == true
}

/// Returns the replicated jobs with hosts, in the order of the runtime.
fn hosts<'d>(seen: &Seen<'d>) -> Vec<&'d Value> {
    let with_launcher = launcher_is_node(seen);
    let is_host =
        |job: &&Value| job["name"] == "node" || with_launcher && job["name"] == "launcher";
    let has_pods = |job: &&Value| job["replicas"] != 0;
    seen.made_jobs().filter(is_host).filter(has_pods).collect()
}

/// Returns the name of the launcher's pod for itself.
fn own_name(seen: &Seen<'_>, job: &Value) -> String {
    let address = seen.address(job, 0);
    let pod = &job["template"]["spec"]["template"]["spec"];
    if pod["hostNetwork"] == true {
        return address;
    }
    if pod["setHostnameAsFQDN"] == true {
        let namespace = seen.job["metadata"]["namespace"]
            .as_str()
            .unwrap_or("default");
        return format!("{address}.{namespace}.svc.cluster.local");
    }
    address.split('.').next().unwrap_or_default().to_owned()
}

/// Whether the hostfile has a line for each host, with its processes.
pub(super) fn is_hostfile(seen: &Seen<'_>) -> bool {
    let line = |name: String, job: &Value| format!("{name} slots={}\n", slots(seen, job));
    let lines = |job: &Value| match job["name"] == "launcher" {
        true => line(own_name(seen, job), job),
        false => (0..pods_of(job))
            .map(|pod| line(seen.address(job, pod), job))
            .collect(),
    };
    let expected: String = hosts(seen).into_iter().map(lines).collect();
    seen.ours().and_then(Value::as_str) == Some(&*expected)
}

/// Whether a variable of Open MPI is right, or as the TrainJob or the runtime sets it.
pub(super) fn is_of_open_mpi(seen: &Seen<'_>) -> bool {
    let hosts = hosts(seen);
    let first = hosts
        .iter()
        .find(|job| job["name"] == "node")
        .or(hosts.first());
    let slots = first.map_or(1, |job| slots(seen, job));
    let value = |name: &str| match name {
        "PRTE_MCA_plm_ssh_args" => Some("-o ConnectionAttempts=10".to_owned()),
        "PRTE_MCA_prte_default_hostfile" => Some("/etc/mpi/hostfile".to_owned()),
        "PRTE_MCA_prte_keep_fqdn_hostnames" => Some("true".to_owned()),
        "PRTE_MCA_prte_do_not_resolve" => Some("false".to_owned()),
        "OMPI_MCA_orte_set_default_slots" | "PRTE_MCA_prte_set_default_slots" => {
            Some(slots.to_string())
        }
        _ => None,
    };
    let written = of_train_job_env(seen).or_else(|| input::of_runtime(seen));
    let expected =
        written.or_else(|| of_env_var(seen, |name| Some(json!({"value": value(name)?}))).flatten());
    expected.is_some() && seen.ours() == expected.as_ref()
}

/// Whether the slots are right, in the hostfile or in the environment.
pub(super) fn has_slots(seen: &Seen<'_>) -> bool {
    match seen.path().starts_with("data[") {
        true => is_hostfile(seen),
        false => is_of_open_mpi(seen),
    }
}

/// Whether the launcher is one pod, and the others are the nodes.
pub(super) fn has_nodes(seen: &Seen<'_>) -> bool {
    let path = seen.path();
    if path.starts_with("data[") {
        return is_hostfile(seen);
    }
    if path.ends_with(".replicas") {
        return seen.ours() == Some(&json!(0));
    }
    let expected = match (seen.set_name(), seen.nodes().as_u64()) {
        ("node", Some(nodes)) if !seen.launcher_is_the_only_node() => {
            json!(nodes - u64::from(launcher_is_node(seen)))
        }
        ("launcher", _) => json!(1),
        _ => input::of_runtime(seen).unwrap_or_else(|| json!(1)),
    };
    seen.ours() == Some(&expected)
}

/// Whether the TrainJob's resources are those of the nodes, over the runtime's, and the launcher has the runtime's.
pub(super) fn has_resources(seen: &Seen<'_>) -> bool {
    let is_given =
        seen.set_name() == "node" || launcher_is_node(seen) && seen.set_name() == "launcher";
    seen.ours() == input::resources(seen, is_given).as_ref()
}

/// Whether the container has the TrainJob's image and env vars.
pub(super) fn has_image_or_env(seen: &Seen<'_>) -> bool {
    let expected = match seen.path().ends_with(".image") {
        true => Some(seen.trainer()["image"].clone()),
        false => of_train_job_env(seen),
    };
    expected.is_some() && seen.ours() == expected.as_ref()
}
