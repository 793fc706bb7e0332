//! One TrainJob, from its creation until it is deleted.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use trainyard_api::Inputs;
use trainyard_cluster::{Api, Cluster, Fate, Resource, Write};

use crate::changes::{Changes, kind};

/// How long the TrainJob runs before its pods succeed.
const RUNS: Duration = Duration::from_secs(3);
/// How long the demo may take.
const WITHIN: Duration = Duration::from_secs(180);

/// Creates the TrainJob and the other objects in the folder, and prints what changes in the cluster.
pub(crate) async fn run(cluster: &Cluster, folder: &Path) -> Result<()> {
    println!(
        "kubectl --kubeconfig {} get pods -A -w",
        cluster.plane().kubeconfig().display()
    );
    let inputs = Inputs::read(&[folder.to_owned()], std::io::empty()).into_result()?;
    let (jobs, others): (Vec<_>, Vec<_>) = inputs
        .objects
        .into_iter()
        .partition(|object| object.kind == "TrainJob");
    let job = jobs
        .into_iter()
        .next()
        .context("the folder holds no TrainJob")?;
    let namespace = job
        .metadata
        .namespace
        .clone()
        .unwrap_or_else(|| "default".to_owned());
    let spaces = Resource::cluster_wide("/api/v1", "namespaces");
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    create(&cluster.api(&spaces, ""), &space).await?;
    for object in others {
        create(
            &cluster.api(&kind(&object.kind)?, &namespace),
            &object.value,
        )
        .await?;
    }
    cluster.kubelet().decide(&namespace, |_| Fate::Hold);
    create(&cluster.api(&kind("TrainJob")?, &namespace), &job.value).await?;
    watch(cluster, &namespace, &job.metadata.name).await
}

async fn create(api: &Api<'_>, object: &Value) -> Result<()> {
    let created = api.create(object, &Write::strict()).await?.accepted()?;
    let text = |pointer: &str| {
        created
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    println!("created {} {}", text("/kind"), text("/metadata/name"));
    Ok(())
}

/// Prints what changes until the TrainJob is complete, deletes it, and waits until its objects are gone.
async fn watch(cluster: &Cluster, namespace: &str, name: &str) -> Result<()> {
    let started = Instant::now();
    let mut changes = Changes::new(cluster, namespace);
    let mut running_since = None;
    let mut deleted = false;
    loop {
        let now = changes.print().await?;
        let state = now
            .get(&format!("TrainJob {name}"))
            .map(String::as_str)
            .unwrap_or_default();
        if running_since.is_none() && state.contains("ready 1") {
            running_since = Some(Instant::now());
        }
        if running_since.is_some_and(|since| since.elapsed() > RUNS) {
            cluster.kubelet().decide(namespace, |_| Fate::Succeed);
        }
        if state.starts_with("Complete") && !deleted {
            deleted = true;
            println!("deleting the TrainJob ...");
            let jobs = kind("TrainJob")?;
            cluster
                .api(&jobs, namespace)
                .delete(name)
                .await?
                .accepted()?;
        }
        if deleted && now.is_empty() {
            println!("all of its objects are gone");
            return Ok(());
        }
        if started.elapsed() > WITHIN {
            bail!("the TrainJob did not end within {} s", WITHIN.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
