//! One TrainJob, from its creation until it is deleted.

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use trainyard_api::Inputs;
use trainyard_cluster::{Api, Cluster, Fate, Resource, Write};
use trainyard_schema::documents::Kind;

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

fn kind(name: &str) -> Result<Resource> {
    let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    let kind =
        kind.with_context(|| format!("the demo supports TrainJobs and runtimes, not {name}"))?;
    Ok(Resource::defined_by(&kind.crd()?)?)
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
    let mut seen = BTreeMap::new();
    let mut running_since = None;
    let mut deleted = false;
    loop {
        let now = look(cluster, namespace).await?;
        for (object, state) in &now {
            if seen.get(object) != Some(state) {
                println!(
                    "{:5.1} s  {object:<44} {state}",
                    started.elapsed().as_secs_f64()
                );
            }
        }
        for object in seen.keys().filter(|object| !now.contains_key(*object)) {
            println!(
                "{:5.1} s  {object:<44} gone",
                started.elapsed().as_secs_f64()
            );
        }
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
        seen = now;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Lists the TrainJob's objects, each with its state in words.
async fn look(cluster: &Cluster, namespace: &str) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let (jobs, job_sets, pods) = (kind("TrainJob")?, Resource::jobsets(), Resource::pods());
    let maps = Resource::namespaced("/api/v1", "configmaps");
    type Words = fn(&Value) -> String;
    let kinds: [(&str, &Resource, Words); 4] = [
        ("TrainJob", &jobs, train_job),
        ("ConfigMap", &maps, |_| "there".to_owned()),
        ("JobSet", &job_sets, job_set),
        ("Pod", &pods, pod),
    ];
    for (kind, resource, words) in kinds {
        for object in cluster.api(resource, namespace).items().await? {
            let name = object
                .pointer("/metadata/name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            if name != "kube-root-ca.crt" {
                found.insert(format!("{kind} {name}"), words(&object));
            }
        }
    }
    Ok(found)
}

fn list<'v>(object: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn train_job(job: &Value) -> String {
    let condition = list(job, "/status/conditions").last();
    let state = condition.map_or("no condition", |condition| text(condition, "/type"));
    let counts = list(job, "/status/jobsStatus").map(|one| {
        let count = |name: &str| one.get(name).and_then(Value::as_i64).unwrap_or_default();
        format!(
            ", {}: active {}, ready {}, succeeded {}",
            text(one, "/name"),
            count("active"),
            count("ready"),
            count("succeeded")
        )
    });
    format!("{state}{}", counts.collect::<String>())
}

fn job_set(set: &Value) -> String {
    match text(set, "/status/terminalState") {
        "" => "runs".to_owned(),
        end => end.to_owned(),
    }
}

fn pod(pod: &Value) -> String {
    let phase = text(pod, "/status/phase");
    match text(pod, "/spec/nodeName") {
        "" => phase.to_owned(),
        node => format!("{phase} on {node}"),
    }
}
