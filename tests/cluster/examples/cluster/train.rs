//! A TrainJob whose pods train with real PyTorch, from its creation to its end.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{
    Cluster, Framework, Images, Installed, Resource, Write, apply, kustomized,
};

use crate::changes::{Changes, kind};

/// How long the training may take, which is far longer than needed, because the machine can be busy.
const WITHIN: Duration = Duration::from_secs(600);

/// Installs PyTorch into the cache if it is missing.
pub(crate) fn install() -> Result<Installed> {
    println!(
        "This demo trains with PyTorch of PyPI, which needs 5.4 GB on disk and twice as much while it is installed."
    );
    let torch = Framework::Torch.install()?;
    println!("{} is installed.", torch.version);
    Ok(torch)
}

/// Applies the runtimes of deploy/ and the kustomization in the folder, and prints what changes until the TrainJob has ended.
pub(crate) async fn run(cluster: &Cluster, folder: &Path, torch: Installed) -> Result<()> {
    crate::apply_runtimes(cluster).await?;
    let objects = kustomized(folder)?;
    let job = objects.iter().find(|object| object.kind == "TrainJob");
    let job = job.context("the folder holds no TrainJob")?;
    let namespace = job.metadata.namespace.clone();
    let namespace = namespace.context("the TrainJob has no namespace")?;
    let spaces = Resource::cluster_wide("/api/v1", "namespaces");
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let spaces = cluster.api(&spaces, "");
    let created = spaces.create(&space, &Write::strict()).await?;
    created.accepted()?;
    println!(
        "pods run on this machine, with {} instead of their image",
        torch.version
    );
    let images = Images::new().otherwise(torch.image);
    cluster.kubelet().run(&namespace, images);
    for object in &objects {
        apply(cluster.plane(), object, false).await?;
        println!("applied {} {}", object.kind, object.metadata.name);
    }
    watch(cluster, &namespace, &job.metadata.name).await
}

/// Prints changes and logs until the TrainJob has ended, and then the condition with which it did.
async fn watch(cluster: &Cluster, namespace: &str, name: &str) -> Result<()> {
    let deadline = Instant::now() + WITHIN;
    let mut changes = Changes::new(cluster, namespace);
    let mut logs = Logs::new(cluster.kubelet().logs().join(namespace));
    let (jobs, object) = (kind("TrainJob")?, format!("TrainJob {name}"));
    loop {
        changes.print().await?;
        for (pod, line) in logs.read()? {
            changes.print_line(&format!("Log {pod}"), &line);
        }
        let job = cluster.api(&jobs, namespace).get(name).await?.accepted()?;
        if let Some(end) = end(&job) {
            let text = |field: &str| end.get(field).and_then(Value::as_str).unwrap_or_default();
            let (kind, reason, message) = (text("type"), text("reason"), text("message"));
            changes.print_line(&object, &format!("{kind}: {reason}: {message}"));
            ensure!(kind == "Complete", "the TrainJob has not completed");
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("the TrainJob did not end within {} s", WITHIN.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Returns the condition with which a TrainJob ended, if it has.
fn end(job: &Value) -> Option<&Value> {
    let conditions = job.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| {
        let text = |field: &str| condition.get(field).and_then(Value::as_str);
        matches!(text("type"), Some("Complete" | "Failed")) && text("status") == Some("True")
    })
}

/// The logs of a namespace's pods, as far as they were not read yet.
struct Logs {
    folder: PathBuf,
    /// How many bytes of each file have been read.
    read: BTreeMap<PathBuf, usize>,
}

impl Logs {
    fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            read: BTreeMap::new(),
        }
    }

    /// Returns the lines that were written since the last time, each with its pod.
    fn read(&mut self) -> Result<Vec<(String, String)>> {
        let mut lines = Vec::new();
        for pod in entries(&self.folder)? {
            let name = pod.file_name().unwrap_or_default();
            let name = name.to_string_lossy().into_owned();
            for log in entries(&pod)? {
                let text = fs::read(&log)?;
                let read = self.read.entry(log).or_default();
                let new = text.get(*read..).unwrap_or_default();
                // The last line may be written only in part.
                let whole = new.iter().rposition(|byte| *byte == b'\n');
                let Some(new) = whole.and_then(|end| new.get(..=end)) else {
                    continue;
                };
                *read += new.len();
                let new = String::from_utf8_lossy(new).into_owned();
                lines.extend(new.lines().map(|line| (name.clone(), line.to_owned())));
            }
        }
        Ok(lines)
    }
}

/// Returns the sorted entries of a folder; none if it does not exist yet.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut entries = entries.collect::<Result<Vec<_>>>()?;
    entries.sort();
    Ok(entries)
}
