//! The objects of a TrainJob in a namespace, as they change.

use std::{collections::BTreeMap, time::Instant};

use anyhow::{Context as _, Result};
use serde_json::Value;
use trainyard_cluster::{Cluster, Resource};
use trainyard_schema::documents::Kind;

/// Prints what has changed since the last time.
pub(crate) struct Changes<'a> {
    cluster: &'a Cluster,
    namespace: &'a str,
    started: Instant,
    seen: BTreeMap<String, String>,
}

impl<'a> Changes<'a> {
    pub(crate) fn new(cluster: &'a Cluster, namespace: &'a str) -> Self {
        Self {
            cluster,
            namespace,
            started: Instant::now(),
            seen: BTreeMap::new(),
        }
    }

    /// Prints the objects that have changed, and returns all of them with their states.
    pub(crate) async fn print(&mut self) -> Result<BTreeMap<String, String>> {
        let now = look(self.cluster, self.namespace).await?;
        for (object, state) in &now {
            if self.seen.get(object) != Some(state) {
                self.print_line(object, state);
            }
        }
        for object in self.seen.keys().filter(|object| !now.contains_key(*object)) {
            self.print_line(object, "gone");
        }
        self.seen.clone_from(&now);
        Ok(now)
    }

    /// Prints a line about an object, with the time since the start.
    pub(crate) fn print_line(&self, object: &str, text: &str) {
        let seconds = self.started.elapsed().as_secs_f64();
        println!("{seconds:5.1} s  {object:<44} {text}");
    }
}

/// Returns the kind with this name.
pub(crate) fn kind(name: &str) -> Result<Resource> {
    let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    let kind =
        kind.with_context(|| format!("the demo supports TrainJobs and runtimes, not {name}"))?;
    Ok(Resource::defined_by(&kind.crd()?)?)
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
