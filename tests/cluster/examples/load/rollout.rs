//! How soon queued TrainJobs follow a change of a plugin that the cluster declares, and at what cost.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use kube::{
    Api,
    api::{DynamicObject, ListParams},
};
use serde_json::json;
use trainyard_cluster::{
    Api as Objects, ControlPlane, Install, Resource, Write, define_kinds, install,
};
use trainyard_config::policy_plugin::Crd;

use crate::{
    SETTLED,
    measured::{Measured, Trainyard},
    objects::{self, Fate, JOB_SET, api},
    observe,
};

const OURS: &str = "/apis/trainyard.dev/v1alpha1";
const SAMPLED_EVERY: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(900);

/// Measures the time from the change of a PolicyPlugin, from one file to another of the plugin `stamp`, until this many queued TrainJobs have
/// followed.
pub(crate) fn followers(program: &Path, count: usize, files: &[PathBuf]) -> Result<()> {
    let [old, new] = files else {
        anyhow::bail!("--plugins takes two files of the plugin `stamp`");
    };
    let plane = ControlPlane::start()?;
    plane.block_on(async {
        let client = plane.client();
        define_kinds(&plane).await?;
        for crd in Crd::ALL {
            install(&plane, &crd.definition()?, Install::ServerSide).await?;
        }
        objects::create_runtime(client).await?;
        let runtimes = Resource::cluster_wide("/apis/trainer.kubeflow.org/v1alpha1", "clustertrainingruntimes");
        let stamped = json!({"spec": {"plugins": [{"name": "stamp"}]}});
        plane.api(&runtimes, "").merge("torch", &stamped, &Write::strict()).await?.accepted()?;
        let namespace = plane.new_namespace().await?;
        objects::create_jobs(client, &namespace, count, Fate::Waits).await?;
        let policies = Resource::cluster_wide(OURS, "policyplugins");
        let policies = plane.api(&policies, "");
        declare(&policies, "old.wasm").await?;
        let config = configuration(plane.folder(), old, new)?;
        let arguments = [format!("--config={}", config.display())];
        let controller = Trainyard::start(&plane, program, &arguments).await?;
        let controller = Measured::Trainyard(controller);
        let job_sets = api(client, &namespace, JOB_SET);
        observe(&job_sets, count).await?;
        tokio::time::sleep(SETTLED).await;
        let (before, calls) = (controller.rss().await?, controller.calls().await?);
        let reconciles = controller.reconciles().await?;
        let started = Instant::now();
        declare(&policies, "new.wasm").await?;
        let mut most = before;
        loop {
            most = most.max(controller.rss().await?);
            let done = controller.reconciles().await? - reconciles;
            if done >= count as f64 && controller.is_idle().await? {
                break;
            }
            ensure!(started.elapsed() < PATIENCE, "only {done} of {count} TrainJobs have followed");
            tokio::time::sleep(SAMPLED_EVERY).await;
        }
        let took = started.elapsed();
        let calls = controller.calls().await? - calls;
        tokio::time::sleep(SETTLED).await;
        let after = controller.rss().await?;
        println!(
            "{count} queued TrainJobs: the last follows {:.1} s after the change; {calls:.0} API calls; \
             {before:.1} MiB before, {most:.1} MiB at most, {after:.1} MiB with two generations; {} JobSets have the new version",
            took.as_secs_f64(),
            changed(&job_sets).await?,
        );
        Ok(())
    })
}

/// Writes the controller's configuration, and the plugin directory.
fn configuration(folder: &Path, old: &Path, new: &Path) -> Result<PathBuf> {
    let plugins = folder.join("plugins");
    fs::create_dir_all(&plugins)?;
    fs::copy(old, plugins.join("old.wasm"))?;
    fs::copy(new, plugins.join("new.wasm"))?;
    let configuration = json!({
        "apiVersion": "trainyard.dev/v1alpha1",
        "kind": "ControllerConfiguration",
        "pluginDir": plugins,
        "plugins": {"source": "Cluster", "rollout": {"steps": []}},
    });
    let path = folder.join("controller.yaml");
    fs::write(&path, configuration.to_string())?;
    Ok(path)
}

async fn declare(policies: &Objects<'_>, file: &str) -> Result<()> {
    let object = json!({
        "apiVersion": "trainyard.dev/v1alpha1", "kind": "PolicyPlugin", "metadata": {"name": "stamp"},
        "spec": {"source": {"file": {"name": file}}},
    });
    let write = Write {
        force: true,
        ..Write::by("operator")
    };
    policies.apply(&object, &write).await?.accepted()?;
    Ok(())
}

/// Returns how many JobSets have what only the new version sets.
async fn changed(job_sets: &Api<DynamicObject>) -> Result<usize> {
    let all = job_sets.list_metadata(&ListParams::default()).await?;
    let annotations = all.items.iter().map(|it| it.metadata.annotations.as_ref());
    let annotations = annotations.map(|it| it.context("no annotations"));
    let annotations = annotations.collect::<Result<Vec<_>>>()?;
    let is_new = annotations
        .iter()
        .filter(|it| it.contains_key("example.com/more"));
    Ok(is_new.count())
}
