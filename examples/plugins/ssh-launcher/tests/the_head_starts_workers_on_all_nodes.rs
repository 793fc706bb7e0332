//! The head can start workers on all nodes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use serde_json::{Value, json};
use ssh_launcher::PLUGIN;
use trainyard_sdk::mock::{MockContainer, MockError, MockJob, MockPodSet, Outcome};

const GRANT: &str = "objects[v1/Secret/-ssh-launcher-keys]";

fn job_with(
    set: impl FnOnce(MockPodSet) -> MockPodSet,
    node: impl FnOnce(MockContainer) -> MockContainer,
) -> MockJob {
    MockJob::new("bert")
        .grants(&[GRANT])
        .nodes(2)
        .pod_set("node", |pods| {
            set(pods.ancestor("trainer").count(2)).container("node", |c| node(c.image("train")))
        })
}

fn job() -> MockJob {
    job_with(|set| set, |node| node)
}

fn run(job: MockJob) -> Outcome {
    job.all_phases(&PLUGIN).unwrap()
}

fn refusal(job: MockJob) -> String {
    let error: MockError = job.all_phases(&PLUGIN).unwrap_err();
    error.to_string()
}

fn node(outcome: &Outcome, field: &str) -> Option<Value> {
    outcome.value(&format!("pod-sets[node].containers[node].{field}"))
}

fn hostfile(outcome: &Outcome) -> &str {
    let objects = outcome.objects();
    let found = objects
        .into_iter()
        .find_map(|object| object.text("hostfile"));
    found.unwrap()
}

#[test]
fn nodes_know_the_head() {
    let outcome = run(job());
    assert_eq!(
        node(&outcome, "env[LAUNCH_HEAD]"),
        Some(json!("bert-node-0-0.bert"))
    );
    assert_eq!(node(&outcome, "env[LAUNCH_NODES]"), Some(json!("2")));
    assert_eq!(node(&outcome, "env[LAUNCH_PORT]"), Some(json!("22")));
    let rank = node(&outcome, "env[LAUNCH_RANK]").unwrap();
    let path = "metadata.annotations['batch.kubernetes.io/job-completion-index']";
    assert_eq!(
        rank.pointer("/fieldRef/fieldPath"),
        Some(&json!(path)),
        "{rank}"
    );
    assert!(outcome.warnings().is_empty(), "{:?}", outcome.warnings());
}

#[test]
fn slots_follow_the_hosts_rule() {
    let lines =
        |slots| format!("bert-node-0-0.bert slots={slots}\nbert-node-0-1.bert slots={slots}\n");
    assert_eq!(hostfile(&run(job())), lines(1));
    assert_eq!(hostfile(&run(job().processes_per_node(3))), lines(3));
    let gpus = job_with(|set| set, |node| node.limit("nvidia.com/gpu", "8"));
    assert_eq!(hostfile(&run(gpus)), lines(8));
    let cpus = job_with(|set| set, |node| node.limit("cpu", "6"));
    assert_eq!(hostfile(&run(cpus)), lines(6));
    let claims = job_with(|set| set.claimed_devices("gpus", Some(4)), |node| node);
    assert_eq!(hostfile(&run(claims)), lines(4));
    let unknown = job_with(|set| set.claimed_devices("gpus", None), |node| node);
    assert_eq!(hostfile(&run(unknown)), lines(1));
}

#[test]
fn slots_of_the_configuration_take_precedence() {
    let outcome = run(job().processes_per_node(3).config(json!({"slots": 5})));
    assert!(hostfile(&outcome).starts_with("bert-node-0-0.bert slots=5\n"));
    let warnings = outcome.warnings();
    assert!(
        matches!(&*warnings, [one] if one.starts_with("spec.trainer.numProcPerNode: is 3")),
        "{warnings:?}"
    );
}

#[test]
fn slots_and_ports_have_bounds() {
    for config in [
        json!({"slots": 0}),
        json!({"port": 0}),
        json!({"port": 65536}),
    ] {
        assert!(refusal(job().config(config)).contains("the configuration is refused"));
    }
}

#[test]
fn the_keys_are_in_one_secret() {
    let outcome = run(job());
    let objects = outcome.objects();
    assert_eq!(objects.len(), 2);
    let mount = node(&outcome, "mounts[/etc/ssh-launcher/keys]").unwrap();
    assert_eq!(mount["name"], "ssh-launcher-keys");
    let mount = node(&outcome, "mounts[/etc/ssh-launcher/hostfile]").unwrap();
    assert_eq!(
        (&mount["name"], &mount["subPath"]),
        (&json!("ssh-launcher-hostfile"), &json!("hostfile"))
    );
}

#[test]
fn the_operator_has_to_grant_the_secret() {
    let job = MockJob::new("bert").trainer(2, |node| node.image("train"));
    assert!(refusal(job).contains(GRANT));
}

#[test]
fn what_users_set_stays() {
    let outcome = run(job_with(
        |set| set.volume("mine", json!({"emptyDir": {}})),
        |node| {
            node.train_job_env("LAUNCH_HEAD", "other")
                .env("LAUNCH_RANK", "7")
                .env_source(
                    "LAUNCH_NODES",
                    json!({"fieldRef": {"fieldPath": "metadata.name"}}),
                )
                .mount("mine", "/etc/ssh-launcher/keys")
                .port(2222, "TCP", Some("ssh"))
        },
    )
    .config(json!({"port": 2222})));
    for field in [
        "env[LAUNCH_HEAD]",
        "env[LAUNCH_RANK]",
        "env[LAUNCH_NODES]",
        "mounts[/etc/ssh-launcher/keys]",
        "ports[2222/TCP]",
    ] {
        assert_eq!(node(&outcome, field), None, "{field}");
    }
    assert_eq!(node(&outcome, "env[LAUNCH_PORT]"), Some(json!("2222")));
}

#[test]
fn a_volume_of_the_runtime_is_not_replaced() {
    let taken = job_with(
        |set| set.volume("ssh-launcher-keys", json!({"emptyDir": {}})),
        |node| node,
    );
    let error = refusal(taken);
    assert!(
        error.contains("volumes[ssh-launcher-keys]: is a name of a volume of ssh-launcher"),
        "{error}"
    );
}

#[test]
fn one_node_is_a_warning() {
    let one = MockJob::new("bert")
        .grants(&[GRANT])
        .trainer(1, |node| node.image("train"));
    let warnings = run(one).warnings();
    assert!(
        matches!(&*warnings, [one] if one.starts_with("spec.mlPolicy.numNodes: is 1")),
        "{warnings:?}"
    );
    let spec = json!({"trainer": {"numNodes": 1}});
    let one = MockJob::new("bert")
        .grants(&[GRANT])
        .spec(spec)
        .trainer(1, |node| node.image("train"));
    let warnings = run(one).warnings();
    assert!(
        matches!(&*warnings, [one] if one.starts_with("spec.trainer.numNodes: is 1")),
        "{warnings:?}"
    );
}

#[test]
fn nodes_need_host_names_and_an_index() {
    assert!(refusal(job().without_host_names()).contains("enableDNSHostnames: is false"));
    let error = refusal(job_with(MockPodSet::not_indexed, |node| node));
    assert!(error.contains("completionMode: is `NonIndexed`"), "{error}");
}

/// A TrainJob with two pods of `node` and one of a launcher.
fn with_launcher(nodes: u32, launcher: impl FnOnce(MockPodSet) -> MockPodSet) -> MockJob {
    let train = |set: MockPodSet| set.container("node", |node| node.image("train"));
    MockJob::new("bert")
        .grants(&[GRANT])
        .nodes(nodes)
        .pod_set("node", |set| train(set.nodes(true).count(2)))
        .pod_set("launcher", |set| train(launcher(set.ancestor("trainer"))))
}

#[test]
fn a_launcher_is_no_node() {
    let outcome = run(with_launcher(2, |set| set.nodes(false)));
    assert_eq!(hostfile(&outcome).lines().count(), 2);
    let writes = outcome.writes();
    assert!(
        writes
            .iter()
            .all(|(path, _)| !path.starts_with("pod-sets[launcher]")),
        "{writes:?}"
    );
}

#[test]
fn a_launcher_that_is_a_node_has_the_last_rank() {
    let outcome = run(with_launcher(3, |set| set));
    let launcher = |field| outcome.value(&format!("pod-sets[launcher].containers[node].{field}"));
    assert_eq!(launcher("env[LAUNCH_RANK]"), Some(json!("2")));
    assert_eq!(
        launcher("env[LAUNCH_HEAD]"),
        Some(json!("bert-node-0-0.bert"))
    );
    assert_eq!(
        hostfile(&outcome).lines().last(),
        Some("bert-launcher-0-0.bert slots=1")
    );
}

#[test]
fn ranks_that_no_pod_can_tell_are_refused() {
    let error = refusal(job_with(|set| set.replicas(2), |node| node));
    assert!(error.contains("cannot number these nodes"), "{error}");
}
