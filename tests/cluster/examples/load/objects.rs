//! The measured objects: a runtime and its TrainJobs.

use anyhow::Result;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::AT_ONCE;

/// Group, version and kind.
type Kind = (&'static str, &'static str, &'static str);

pub(crate) const JOB_SET: Kind = ("jobset.x-k8s.io", "v1alpha2", "JobSet");
pub(crate) const TRAIN_JOB: Kind = ("trainer.kubeflow.org", "v1alpha1", "TrainJob");
const RUNTIME: Kind = ("trainer.kubeflow.org", "v1alpha1", "ClusterTrainingRuntime");

/// The objects of a kind in a namespace.
pub(crate) fn api(client: &Client, namespace: &str, kind: Kind) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &resource(kind))
}

/// The name of a TrainJob.
pub(crate) fn job(number: usize) -> String {
    format!("job-{number}")
}

/// Creates the runtime of all TrainJobs.
pub(crate) async fn create_runtime(client: &Client) -> Result<()> {
    let runtimes: Api<DynamicObject> = Api::all_with(client.clone(), &resource(RUNTIME));
    let runtime = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime", "metadata": {"name": "torch"},
        "spec": {"mlPolicy": {"numNodes": 1, "torch": {}}, "template": {"spec": {"replicatedJobs": [{
            "name": "node",
            "template": {
                "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                "spec": {"template": {"spec": {"containers": [{
                    "name": "node", "image": "example.com/torch", "command": ["torchrun", "train.py"],
                    "resources": {"limits": {"nvidia.com/gpu": 8}},
                }]}}},
            },
        }]}}},
    });
    runtimes
        .create(&PostParams::default(), &serde_json::from_value(runtime)?)
        .await?;
    Ok(())
}

/// The outcome of TrainJobs.
#[derive(Clone, Copy)]
pub(crate) enum Fate {
    /// Their JobSets are created.
    Runs,
    /// Their JobSets are created and stay suspended.
    Waits,
    /// The plugin Torch refuses them, because they set a reserved env var.
    Fails,
}

impl Fate {
    fn spec(self) -> Value {
        let name = match self {
            Self::Fails => "PET_NNODES",
            _ => "LEARNING_RATE",
        };
        json!({
            "runtimeRef": {"name": "torch"}, "suspend": matches!(self, Self::Waits),
            "trainer": {
                "numNodes": 4, "image": "example.com/mine", "env": [{"name": name, "value": "1e-4"}],
            },
        })
    }
}

/// Suspends a TrainJob.
pub(crate) async fn suspend(client: &Client, namespace: &str, name: &str) -> Result<()> {
    let patch = Patch::Merge(json!({"spec": {"suspend": true}}));
    let jobs = api(client, namespace, TRAIN_JOB);
    jobs.patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Creates this many TrainJobs.
pub(crate) async fn create_jobs(
    client: &Client,
    namespace: &str,
    count: usize,
    fate: Fate,
) -> Result<()> {
    let jobs = api(client, namespace, TRAIN_JOB);
    let create = |number: usize| {
        let jobs = jobs.clone();
        async move {
            let job = json!({
                "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": job(number)},
                "spec": fate.spec(),
            });
            jobs.create(&PostParams::default(), &serde_json::from_value(job)?)
                .await?;
            anyhow::Ok(())
        }
    };
    stream::iter(0..count)
        .map(create)
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

fn resource((group, version, kind): Kind) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}
