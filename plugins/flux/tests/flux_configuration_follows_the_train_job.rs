//! The Flux instance has the hosts, tasks, cores and GPUs of the TrainJob, the runtime and the node container.

use serde_json::json;
use trainyard_sdk::mock::{MockContainer, MockJob};

use crate::common::{NODE, certificate, file, job, of_node, outcome, setting};

/// Tasks, cores and GPUs of each node.
fn each(job: MockJob) -> [String; 4] {
    let outcome = outcome(job);
    ["tasks", "core_ids", "gpus", "gpu_ids"].map(|name| setting(&outcome, name))
}

#[test]
fn hosts_have_addresses() {
    let four = outcome(of_node(|c| c).subdomain("mesh"));
    assert_eq!(setting(&four, "hosts"), "lammps-node-0-[0-3]");
    assert_eq!(setting(&four, "lead"), "lammps-node-0-0");
    assert_eq!(setting(&four, "nodes"), "4");
    let broker = file(&four, "broker.toml");
    for line in [
        // All devices, with IPv4 and IPv6.
        r#"default_bind = "tcp://*:%p""#,
        "enable_ipv6 = true",
        r#"default_connect = "tcp://%h.mesh.hpc.svc.cluster.local:%p""#,
        r#"  { host = "lammps-node-0-[0-3]" },"#,
        r#"queue-policy = "fcfs""#,
    ] {
        assert!(
            broker.lines().any(|found| found == line),
            "{line}: {broker}"
        );
    }
    assert!(!broker.contains('@'), "{broker}");
    let one = outcome(job(|set| set.count(1), |c| c));
    assert_eq!(setting(&one, "hosts"), "lammps-node-0-0");
    assert_eq!(setting(&one, "lead"), "lammps-node-0-0");
}

#[test]
fn lead_broker_can_be_in_another_pod_set() {
    let outcome = MockJob::new("lammps")
        .all_granted()
        .pod_set("workers", |set| {
            set.ancestor("trainer")
                .count(2)
                .container("node", |c| c.command(&["lmp"]))
        });
    let outcome = crate::common::outcome(outcome);
    assert_eq!(setting(&outcome, "hosts"), "lammps-workers-0-[0-1]");
    assert_eq!(setting(&outcome, "lead"), "lammps-workers-0-0");
}

#[test]
fn tasks_cores_and_gpus_follow_the_node() {
    let gpus = |c: MockContainer| c.limit("nvidia.com/gpu", "4").request("cpu", "30500m");
    let cpus = |c: MockContainer| c.request("cpu", "8");
    for (job, expected) in [
        (of_node(|c| c), ["1", "0", "", ""]),
        (of_node(cpus), ["1", "0-7", "", ""]),
        (of_node(cpus).processes_per_node(8), ["8", "0-7", "", ""]),
        // Each task has a core, though fewer are asked for.
        (of_node(cpus).processes_per_node(16), ["16", "0-15", "", ""]),
        (of_node(gpus), ["4", "0-30", "4", "0-3"]),
        // GPUs are those of a node, and not of each task.
        (
            of_node(gpus).processes_per_node(2),
            ["2", "0-30", "4", "0-3"],
        ),
        (
            of_node(|c| c.limit("nvidia.com/gpu", "1")),
            ["1", "0", "1", "0"],
        ),
        // A share of a device is one, which Flux does not hand out.
        (
            of_node(|c| c.limit("nvidia.com/gpumem", "4096")),
            ["1", "0", "", ""],
        ),
    ] {
        assert_eq!(each(job), expected);
    }
}

#[test]
fn devices_of_resource_claims_are_counted() {
    let claimed = |count| {
        job(
            move |set| set.claimed_devices("gpu", count),
            |c| c.request("cpu", "2"),
        )
    };
    assert_eq!(each(claimed(Some(8))), ["8", "0-7", "8", "0-7"]);
    assert_eq!(
        each(claimed(Some(8)).processes_per_node(4)),
        ["4", "0-3", "8", "0-7"]
    );
    // Flux assigns none that it cannot count: every task sees those of its node.
    assert_eq!(
        each(claimed(None).processes_per_node(4)),
        ["4", "0-3", "", ""]
    );
    assert_eq!(each(claimed(None)), ["1", "0-1", "", ""]);
}

#[test]
fn explain_has_the_reason() {
    let outcome = outcome(of_node(|c| c.limit("nvidia.com/gpu", "4")));
    let reason = outcome.reason(&format!("{NODE}.command")).unwrap();
    assert_eq!(
        reason,
        "Flux runs the command on 4 nodes of 4 GPUs, with 4 tasks on each: the accelerators of a node"
    );
    let settings = file(&outcome, "settings.sh");
    assert!(
        settings.contains("The tasks are:\n# the accelerators of a node.\n"),
        "{settings}"
    );
    assert!(!settings.contains('@'), "{settings}");

    let claimed = job(|set| set.claimed_devices("gpu", Some(0)), |c| c);
    for (job, because) in [
        (of_node(|c| c), "a node requests no known accelerator"),
        (claimed, "none of a node's devices counts as an accelerator"),
    ] {
        let outcome = crate::common::outcome(job);
        let reason = outcome.reason(&format!("{NODE}.command")).unwrap();
        assert!(reason.ends_with(&format!("and {because}")), "{reason}");
    }
}

#[test]
fn env_vars_set_the_network_device_and_queue_policy() {
    let outcome = outcome(of_node(|c| {
        c.env("FLUX_NETWORK_DEVICE", "ib0")
            .env("FLUX_QUEUE_POLICY", "fcfs")
            .train_job_env("FLUX_QUEUE_POLICY", "easy")
    }));
    let broker = file(&outcome, "broker.toml");
    assert!(
        broker.contains("tcp://ib0:%p") && broker.contains(r#"queue-policy = "easy""#),
        "{broker}"
    );
    // With IPv6, a broker could not listen on a named device that has only IPv4.
    assert!(broker.contains("\nenable_ipv6 = false\n"), "{broker}");
}

#[test]
fn env_var_sets_the_exit_timeout() {
    let timeout = |set: &'static str| {
        let with = outcome(of_node(|c| match set {
            "" => c,
            set => c.env("FLUX_EXIT_TIMEOUT", set),
        }));
        setting(&with, "exit_timeout")
    };
    assert_eq!(timeout(""), "30s");
    for given in ["none", "10m", "1.5h", "500ms", "90"] {
        assert_eq!(timeout(given), given);
    }
}

#[test]
fn certificate_contains_two_host_generated_keys() {
    let outcome = outcome(of_node(|c| c).uid("6f2a"));
    assert_eq!(
        certificate(&outcome),
        "#  ZeroMQ CURVE Secret Certificate\n\nmetadata\n    name = \"lammps\"\ncurve\n    \
         public-key = \"<placeholder for the public key of key pair curve (curve25519, z85)>\"\n    \
         secret-key = \"<placeholder for the private key of key pair curve (curve25519, z85)>\"\n"
    );
}

#[test]
fn all_files_exist_and_contain_no_command() {
    let outcome = outcome(of_node(|c| {
        c.train_job_args(&["$(touch /tmp/x)", "it's", "\"q\""])
    }));
    for name in ["entrypoint.sh", "init.sh", "settings.sh", "broker.toml"] {
        let text = file(&outcome, name);
        assert!(!text.contains("touch /tmp/x"), "{name}");
    }
    assert!(file(&outcome, "entrypoint.sh").starts_with("#!/bin/bash\n"));
    assert_eq!(
        outcome.value(&format!("{NODE}.args")),
        Some(json!([
            "lmp",
            "-in",
            "in file",
            "$(touch /tmp/x)",
            "it's",
            "\"q\""
        ]))
    );
}
