//! Warnings about Kueue's quota and about the number of processes become Events of the TrainJob, each with its row.

use std::sync::Arc;

use serde_json::{Value, json};
use trainyard_controller::metrics::Metrics;
use trainyard_model::{plugin::Plugin, plugin_info::Settings};
use trainyard_policies::{BuiltInParts, FLUX, TORCH, XGBOOST};
use trainyard_sdk::native::NativePlugin;

use crate::stub::{
    cluster::Cluster,
    controller::{Controller, job, runtime},
};

/// The built-in plugins of these TrainJobs, native instead of sandboxed.
fn plugins() -> Vec<Arc<dyn Plugin>> {
    let built_ins = [FLUX, TORCH, XGBOOST];
    let native = |(_, parts): BuiltInParts| NativePlugin::new(parts, Settings::built_in()).unwrap();
    let plugins = built_ins.into_iter().map(native);
    plugins
        .map(|plugin| -> Arc<dyn Plugin> { Arc::new(plugin) })
        .collect()
}

/// A runtime of two nodes with four GPUs each.
fn runtime_of(framework: &str) -> Value {
    let mut runtime = runtime(framework, &[]);
    runtime["spec"]["mlPolicy"] = json!({"numNodes": 2, framework: {}});
    let node = &mut runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"];
    node["metadata"]["labels"] = json!({"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"});
    node["spec"]["template"]["spec"]["containers"][0]["resources"] =
        json!({"limits": {"nvidia.com/gpu": 4}});
    runtime
}

/// Whether a warning about the TrainJob is an Event that names this row, in the page about quota or in the one about processes.
fn is_warned(cluster: &Cluster, name: &str, row: &str) -> bool {
    let page = match row {
        "override-replaces" => "docs/kueue.md",
        _ => "docs/move.md",
    };
    let row = format!("(see `{row}` in {page})");
    let events = cluster.all("events").into_iter();
    let mut warnings = events.filter(|event| {
        let of = &event["involvedObject"];
        of["kind"] == "TrainJob"
            && of["name"] == name
            && event["type"] == "Warning"
            && event["reason"] == "TrainJobWarning"
    });
    warnings.any(|event| event["message"].as_str().unwrap().contains(&row))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_about_quota_and_processes_are_events_of_the_train_job() {
    let cluster = Cluster::new();
    for framework in ["flux", "torch", "xgboost"] {
        cluster.put(runtime_of(framework));
    }
    let memory = json!({"resourcesPerNode": {"limits": {"memory": "1Gi"}}});
    let queued = json!({"kueue.x-k8s.io/queue-name": "team"});
    let rows = [
        ("alone", "torch", json!(null), "env-without-trainer"),
        ("partial", "torch", memory.clone(), "partial-override"),
        (
            "tasks",
            "flux",
            json!({"numNodes": 2, "command": ["lmp"]}),
            "flux-tasks",
        ),
        (
            "workers",
            "xgboost",
            json!({"numProcPerNode": 3}),
            "xgboost-workers",
        ),
        ("queued", "torch", memory, "override-replaces"),
    ];
    for (name, framework, trainer, _) in &rows {
        let mut job = job("a", name, framework, false);
        if !trainer.is_null() {
            job["spec"]["trainer"] = trainer.clone();
        }
        if *name == "queued" {
            job["metadata"]["labels"] = queued.clone();
        }
        cluster.put(job);
    }
    let metrics = |queue: &_| Arc::new(Metrics::new(queue));
    let controller = Controller::start(&cluster, metrics, |_| plugins()).await;
    for (name, _, _, row) in &rows {
        let warned = |cluster: &Cluster| is_warned(cluster, name, row);
        cluster.until(&format!("{row} is an Event"), warned).await;
    }
    // Without a queue, Kueue does not matter.
    assert!(!is_warned(&cluster, "partial", "override-replaces"));
    controller.stop().await;
}
