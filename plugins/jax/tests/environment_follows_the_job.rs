//! The env vars of JAX follow the number of nodes, and the name and subdomain of the trainer's pods.

use serde_json::{Value, json};
use trainyard_plugin_jax::PLUGIN;
use trainyard_sdk::mock::{MockContainer, MockJob, Outcome};

const NODE: &str = "pod-sets[node].containers[node]";

fn job(container: impl FnOnce(MockContainer) -> MockContainer) -> MockJob {
    let job = MockJob::new("gemma").all_granted().nodes(4);
    job.pod_set("node", |set| {
        set.ancestor("trainer")
            .count(4)
            .backoff_limit(0)
            .container("node", container)
    })
}

fn env(outcome: &Outcome, name: &str) -> Option<Value> {
    outcome.value(&format!("{NODE}.env[{name}]"))
}

#[test]
fn all_three_variables_and_the_port_are_set() {
    let outcome = job(|c| c).transform(&PLUGIN).unwrap();
    assert_eq!(env(&outcome, "JAX_NUM_PROCESSES"), Some(json!("4")));
    let index = json!({"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}});
    assert_eq!(env(&outcome, "JAX_PROCESS_ID"), Some(index));
    assert_eq!(
        env(&outcome, "JAX_COORDINATOR_ADDRESS"),
        Some(json!("gemma-node-0-0.gemma:29500"))
    );
    assert_eq!(
        outcome.value(&format!("{NODE}.ports[29500/TCP]")),
        Some(json!({"containerPort": 29500}))
    );
}

#[test]
fn devices_do_not_change_the_number_of_processes() {
    let outcome = job(|c| c.limit("nvidia.com/gpu", "8"))
        .transform(&PLUGIN)
        .unwrap();
    assert_eq!(env(&outcome, "JAX_NUM_PROCESSES"), Some(json!("4")));
}

#[test]
fn coordinator_is_a_pod_of_the_trainer_in_its_subdomain() {
    let outcome = MockJob::new("gemma")
        .all_granted()
        .nodes(2)
        .subdomain("ring")
        .pod_set("dataset-initializer", |set| set.container("node", |c| c))
        .pod_set("workers", |set| {
            set.ancestor("trainer")
                .count(2)
                .container("node", |c| c.env("JAX_PROCESS_ID", "7"))
        })
        .transform(&PLUGIN)
        .unwrap();
    let of = |pod_set: &str, name: &str| {
        outcome.value(&format!("pod-sets[{pod_set}].containers[node].env[{name}]"))
    };
    assert_eq!(
        of("workers", "JAX_COORDINATOR_ADDRESS"),
        Some(json!("gemma-workers-0-0.ring:29500"))
    );
    assert_eq!(of("dataset-initializer", "JAX_COORDINATOR_ADDRESS"), None);
    let index = of("workers", "JAX_PROCESS_ID").unwrap();
    assert!(index.pointer("/fieldRef/fieldPath").is_some(), "{index}");
}

#[test]
fn runtime_port_is_kept() {
    let outcome = job(|c| c.port(29500, "TCP", Some("coordinator")))
        .transform(&PLUGIN)
        .unwrap();
    assert_eq!(outcome.value(&format!("{NODE}.ports[29500/TCP]")), None);
}

#[test]
fn runtime_without_a_trainer_is_refused() {
    let error = MockJob::new("gemma")
        .all_granted()
        .pod_set("node", |set| set.container("node", |c| c))
        .transform(&PLUGIN)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("jax needs a container `node`")
            && error.contains("spec.template.spec.replicatedJobs"),
        "{error}"
    );
}

#[test]
fn configuration_is_refused() {
    let error = job(|c| c)
        .config(json!({"numProcPerNode": 2}))
        .transform(&PLUGIN)
        .unwrap_err()
        .to_string();
    assert!(error.contains("takes no configuration"), "{error}");
}

#[test]
fn processes_per_node_without_effect_are_reported() {
    let warnings = |job: MockJob| job.transform(&PLUGIN).unwrap().warnings();
    assert_eq!(warnings(job(|c| c).processes_per_node(1)), [""; 0]);
    let reported = warnings(job(|c| c).processes_per_node(8));
    let [warning] = &*reported else {
        panic!("{reported:?}");
    };
    assert!(
        warning.starts_with("spec.trainer.numProcPerNode: is 8, but has no effect"),
        "{warning}"
    );
}

/// The runtime names the port, or else the operator's configuration sets it, for all runtimes without one.
#[test]
fn port_can_be_chosen() {
    let chosen = |job: MockJob| {
        let outcome = job.transform(&PLUGIN).unwrap();
        let opened = |port: u16| outcome.value(&format!("{NODE}.ports[{port}/TCP]"));
        (
            env(&outcome, "JAX_COORDINATOR_ADDRESS").unwrap(),
            [opened(29500), opened(29600)].map(|port| port.is_some()),
        )
    };
    let named = || job(|c| c.port(12345, "TCP", Some("rendezvous")));
    let operator = json!({"rendezvousPort": 29600});
    let port = |number: u16| json!(format!("gemma-node-0-0.gemma:{number}"));
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

/// A TrainJob can change only the port of the coordinator's address, which the plugin then does not open. The host refuses other addresses.
#[test]
fn address_of_the_train_job_chooses_the_port() {
    const COORDINATOR: &str = "JAX_COORDINATOR_ADDRESS";
    for (address, coordinator, opens) in [
        (
            "gemma-node-0-0.gemma:12345",
            "gemma-node-0-0.gemma:12345",
            false,
        ),
        (
            "gemma-node-0-0.gemma:29500",
            "gemma-node-0-0.gemma:29500",
            true,
        ),
        (
            "gemma-node-0-0.gemma:05",
            "gemma-node-0-0.gemma:29500",
            true,
        ),
        ("other:12345", "gemma-node-0-0.gemma:29500", true),
    ] {
        let outcome = job(|c| c.train_job_env(COORDINATOR, address));
        let outcome = outcome.transform(&PLUGIN).unwrap();
        assert_eq!(
            env(&outcome, COORDINATOR),
            Some(json!(coordinator)),
            "{address}"
        );
        let opened = outcome.value(&format!("{NODE}.ports[29500/TCP]"));
        assert_eq!(opened.is_some(), opens, "{address}");
    }
    // The runtime's address is replaced.
    let outcome = job(|c| c.env(COORDINATOR, "gemma-node-0-0.gemma:12345"));
    let outcome = outcome.transform(&PLUGIN).unwrap();
    let expected = json!("gemma-node-0-0.gemma:29500");
    assert_eq!(env(&outcome, COORDINATOR), Some(expected));
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
    let warning = "spec.template.spec.replicatedJobs[node].template.spec.template.spec.hostNetwork: is true, so port 29500 is a port of the machine, and only one pod of all TrainJobs with this port runs there, while the others stay pending; add a TCP port with the name `rendezvous` and a number of its own to the container in the runtime, whose TrainJobs share it, or change the default, `rendezvousPort` in `config` of the PolicyPlugin jax";
    assert_eq!(warnings(|c| c, true), [warning]);
    assert_eq!(warnings(|c| c, false), [""; 0]);
    let named = |c: MockContainer| c.port(29501, "TCP", Some("rendezvous"));
    let warning = "spec.template.spec.replicatedJobs[node].template.spec.template.spec.hostNetwork: is true, so port 29501, which the runtime names `rendezvous`, is a port of the machine, and only one pod of all TrainJobs of this runtime runs there, while the others stay pending; remove `hostNetwork`, use a runtime with another port for TrainJobs that are to share machines, or leave it if each pod takes a whole machine";
    assert_eq!(warnings(named, true), [warning]);
    assert_eq!(warnings(named, false), [""; 0]);
}
