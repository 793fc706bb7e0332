//! The ConfigMap of a snapshot. A tenant can write it with any content that the API server accepts.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::json;
use trainyard_api::{TrainJob, yaml};
use trainyard_model::text::clean;

use super::Snapshot;
use crate::{
    annotations::{RECREATE, STARTED},
    reconcile::{
        error::{ReconcileError, SnapshotError},
        object_ref::{self, ObjectRef},
        owner,
        placement::Entries,
        vouch::{Digests, RUNTIME},
    },
};

const PLAN: &str = "plan";
const LOOKUPS: &str = "lookups";
const CONFIG: &str = "config";
const OBJECTS: &str = "objects";
const PLACEMENT: &str = "placement";

/// The keys of a snapshot.
pub(in crate::reconcile) const KEYS: [&str; 6] =
    [RUNTIME, PLAN, LOOKUPS, CONFIG, OBJECTS, PLACEMENT];

/// Whether a snapshot's ConfigMap, or a JobSet, is marked as started.
pub(crate) fn is_started(metadata: &ObjectMeta) -> bool {
    has(metadata, STARTED)
}

/// Whether a snapshot is marked because its JobSet was deleted.
pub(crate) fn is_to_recreate(metadata: &ObjectMeta) -> bool {
    has(metadata, RECREATE)
}

fn has(metadata: &ObjectMeta, annotation: &str) -> bool {
    let annotations = metadata.annotations.as_ref();
    annotations.is_some_and(|all| all.contains_key(annotation))
}

impl Snapshot {
    /// Returns the data of the ConfigMap.
    pub(crate) fn data(&self) -> BTreeMap<String, String> {
        let mut data = BTreeMap::from([
            (RUNTIME.to_owned(), yaml::write(&self.runtime_object)),
            (LOOKUPS.to_owned(), json!(&*self.lookups).to_string()),
            (CONFIG.to_owned(), self.config.to_string()),
        ]);
        if let Some(plan) = &self.plan {
            data.insert(PLAN.to_owned(), json!(plan).to_string());
            data.insert(OBJECTS.to_owned(), object_ref::write(&self.objects));
        }
        if let Some(placement) = &self.placement {
            data.insert(PLACEMENT.to_owned(), json!(placement).to_string());
        }
        data
    }

    /// Returns the ConfigMap of the snapshot. It is mutable until its JobSet has run, and is replaced by one write, so it always exists.
    pub fn to_config_map(&self, job: &TrainJob, namespace: &str) -> ConfigMap {
        let mark = || BTreeMap::from([(STARTED.to_owned(), "true".to_owned())]);
        let uid = job.metadata.uid.as_deref().unwrap_or_default();
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(Self::name(&job.metadata.name)),
                namespace: Some(namespace.to_owned()),
                owner_references: Some(vec![owner::reference(&job.metadata.name, uid)]),
                annotations: self.started.then(mark),
                ..ObjectMeta::default()
            },
            data: Some(self.data()),
            immutable: Some(self.started),
            ..ConfigMap::default()
        }
    }

    /// Returns only the objects beside the JobSet, from the ConfigMap of a TrainJob whose plugins emit at most `most` objects.
    ///
    /// # Errors
    /// The list is malformed, or names an object that no plugin emits for the TrainJob.
    pub fn listed(map: &ConfigMap, job: &str, most: u64) -> Result<Vec<ObjectRef>, SnapshotError> {
        let text = map.data.as_ref().and_then(|data| data.get(OBJECTS));
        let Some(text) = text else {
            return Ok(Vec::new());
        };
        object_ref::read(text, job, most).map_err(|problem| unreadable(job, OBJECTS, &problem))
    }

    /// Checks that the TrainJob owns the ConfigMap of its snapshot.
    ///
    /// # Errors
    /// Another owner, or an earlier TrainJob of the same name, owns it.
    pub(in crate::reconcile) fn check_owner(
        map: &ConfigMap,
        job: &TrainJob,
    ) -> Result<(), ReconcileError> {
        if owner::owns(job, &map.metadata) {
            return Ok(());
        }
        let job = &job.metadata.name;
        let name = Self::name(job);
        Err(owner::foreign(job, "ConfigMap", &name, &map.metadata))
    }

    /// Parses the ConfigMap of the snapshot of a TrainJob whose plugins emit at most so many objects. It is trusted in nothing.
    ///
    /// # Errors
    /// It is malformed, or holds another runtime.
    pub fn parse(
        map: &ConfigMap,
        job: &TrainJob,
        most_objects: u64,
    ) -> Result<Self, SnapshotError> {
        Self::from_config_map(map, None, job, most_objects)
    }

    /// Parses the ConfigMap, which has these digests, of the snapshot of a TrainJob whose plugins emit at most so many objects. The caller
    /// has checked that the TrainJob owns it (`check_owner`).
    ///
    /// # Errors
    /// It is malformed, or holds another runtime.
    pub(crate) fn from_config_map(
        map: &ConfigMap,
        digests: Option<Digests>,
        job: &TrainJob,
        most_objects: u64,
    ) -> Result<Self, SnapshotError> {
        let name = Self::name(&job.metadata.name);
        let unreadable = |key, problem: String| unreadable(&job.metadata.name, key, &problem);
        let data = |key: &str| map.data.as_ref()?.get(key).map(String::as_str);
        let text = data(RUNTIME).ok_or_else(|| unreadable(RUNTIME, "is missing".to_owned()))?;
        let mut documents = yaml::read(text).into_iter();
        let object = match documents.next() {
            Some(Ok(document)) => document.value,
            Some(Err(error)) => return Err(unreadable(RUNTIME, error.kind.to_string())),
            None => return Err(unreadable(RUNTIME, "is empty".to_owned())),
        };
        let mut snapshot = Self::new(object).map_err(|problem| unreadable(RUNTIME, problem))?;
        let found = (snapshot.runtime.kind, &*snapshot.runtime.metadata.name);
        let wanted = (job.runtime_ref.kind, &*job.runtime_ref.name);
        if found != wanted {
            let text = |(kind, name): (trainyard_api::runtime::RuntimeKind, &str)| {
                format!("{kind} `{}`", clean(name))
            };
            let (found, wanted) = (text(found), text(wanted));
            return Err(SnapshotError::OtherRuntime {
                name,
                found,
                wanted,
            });
        }
        snapshot.plan = parse(data(PLAN)).map_err(|problem| unreadable(PLAN, problem))?;
        let lookups = parse(data(LOOKUPS)).map_err(|problem| unreadable(LOOKUPS, problem))?;
        snapshot.lookups = Arc::new(lookups.unwrap_or_default());
        let config = parse(data(CONFIG)).map_err(|problem| unreadable(CONFIG, problem))?;
        snapshot.config = config.unwrap_or_default();
        if let Some(text) = data(PLACEMENT) {
            let placement =
                Entries::parse(text).map_err(|error| unreadable(PLACEMENT, error.to_string()))?;
            snapshot.placement = Some(placement);
        }
        snapshot.objects = Self::listed(map, &job.metadata.name, most_objects)?;
        snapshot.stored = digests;
        snapshot.started = is_started(&map.metadata);
        snapshot.recreate = is_to_recreate(&map.metadata);
        Ok(snapshot)
    }
}

/// Parses the JSON of a key, if there is any.
fn parse<T: DeserializeOwned>(text: Option<&str>) -> Result<Option<T>, String> {
    let parsed = text.map(serde_json::from_str).transpose();
    parsed.map_err(|error| error.to_string())
}

/// Returns the error of a key of a snapshot. The content is not trusted, so it is cleaned and truncated.
fn unreadable(job: &str, key: &'static str, problem: &str) -> SnapshotError {
    SnapshotError::Unreadable {
        name: Snapshot::name(job),
        key,
        problem: clean(problem),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn map(objects: Option<&str>) -> ConfigMap {
        let data = objects.map(|text| (OBJECTS.to_owned(), text.to_owned()));
        ConfigMap {
            data: Some(data.into_iter().collect()),
            ..ConfigMap::default()
        }
    }

    fn listed(map: &ConfigMap) -> Result<Vec<ObjectRef>, SnapshotError> {
        Snapshot::listed(map, "job", 16)
    }

    #[test]
    fn a_snapshot_without_a_list_has_no_objects() {
        assert_eq!(listed(&map(None)).unwrap(), []);
        assert_eq!(listed(&ConfigMap::default()).unwrap(), []);
    }

    #[test]
    fn a_malformed_list_makes_the_snapshot_unreadable() {
        let mode = format!(
            r#"[{{"apiVersion":"v1","kind":"ConfigMap","name":"job-a","apply":"{}"}}]"#,
            "x".repeat(900_000)
        );
        for text in [
            "{}",
            r#"[{"apiVersion":"v1","kind":"Pod","name":"job-a","apply":"once"}]"#,
            &mode,
        ] {
            let broken = listed(&map(Some(text))).unwrap_err().to_string();
            let words = "ConfigMap `job-runtime-snapshot`, key `objects`: ";
            assert!(
                broken.starts_with(words) && broken.len() < 1_500,
                "{broken}"
            );
        }
    }
}
