//! The base TrainJob of the tests: a dedicated launcher, and nodes.

use serde_json::{Value, json};
use trainyard_plugin_mpi::PLUGIN;
use trainyard_sdk::mock::{MockContainer, MockJob, Outcome};

pub(crate) const LAUNCHER: &str = "pod-sets[launcher].containers[node]";
pub(crate) const NODE: &str = "pod-sets[node].containers[node]";

/// A TrainJob of three nodes and a launcher, whose containers are made so.
pub(crate) fn job(container: impl Fn(MockContainer) -> MockContainer) -> MockJob {
    MockJob::new("llm")
        .all_granted()
        .nodes(3)
        .pod_set("node", |set| set.count(3).container("node", &container))
        .pod_set("launcher", |set| {
            set.ancestor("trainer").container("node", &container)
        })
}

/// The same with a launcher that is a node.
pub(crate) fn as_node(container: impl Fn(MockContainer) -> MockContainer) -> MockJob {
    MockJob::new("llm")
        .all_granted()
        .nodes(3)
        .pod_set("node", |set| set.count(2).container("node", &container))
        .pod_set("launcher", |set| {
            set.ancestor("trainer").container("node", &container)
        })
        .config(json!({"runLauncherAsNode": true}))
}

pub(crate) fn gpus(container: MockContainer) -> MockContainer {
    container
        .limit("nvidia.com/gpu", "2")
        .mount("dshm", "/dev/shm")
}

pub(crate) fn env(outcome: &Outcome, name: &str) -> Option<Value> {
    outcome.value(&format!("{LAUNCHER}.env[{name}]"))
}

/// What the plugin refuses.
pub(crate) fn errors(job: MockJob) -> Vec<String> {
    job.transform(&PLUGIN)
        .expect("errors are reported, and the call goes on")
        .errors()
}

/// The hostfile.
pub(crate) fn hostfile(job: MockJob) -> String {
    let outcome = job.all_phases(&PLUGIN).expect("the plugin accepts the job");
    assert_eq!(outcome.errors(), [""; 0]);
    let objects = outcome.objects();
    let text = objects.iter().find_map(|object| object.text("hostfile"));
    text.unwrap_or_default().to_owned()
}
