//! The TrainJobs and runtimes that are compared.

use std::{collections::HashMap, hash::Hash, sync::Arc};

use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use trainyard_api::names;

use crate::{
    queue::NamespacedName,
    reconcile::{Reconciler, Stores},
    watch::{Decode as _, RuntimeKey, TrainJobObject, TrainJobState},
};

/// The most TrainJobs of a runtime that are compared, and the most in all. The newest are.
const OF_RUNTIME: usize = 10;
pub(super) const IN_ALL: usize = 1_000;

/// The most TrainJobs, and the most runtimes, of a namespace that count, so that none takes the time of all.
pub(super) const OF_NAMESPACE: usize = 20;

/// Admits at most so many of each group, so that none takes the time of all, or decides for all.
pub(super) struct AtMost<G> {
    most: usize,
    admitted: HashMap<G, usize>,
}

impl<G: Eq + Hash> AtMost<G> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            admitted: HashMap::new(),
        }
    }

    /// Whether a group has room.
    pub(super) fn has_room(&self, group: &G) -> bool {
        let admitted = self.admitted.get(group).copied();
        admitted.unwrap_or_default() < self.most
    }

    /// Whether one of a group was admitted.
    pub(super) fn has_any(&self, group: &G) -> bool {
        self.admitted.contains_key(group)
    }

    /// Admits one of a group; `false` if the group has no room.
    pub(super) fn admits(&mut self, group: G) -> bool {
        let has_room = self.has_room(&group);
        if has_room {
            *self.admitted.entry(group).or_default() += 1;
        }
        has_room
    }

    /// Returns how many were admitted, and of how many groups.
    pub(super) fn count(&self) -> (usize, usize) {
        (self.admitted.values().sum(), self.admitted.len())
    }
}

/// A TrainJob, or one that is made up for a runtime.
pub(super) struct Subject {
    /// How it is shown.
    pub(super) name: String,
    pub(super) key: NamespacedName,
    pub(super) job: Arc<TrainJobState>,
    pub(super) is_runtime: bool,
}

/// Returns the newest TrainJobs of each runtime that have not started. Namespaces take turns at the places of a runtime.
pub(super) fn train_jobs(reconciler: &Reconciler, stores: &Stores) -> Vec<Subject> {
    let mut jobs = stores.jobs.objects();
    jobs.retain(|(key, job)| reconciler.follows(key, job));
    jobs.sort_by(|a, b| b.1.created.cmp(&a.1.created).then_with(|| a.0.cmp(&b.0)));
    let mut of_runtime = AtMost::new(OF_RUNTIME);
    let mut of_namespace = AtMost::new(OF_NAMESPACE);
    let mut subjects = Vec::new();
    let jobs = jobs.into_iter().map(|(key, job)| {
        let runtime = runtime_of(&key, &job);
        (
            (key.namespace.clone(), runtime.clone()),
            (key, job, runtime),
        )
    });
    for (key, job, runtime) in in_turns(jobs) {
        let has_room = of_namespace.has_room(&key.namespace);
        if !has_room || !of_runtime.admits(runtime) {
            continue;
        }
        of_namespace.admits(key.namespace.clone());
        subjects.push(Subject {
            name: format!("{} {}/{}", names::TRAIN_JOB, key.namespace, key.name),
            key,
            job,
            is_runtime: false,
        });
        if subjects.len() == IN_ALL {
            break;
        }
    }
    subjects
}

/// Returns the first of each group, then the second of each, and so on. Otherwise, the order is kept.
pub(super) fn in_turns<G: Eq + Hash, T>(
    all: impl Iterator<Item = (G, T)>,
) -> impl Iterator<Item = T> {
    let mut turns = HashMap::<G, usize>::new();
    let with_turn = all.map(|(group, one)| {
        let turn = turns.entry(group).or_default();
        *turn += 1;
        (*turn, one)
    });
    let mut all: Vec<_> = with_turn.collect();
    all.sort_by_key(|(turn, _)| *turn);
    all.into_iter().map(|(_, one)| one)
}

/// Returns a TrainJob for each runtime; at most [`OF_NAMESPACE`] of a namespace.
pub(super) fn runtimes(stores: &Stores) -> Vec<Subject> {
    let kinds = [
        (
            names::CLUSTER_TRAINING_RUNTIME,
            stores.cluster_runtimes.keys(),
        ),
        (names::TRAINING_RUNTIME, stores.runtimes.keys()),
    ];
    let all = kinds.into_iter().flat_map(|(kind, mut keys)| {
        keys.sort();
        let mut of_namespace = AtMost::new(OF_NAMESPACE);
        let mut is_admitted = |namespace: &Arc<str>| of_namespace.admits(namespace.clone());
        keys.retain(|key| key.namespace.as_ref().is_none_or(&mut is_admitted));
        keys.into_iter().filter_map(move |key| runtime(kind, &key))
    });
    all.collect()
}

fn runtime(kind: &str, RuntimeKey { namespace, name }: &RuntimeKey) -> Option<Subject> {
    // The TrainJob of a runtime of the cluster may be in any namespace.
    let shown = namespace.as_ref().map_or_else(
        || format!("{kind} {name}"),
        |namespace| format!("{kind} {namespace}/{name}"),
    );
    let namespace = namespace.clone().unwrap_or_else(|| "default".into());
    let job = json!({
        "apiVersion": names::TRAINER_API_VERSION,
        "kind": names::TRAIN_JOB,
        "metadata": {
            "name": "job", "namespace": namespace, "uid": "0", "creationTimestamp": Timestamp::UNIX_EPOCH.to_string(),
        },
        "spec": {"runtimeRef": {"kind": kind, "name": name}},
    });
    let job = TrainJobObject::decode(&job.to_string(), 0).ok()?;
    Some(Subject {
        name: shown,
        key: NamespacedName::new(namespace, "job"),
        job: Arc::new(job),
        is_runtime: true,
    })
}

/// Returns the runtime of a TrainJob.
fn runtime_of(key: &NamespacedName, job: &TrainJobState) -> String {
    #[derive(Deserialize)]
    struct Parsed {
        spec: Spec,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        runtime_ref: Value,
    }
    let parsed: Option<Parsed> = serde_json::from_str(job.text()).ok();
    let reference = parsed.map_or(Value::Null, |parsed| parsed.spec.runtime_ref);
    let text = |field: &str| {
        reference
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    match text("kind") {
        names::TRAINING_RUNTIME => format!("{}/{}", key.namespace, text("name")),
        _ => text("name").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_namespace_takes_all_places_of_a_runtime() {
        let all = ["a1", "a2", "a3", "a4", "b1", "c1", "b2"].map(|one| (one.chars().next(), one));
        let found: Vec<_> = in_turns(all.into_iter()).collect();
        assert_eq!(found, ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]);
    }
}
