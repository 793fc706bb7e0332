//! What is collected, in which order and how much of it.

use std::collections::{BTreeMap, BTreeSet};

use kube::Client;
use serde_json::{Value, json};
use trainyard_api::yaml;
use trainyard_bundle::CLUSTER_FOLDER;
use trainyard_model::text::clean;

use super::redact::{Redactor, RemovedFrom, known::Everywhere, text::is_ready};
use crate::{
    live_objects::{
        CLUSTER_RUNTIME, CONFIG_MAP, EVENT, JOB_SET, Kind, LiveObjects, NAMESPACE, PLUGIN_REVISION,
        POD, POLICY_PLUGIN, RUNTIME, Selection, TRAIN_JOB, items, text,
    },
    output,
    replicas::{ReplicaArgs, Replicas, series},
    report::ErrorList,
};

/// The file that lists what was removed, and why.
pub(super) const REMOVED_FILE: &str = "cluster/removed.json";

/// The file that lists what could not be read, and why.
const UNREAD_FILE: &str = "cluster/unread.json";

/// The most bytes of all files together. The bundle has a bound of its own, which is larger.
const MOST_BYTES: usize = 64 << 20;

/// The most bytes of a file, so that it is never too large for a bundle.
const MOST_FILE_BYTES: usize = 24 << 20;

/// The most objects of a kind in a namespace.
const MOST_OBJECTS: usize = 1_000;

/// The most lines and bytes of the log of a replica.
const LOG_LINES: usize = 20_000;
const LOG_BYTES: usize = 4 << 20;

/// The ConfigMaps with the controller's configuration and its policy file, and the keys in them.
const FILES: [(&str, &str, &str); 2] = [
    (
        "kubeflow-trainer-config",
        "controller.yaml",
        "configuration",
    ),
    ("kubeflow-trainer-policy", "policy.yaml", "policy"),
];

/// The kinds that are collected of each namespace. Secrets are none of them, and neither are ConfigMaps.
const KINDS: [Kind; 5] = [TRAIN_JOB, RUNTIME, JOB_SET, POD, EVENT];

/// What is collected.
pub(super) struct Scope {
    pub(super) client: Client,
    pub(super) namespaces: Vec<String>,
    pub(super) replicas: ReplicaArgs,
}

/// The files of a bundle by their names.
type Files = BTreeMap<String, Vec<u8>>;

/// A file of the bundle.
enum Content {
    Value(Value),
    Text(String),
}

/// Files without credentials.
#[derive(Default)]
pub(super) struct Collection {
    redactor: Redactor,
    files: BTreeMap<String, (Content, RemovedFrom)>,
    bytes: usize,
    unread: Vec<String>,
}

impl Collection {
    /// Collects what can be read. What cannot is noted.
    ///
    /// # Errors
    /// Credentials could not be recognized, or nothing could be read.
    pub(super) async fn of(scope: &Scope) -> Result<Self, String> {
        if !is_ready() {
            return Err(
                "the patterns of credentials are invalid; this is a bug in Trainyard".to_owned(),
            );
        }
        let mut all = Self::default();
        all.replicas(scope).await;
        let of_cluster = LiveObjects {
            client: scope.client.clone(),
            namespace: String::new(),
        };
        all.list(&of_cluster, CLUSTER_RUNTIME, "clustertrainingruntimes.json")
            .await;
        for kind in [POLICY_PLUGIN, PLUGIN_REVISION] {
            all.list(&of_cluster, kind, &format!("{}.json", kind.plural()))
                .await;
        }
        let namespaces: BTreeSet<_> = scope.namespaces.iter().collect();
        for namespace in namespaces {
            // A role for one namespace may not allow to read it.
            if let Ok(None) = of_cluster.get(NAMESPACE, namespace).await {
                all.unread.push(format!(
                    "there is no namespace {}; pass the namespaces of TrainJobs with -n",
                    clean(namespace)
                ));
                continue;
            }
            let objects = LiveObjects {
                client: scope.client.clone(),
                namespace: namespace.clone(),
            };
            for kind in KINDS {
                let file = format!("namespaces/{namespace}/{}.json", kind.plural());
                all.list(&objects, kind, &file).await;
            }
        }
        match all.files.is_empty() {
            true => Err(all.unread.join("; ")),
            false => Ok(all),
        }
    }

    /// Collects what the replicas of the controller say of themselves.
    async fn replicas(&mut self, scope: &Scope) {
        self.configuration(scope).await;
        let replicas = Replicas::list(scope.client.clone(), &scope.replicas).await;
        let Some(replicas) = self.or_unread(replicas) else {
            return;
        };
        let mut summaries = Vec::new();
        for (number, pod) in replicas.pods.iter().enumerate() {
            let name = text(pod, "/metadata/name").unwrap_or_default();
            let metrics = replicas.metrics(pod).await;
            let metrics = self.or_unread(metrics);
            summaries.push(summary(number, pod, metrics.as_deref().unwrap_or_default()));
            if let Some(metrics) = metrics {
                self.add_text(&format!("replicas/{number:03}.metrics.txt"), metrics);
            }
            let restarts = items(pod, "/status/containerStatuses")
                .filter_map(|status| status.get("restartCount")?.as_u64());
            let logs = [(false, "log"), (true, "previous.log")];
            let has_restarted = restarts.sum::<u64>() > 0;
            for (previous, end) in logs
                .into_iter()
                .filter(|(previous, _)| has_restarted || !previous)
            {
                let path = format!(
                    "/api/v1/namespaces/{}/pods/{name}/log?tailLines={LOG_LINES}&limitBytes={LOG_BYTES}&previous={previous}",
                    replicas.objects.namespace
                );
                let log = replicas.objects.text(&path).await;
                if let Some(log) = self.or_unread(log) {
                    self.add_text(&format!("replicas/{number:03}.{end}"), log);
                }
            }
        }
        self.add("replicas/summary.json", json!(summaries));
        self.add("replicas/pods.json", json!(replicas.pods));
        self.list(&replicas.objects, EVENT, "replicas/events.json")
            .await;
    }

    /// Collects the controller's configuration and its policy file. They are parsed, because only then each of their keys is known.
    async fn configuration(&mut self, scope: &Scope) {
        let objects = LiveObjects {
            client: scope.client.clone(),
            namespace: scope.replicas.controller_namespace.clone(),
        };
        for (name, key, file) in FILES {
            let map = objects.get(CONFIG_MAP, name).await;
            let Some(Some(map)) = self.or_unread(map) else {
                continue;
            };
            let data = map
                .pointer("/data")
                .and_then(|data| data.get(key)?.as_str());
            let documents: Result<Vec<_>, _> =
                yaml::read(data.unwrap_or_default()).into_iter().collect();
            match documents {
                Ok(documents) => {
                    let values = documents.into_iter().map(|document| document.value);
                    self.add(&format!("{file}.json"), json!(values.collect::<Vec<_>>()));
                }
                Err(_) => self.unread.push(format!(
                    "ConfigMap {}/{name}: {key} is not valid YAML, and was left out",
                    objects.namespace
                )),
            }
        }
    }

    /// Collects the objects of a kind.
    async fn list(&mut self, objects: &LiveObjects, kind: Kind, file: &str) {
        let selection = Selection {
            most: MOST_OBJECTS,
            most_bytes: MOST_FILE_BYTES,
            ..Selection::default()
        };
        let listed = objects.list(kind, selection).await;
        let Some((found, more)) = self.or_unread(listed) else {
            return;
        };
        if more {
            self.unread.push(format!(
                "{file} has the first {} objects; there are more",
                found.len()
            ));
        }
        self.add(file, json!(found));
    }

    fn add(&mut self, file: &str, mut value: Value) {
        let removed = self.redactor.value(&mut value);
        let mut bytes = output::compact(&value).len();
        while let (true, Some(objects)) = (bytes > MOST_FILE_BYTES, value.as_array_mut()) {
            let half = objects.len() / 2;
            objects.truncate(half);
            self.unread.push(format!(
                "{file} has only the first {half} objects, because more would be larger than {MOST_FILE_BYTES} bytes"
            ));
            bytes = output::compact(&value).len();
        }
        self.keep(file, bytes, Content::Value(value), removed);
    }

    fn add_text(&mut self, file: &str, mut text: String) {
        if let Some((end, _)) = text.char_indices().nth(LOG_BYTES) {
            text.truncate(end);
        }
        let removed = self.redactor.text(&mut text);
        self.keep(file, text.len(), Content::Text(text), removed);
    }

    /// Keeps a file, if there is room for it.
    fn keep(&mut self, file: &str, bytes: usize, content: Content, removed: RemovedFrom) {
        if self.bytes + bytes > MOST_BYTES {
            self.unread.push(format!(
                "{file} was left out, because the bundle would be larger than {MOST_BYTES} bytes; collect fewer namespaces at once"
            ));
            return;
        }
        self.bytes += bytes;
        let file = format!("{CLUSTER_FOLDER}{file}");
        self.files.insert(file, (content, removed));
    }

    fn or_unread<T>(&mut self, read: Result<T, String>) -> Option<T> {
        let noted = read.map_err(|mut why| {
            self.redactor.text(&mut why);
            self.unread.push(why);
        });
        noted.ok()
    }

    /// Returns the files of the bundle, and what could not be read. Values that were removed in one file are removed from the others too.
    pub(super) fn files(self) -> Result<(Files, Vec<String>), ErrorList> {
        let everywhere = self.redactor.everywhere();
        let mut files = Files::new();
        let mut removals = BTreeMap::new();
        let mut unread = self.unread;
        for (file, (content, mut removed)) in self.files {
            let is_text = matches!(content, Content::Text(_)) || file.ends_with("events.json");
            if is_text && !everywhere.is_complete() {
                unread.push(format!(
                    "{file} was left out, because there are more removed values than can be searched for in it; collect fewer namespaces at once"
                ));
                continue;
            }
            let bytes = match content {
                Content::Value(mut value) => {
                    everywhere.value(&mut value, &mut removed);
                    output::compact(&value)
                }
                Content::Text(mut text) => {
                    everywhere.text(&mut text, &mut removed);
                    text
                }
            };
            files.insert(file.clone(), bytes.into_bytes());
            if !removed.is_empty() {
                removals.insert(file, removed);
            }
        }
        let unread = unread.into_iter();
        let unread: Vec<_> = unread.map(|line| cleaned(line, &everywhere)).collect();
        // Paths have keys, in which values may appear too.
        let mut removals = json!(removals);
        everywhere.value(&mut removals, &mut RemovedFrom::default());
        let removals = output::pretty(&removals)?;
        files.insert(REMOVED_FILE.to_owned(), removals.into_bytes());
        files.insert(
            UNREAD_FILE.to_owned(),
            output::pretty(&unread)?.into_bytes(),
        );
        Ok((files, unread))
    }
}

fn cleaned(mut line: String, everywhere: &Everywhere) -> String {
    everywhere.text(&mut line, &mut RemovedFrom::default());
    line
}

/// Returns the version, the plan and the plugins of a replica.
fn summary(number: usize, pod: &Value, metrics: &str) -> Value {
    let images = items(pod, "/spec/containers").filter_map(|container| text(container, "/image"));
    let plan = series(metrics, "trainyard_plan_info").next();
    let plugins = series(metrics, "trainyard_plugin_loaded");
    let refused = series(metrics, "trainyard_plugin_refused");
    json!({
        "number": number,
        "pod": text(pod, "/metadata/name"),
        "images": images.collect::<Vec<_>>(),
        "plan": plan.and_then(|labels| labels.get("digest").copied()),
        "plugins": plugins.collect::<Vec<_>>(),
        "refused": refused.collect::<Vec<_>>(),
    })
}
