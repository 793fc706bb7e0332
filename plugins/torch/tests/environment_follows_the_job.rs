//! The environment of torchrun follows the TrainJob, the runtime and the resources of the node container.

use serde_json::{Value, json};
use trainyard_plugin_torch::PLUGIN;
use trainyard_sdk::mock::{MockContainer, MockJob, Outcome};

const NODE: &str = "pod-sets[node].containers[node]";

fn job(container: impl FnOnce(MockContainer) -> MockContainer) -> MockJob {
    MockJob::new("bert").all_granted().trainer(4, container)
}

fn env(outcome: &Outcome, name: &str) -> Option<Value> {
    outcome.value(&format!("{NODE}.env[{name}]"))
}

#[test]
fn all_five_variables_and_the_port_are_set() {
    let outcome = job(|c| c.request("nvidia.com/gpu", "8"))
        .transform(&PLUGIN)
        .unwrap();
    assert_eq!(env(&outcome, "PET_NNODES"), Some(json!("4")));
    assert_eq!(env(&outcome, "PET_NPROC_PER_NODE"), Some(json!("auto")));
    assert_eq!(
        env(&outcome, "PET_MASTER_ADDR"),
        Some(json!("bert-node-0-0.bert"))
    );
    assert_eq!(env(&outcome, "PET_MASTER_PORT"), Some(json!("29500")));
    let rank = json!({"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}});
    assert_eq!(env(&outcome, "PET_NODE_RANK"), Some(rank));
    assert_eq!(
        outcome.value(&format!("{NODE}.ports[29500/TCP]")),
        Some(json!({"containerPort": 29500}))
    );
}

#[test]
fn number_of_processes_follows_the_train_job() {
    let processes =
        |job: MockJob| env(&job.transform(&PLUGIN).unwrap(), "PET_NPROC_PER_NODE").unwrap();
    assert_eq!(processes(job(|c| c.request("cpu", "2500m"))), "3");
    assert_eq!(processes(job(|c| c)), "1");
    assert_eq!(
        processes(job(|c| c.limit("amd.com/gpu", "4")).processes_per_node(2)),
        "2"
    );
    assert_eq!(
        processes(job(|c| c).config(json!({"numProcPerNode": "gpu"}))),
        "gpu"
    );
    assert_eq!(
        processes(job(|c| c.request("cpu", "7")).config(json!({"numProcPerNode": "cpu"}))),
        "7"
    );
    let with_gpus = |default: &str| {
        let job = job(|c| c.request("cpu", "7").limit("amd.com/gpu", "4"));
        processes(job.config(json!({"numProcPerNode": default})))
    };
    assert_eq!(with_gpus("cpu"), "7");
    assert_eq!(with_gpus("auto"), "auto");
}

/// Nodes of 8 CPUs whose container uses devices of a claim.
fn claimed(count: Option<u32>) -> MockJob {
    MockJob::new("dra").all_granted().pod_set("node", |set| {
        set.ancestor("trainer")
            .container("node", |c| c.request("cpu", "8"))
            .claimed_devices("gpu", count)
    })
}

/// A node with devices that are not accelerators is not reported as a node without devices.
#[test]
fn reason_names_the_resources_of_the_node() {
    let why = |job: MockJob| {
        let outcome = job.transform(&PLUGIN).unwrap();
        outcome.reason(&format!("{NODE}.env[PET_NPROC_PER_NODE]"))
    };
    for (job, wanted) in [
        (
            job(|c| c.request("example.com/unknown", "4")),
            "a node requests no known accelerator: its CPUs",
        ),
        (
            claimed(Some(0)),
            "none of a node's devices counts as an accelerator: its CPUs",
        ),
        (
            claimed(Some(4)),
            "the accelerators of a node's resource claims",
        ),
        (
            claimed(None),
            "the number of accelerators in a node's resource claims is not known; torchrun counts the GPUs that it sees, or else the CPUs",
        ),
        (
            job(|c| c.request("nvidia.com/gpu", "8")),
            "a node has GPUs, which torchrun counts",
        ),
        (
            job(|c| c.request("google.com/tpu", "4")),
            "the accelerators of a node, which torchrun does not count, because they are not GPUs",
        ),
        (
            job(|c| c.request("tencent.com/vcuda-core", "50")),
            "a node has a share of a GPU; torchrun counts the GPUs that it sees",
        ),
    ] {
        assert_eq!(why(job).as_deref(), Some(wanted));
    }
}

/// torchrun counts what `torch.accelerator` enumerates. For other devices, it would start a process for each CPU of the machine.
#[test]
fn only_gpus_are_left_for_torchrun_to_count() {
    for (resource, amount, wanted) in [
        ("nvidia.com/gpu", "8", "auto"),
        ("nvidia.com/gpu.shared", "2", "auto"),
        ("amd.com/gpu", "4", "auto"),
        ("gpu.intel.com/i915", "2", "auto"),
        ("gpu.intel.com/xe", "2", "auto"),
        ("nvidia.com/gpumem", "4096", "auto"),
        ("google.com/tpu", "4", "4"),
        ("aws.amazon.com/neuroncore", "32", "32"),
        ("habana.ai/gaudi", "8", "8"),
        ("huawei.com/Ascend910", "8", "8"),
        ("nvidia.com/mig-1g.10gb", "1", "1"),
        ("nvidia.com/mig-1g.10gb", "2", "2"),
    ] {
        let outcome = job(|c| c.request("cpu", "64").limit(resource, amount))
            .transform(&PLUGIN)
            .unwrap();
        let found = env(&outcome, "PET_NPROC_PER_NODE");
        assert_eq!(found, Some(json!(wanted)), "{resource}: {amount}");
    }
}

#[test]
fn several_mig_slices_cause_a_warning() {
    let slices = |amount: &'static str| {
        let node = move |c: MockContainer| {
            let c = c.mount("shared-memory", "/dev/shm");
            c.limit("nvidia.com/mig-1g.10gb", amount)
        };
        MockJob::new("bert").all_granted().trainer(1, node)
    };
    let warnings = |job: MockJob| job.transform(&PLUGIN).unwrap().warnings();
    let warning = "spec.trainer.numProcPerNode: is not set, so torchrun starts 2 processes on each node, one for each MIG slice, but CUDA shows all of them the same slice; request one slice for each node and raise `numNodes`, or set it to 2 if each process selects its slice with CUDA_VISIBLE_DEVICES";
    assert_eq!(warnings(slices("2")), [warning]);
    for silent in [slices("2").processes_per_node(2), slices("1")] {
        assert_eq!(warnings(silent), [""; 0]);
    }
}

#[test]
fn claimed_devices_are_counted() {
    let with = |count| {
        let outcome = claimed(count).transform(&PLUGIN).unwrap();
        env(&outcome, "PET_NPROC_PER_NODE").unwrap()
    };
    assert_eq!(with(Some(4)), "4");
    assert_eq!(with(None), "auto");
}

#[test]
fn runtime_port_is_kept() {
    let outcome = job(|c| c.port(29500, "TCP", Some("rendezvous")))
        .transform(&PLUGIN)
        .unwrap();
    assert_eq!(outcome.value(&format!("{NODE}.ports[29500/TCP]")), None);
}

#[test]
fn invalid_configuration_is_refused_by_the_schema() {
    let error = job(|c| c)
        .config(json!({"numProcPerNode": 0}))
        .transform(&PLUGIN)
        .unwrap_err()
        .to_string();
    assert!(error.contains("numProcPerNode"), "{error}");
}

#[test]
fn nodes_that_cannot_meet_cause_a_warning() {
    let warnings = |nodes: u32| {
        let job = MockJob::new("bert").all_granted().nodes(nodes);
        let job = job.without_host_names().pod_set("node", |set| {
            set.ancestor("trainer")
                .count(nodes)
                .backoff_limit(0)
                .not_indexed()
                .container("node", |c| c)
        });
        job.transform(&PLUGIN).unwrap().warnings()
    };
    let found = warnings(2);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].contains("enableDNSHostnames: is false, so Torch")
            && found[1].contains("completionMode: is `NonIndexed`, so Torch"),
        "{found:?}"
    );
    // A single node may run without torchrun.
    assert_eq!(warnings(1), [""; 0]);
}

/// The runtime names the port, or else the operator's configuration sets it, for all runtimes without one.
#[test]
fn port_can_be_chosen() {
    let chosen = |job: MockJob| {
        let outcome = job.transform(&PLUGIN).unwrap();
        let opened = |port: u16| outcome.value(&format!("{NODE}.ports[{port}/TCP]"));
        (
            env(&outcome, "PET_MASTER_PORT").unwrap(),
            [opened(29500), opened(29600)].map(|port| port.is_some()),
        )
    };
    let named = || job(|c| c.port(12345, "TCP", Some("rendezvous")));
    let operator = json!({"rendezvousPort": 29600});
    let port = |number: u16| json!(number.to_string());
    assert_eq!(chosen(job(|c| c)), (port(29500), [true, false]));
    assert_eq!(
        chosen(job(|c| c).operator_config(operator.clone())),
        (port(29600), [false, true])
    );
    assert_eq!(chosen(named()), (port(12345), [false, false]));
    assert_eq!(
        chosen(named().operator_config(operator)),
        (port(12345), [false, false])
    );
    let udp = job(|c| c.port(12345, "UDP", Some("rendezvous")));
    assert_eq!(chosen(udp), (port(29500), [true, false]));
}

/// A container port of a pod in its machine's network is a port of the machine.
#[test]
fn host_network_causes_a_warning_of_its_shared_port() {
    let warnings = |container: fn(MockContainer) -> MockContainer, is_host_network: bool| {
        let job = MockJob::new("llm").all_granted().pod_set("node", |set| {
            set.ancestor("trainer")
                .raw("hostNetwork", json!(is_host_network))
                .container("node", container)
        });
        job.transform(&PLUGIN).unwrap().warnings()
    };
    let warning = "spec.template.spec.replicatedJobs[node].template.spec.template.spec.hostNetwork: is true, so port 29500 is a port of the machine, and only one pod of all TrainJobs with this port runs there, while the others stay pending; add a TCP port with the name `rendezvous` and a number of its own to the container in the runtime, whose TrainJobs share it, or change the default, `rendezvousPort` in `config` of the PolicyPlugin torch";
    assert_eq!(warnings(|c| c, true), [warning]);
    assert_eq!(warnings(|c| c, false), [""; 0]);
    let named = |c: MockContainer| c.port(29501, "TCP", Some("rendezvous"));
    let warning = "spec.template.spec.replicatedJobs[node].template.spec.template.spec.hostNetwork: is true, so port 29501, which the runtime names `rendezvous`, is a port of the machine, and only one pod of all TrainJobs of this runtime runs there, while the others stay pending; remove `hostNetwork`, use a runtime with another port for TrainJobs that are to share machines, or leave it if each pod takes a whole machine";
    assert_eq!(warnings(named, true), [warning]);
    assert_eq!(warnings(named, false), [""; 0]);
}
