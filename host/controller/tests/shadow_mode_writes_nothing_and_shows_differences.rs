//! In the shadow mode, the controller sends no call that writes, and shows for each TrainJob how its rendering differs from the objects in the
//! cluster, by row of divergences.md.

use std::{
    collections::BTreeSet,
    net::{SocketAddr, TcpStream},
    sync::{Arc, OnceLock},
};

use serde_json::{Value, json};
use trainyard_controller::{
    generation::Held,
    metrics::Metrics,
    queue::Queue,
    serve::BindAddress,
    settings::{LeaderElection, Settings},
    webhook::WebhookSettings,
};
use trainyard_model::{
    plugin::Plugin, plugin_info::Settings as PluginSettings, record::Accelerators,
};
use trainyard_policies::TORCH;
use trainyard_render::{ClusterFacts, Renderer};
use trainyard_sdk::native::NativePlugin;

use crate::stub::{
    cluster::Cluster,
    controller::{Controller, job, runtime},
    webhooks::{Certificates, PORT, at, own_address},
};

static METRICS: OnceLock<Arc<Metrics>> = OnceLock::new();

fn metrics(queue: &Queue) -> Arc<Metrics> {
    let metrics = || Arc::new(Metrics::new(queue));
    METRICS.get_or_init(metrics).clone()
}

fn torch() -> Vec<Arc<dyn Plugin>> {
    let plugin = NativePlugin::new(TORCH.1, PluginSettings::built_in());
    vec![Arc::new(plugin.unwrap())]
}

/// A runtime of Torch with two nodes.
fn of_torch() -> Value {
    let mut runtime = runtime("torch", &[]);
    runtime["spec"]["mlPolicy"] = json!({"numNodes": 2, "torch": {}});
    let node = &mut runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"];
    node["metadata"]["labels"] = json!({"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"});
    runtime
}

/// The JobSet that the reference makes of a TrainJob without `spec.trainer`: without the framework's environment.
fn of_reference(cluster: &Cluster, name: &str) -> Value {
    let uid = cluster.get("trainjobs", "a", name).unwrap()["metadata"]["uid"].clone();
    json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": {"namespace": "a", "name": name, "ownerReferences": [{
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": name, "uid": uid, "controller": true,
        }]},
        "spec": {"suspend": false, "network": {"enableDNSHostnames": true, "publishNotReadyAddresses": true}, "replicatedJobs": [{
            "name": "node", "replicas": 1,
            "template": {
                "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                "spec": {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": {"spec": {
                    "containers": [{"name": "node", "image": "image"}],
                }}},
            },
        }]},
    })
}

fn shows(line: &str) -> bool {
    let text = METRICS.get().unwrap().text().unwrap();
    text.lines().any(|it| it == line)
}

fn counts(outcome: &str, count: u32) -> bool {
    shows(&format!(
        r#"trainyard_shadow_train_jobs{{outcome="{outcome}"}} {count}"#
    ))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_shown_and_only_reads_are_sent() {
    let cluster = Cluster::new();
    cluster.put(of_torch());
    for name in ["bert", "edited"] {
        cluster.put(job("a", name, "torch", false));
        cluster.put(of_reference(&cluster, name));
    }
    let change = json!({"spec": {"ttlSecondsAfterFinished": 7}});
    cluster.merge("jobsets", "a", "edited", &change);
    let mut refused = job("a", "refused", "torch", false);
    refused["spec"]["trainer"] = json!({"numNodes": 0});
    cluster.put(refused);
    cluster.put(job("a", "waits", "missing", false));
    cluster.put(job("a", "new", "torch", true));
    // Neither leads it, nor serves webhooks, whatever the file says.
    let certificates = Certificates::new();
    let address = SocketAddr::from((own_address(), PORT));
    let settings = Settings {
        shadow: true,
        leader_election: LeaderElection {
            leader_elect: true,
            ..LeaderElection::default()
        },
        metrics_bind_address: BindAddress::Off,
        health_probe_bind_address: BindAddress::Off,
        webhook: WebhookSettings {
            bind_address: at(address),
            cert_dir: Some(certificates.directory.path().to_owned()),
            ..WebhookSettings::default()
        },
        ..Settings::default()
    };
    let controller = Controller::start_with(&cluster, settings, metrics, |_| torch()).await;
    for (outcome, count) in [
        ("listed", 1),
        ("unlisted", 1),
        ("refused", 1),
        ("not-compared", 2),
        ("same", 0),
    ] {
        let what = format!(
            "{count} are {outcome}: {:?}",
            METRICS.get().unwrap().shadow_page()
        );
        cluster.until(&what, |_| counts(outcome, count)).await;
    }
    assert!(TcpStream::connect(address).is_err());
    for line in [
        // The new TrainJob may show it.
        r#"trainyard_shadow_rows{row="env-without-trainer"} 3"#,
        r#"trainyard_shadow_rows{row="count-below-one"} 1"#,
        r#"trainyard_shadow_rows{row="none"} 1"#,
        "trainyard_leader 0",
    ] {
        assert!(
            shows(line),
            "{line}:\n{}",
            METRICS.get().unwrap().text().unwrap()
        );
    }
    let page = METRICS.get().unwrap().shadow_page().unwrap();
    for part in [
        "TrainJob a/refused: refused\n  count-below-one: refused: TrainJob a/refused: spec.trainer.numNodes",
        "TrainJob a/edited: unlisted\n",
        "  none: JobSet a/edited: spec.ttlSecondsAfterFinished\n",
        "TrainJob a/bert: listed\n  env-without-trainer: JobSet a/bert: spec.replicatedJobs[node]",
        "TrainJob a/waits: not-compared\n  spec.runtimeRef.name: there is no ClusterTrainingRuntime `missing`",
        "TrainJob a/new: not-compared\n  there is no JobSet to compare with; env-without-trainer may concern it",
    ] {
        assert!(page.contains(part), "{part}\n\n{page}");
    }
    // Changes are followed.
    cluster.merge(
        "jobsets",
        "a",
        "edited",
        &json!({"spec": {"ttlSecondsAfterFinished": null}}),
    );
    cluster
        .until("it is as listed", |_| {
            counts("listed", 2) && counts("unlisted", 0)
        })
        .await;
    cluster.delete("trainjobs", "a", "refused");
    cluster
        .until("it is forgotten", |_| counts("refused", 0))
        .await;
    controller.stop().await;
    let traffic = cluster.all_traffic();
    // The stub counts the events of watches as well.
    let verbs = traffic.keys().map(|(verb, _)| verb.as_str());
    let verbs: BTreeSet<_> = verbs.filter(|verb| *verb != "event").collect();
    assert_eq!(verbs, ["get", "list", "watch"].into(), "{traffic:?}");
    let kinds: BTreeSet<_> = traffic.keys().map(|(_, plural)| plural.as_str()).collect();
    let unwanted = ["secrets", "events", "leases", "pods", "jobs"];
    assert!(
        unwanted.iter().all(|kind| !kinds.contains(kind)),
        "{traffic:?}"
    );
    assert_eq!(
        (cluster.count("events"), cluster.count("configmaps")),
        (0, 0)
    );
}

static OF_OPERATOR: OnceLock<Arc<Metrics>> = OnceLock::new();

/// An override of memory alone, on nodes whose accelerators only the operator's list has: the reference starts one process, and Trainyard 8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operators_accelerators_are_counted() {
    let cluster = Cluster::new();
    let settings = Settings {
        shadow: true,
        metrics_bind_address: BindAddress::Off,
        health_probe_bind_address: BindAddress::Off,
        ..Settings::default()
    };
    let metrics = |queue: &Queue| {
        let metrics = || Arc::new(Metrics::new(queue));
        OF_OPERATOR.get_or_init(metrics).clone()
    };
    let controller = Controller::start_with(&cluster, settings, metrics, |_| torch()).await;
    let facts = ClusterFacts {
        accelerators: Accelerators::new(["nvidia.com/gpu", "example.com/npu"]),
        ..ClusterFacts::default()
    };
    let generations = controller.generations();
    let generation = generations.generation((1, "1"), Renderer::new(torch(), facts).unwrap());
    generations.replace(Held::only(generation));
    let mut runtime = of_torch();
    let jobs = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0";
    runtime.pointer_mut(jobs).unwrap()["resources"] =
        json!({"requests": {"cpu": 32}, "limits": {"example.com/npu": 8}});
    cluster.put(runtime);
    let mut job = job("a", "bert", "torch", false);
    job["spec"]["trainer"] = json!({"resourcesPerNode": {"requests": {"memory": "512Gi"}}});
    cluster.put(job);
    let mut job_set = of_reference(&cluster, "bert");
    let node = "/spec/replicatedJobs/0/template/spec/template/spec/containers/0";
    let index = "metadata.annotations['batch.kubernetes.io/job-completion-index']";
    let node = job_set.pointer_mut(node).unwrap();
    node["ports"] = json!([{"containerPort": 29500, "protocol": "TCP"}]);
    node["resources"] = json!({
        "requests": {"cpu": 32, "memory": "512Gi"}, "limits": {"example.com/npu": 8},
    });
    node["env"] = json!([
        {"name": "PET_NNODES", "value": "2"},
        {"name": "PET_NPROC_PER_NODE", "value": "1"},
        {"name": "PET_NODE_RANK", "valueFrom": {"fieldRef": {"fieldPath": index}}},
        {"name": "PET_MASTER_ADDR", "value": "bert-node-0-0.bert"},
        {"name": "PET_MASTER_PORT", "value": "29500"},
    ]);
    cluster.put(job_set);
    let page = || OF_OPERATOR.get().unwrap().shadow_page().unwrap_or_default();
    cluster
        .until("it is compared", |_| {
            page().contains("TrainJob a/bert: listed")
        })
        .await;
    for part in [
        "partial-override: JobSet a/bert: spec.replicatedJobs[node]",
        "env[PET_NPROC_PER_NODE].value",
    ] {
        assert!(page().contains(part), "{part}\n\n{}", page());
    }
    controller.stop().await;
}
