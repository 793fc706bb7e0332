//! The snapshot of a TrainJob: a ConfigMap with everything that its rendering depends on.
//!
//! It keeps the runtime as it was when the TrainJob was created. Plan, lookups and facts are renewed until the JobSet runs, and are pinned
//! from then on. The name, the key `runtime` and the check of the owner are the reference's.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use serde_json::{Value, json};
use trainyard_api::{Runtime, TrainJob, yaml};
use trainyard_model::{
    deadline::{Deadline, Overdue},
    facts::Facts,
    lookup::Lookups,
    plan::Plan,
    record::Accelerators,
    reserved,
    text::clean,
};
use trainyard_render::{ClusterFacts, Rendered, RenderedObject};

use super::{
    cluster::{SnapshotFacts, SnapshotMarks},
    error::{ReconcileError, SnapshotError},
    object_ref::{self, ObjectRef},
    object_version::ObjectVersion,
    owner,
    placement::{self, Entries},
    vouch::{Digests, RUNTIME, Trust},
};
use crate::{
    annotations::{RECREATE, STARTED},
    watch::ReadRuntime,
};

const PLAN: &str = "plan";
const LOOKUPS: &str = "lookups";
const CONFIG: &str = "config";
const OBJECTS: &str = "objects";
const PLACEMENT: &str = "placement";

/// The keys of a snapshot.
pub(super) const KEYS: [&str; 6] = [RUNTIME, PLAN, LOOKUPS, CONFIG, OBJECTS, PLACEMENT];

/// The content of the key `config`.
const CLUSTER_DOMAIN: &str = "clusterDomain";
const ACCELERATORS: &str = "accelerators";
const FACTS: &str = "facts";

/// The inputs of a TrainJob's rendering apart from the TrainJob.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The runtime as it was when the TrainJob was created.
    pub runtime: Arc<Runtime>,
    /// The whole runtime as it was written.
    runtime_object: Arc<Value>,
    /// The plan; `None` in a snapshot of the reference.
    pub plan: Option<Plan>,
    /// The lookups of the plugins.
    pub lookups: Arc<Lookups>,
    config: Value,
    /// The objects beside the JobSet; empty in a snapshot of a controller that did not list them.
    pub objects: Vec<ObjectRef>,
    /// The placement by plugins, which is kept when patches change, even if the plugins are missing. `None` if it was not noted, or is too
    /// large.
    pub(crate) placement: Option<Entries>,
    /// Whether the JobSet has run.
    pub started: bool,
    /// Whether the JobSet was deleted before it ended and has to be recreated.
    pub(crate) recreate: bool,
    /// The digests of the ConfigMap, if it was read or written.
    pub(crate) stored: Option<Digests>,
    /// Whether the content of the ConfigMap may be used.
    pub(crate) trusted: bool,
}

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
    /// Returns the name of a TrainJob's snapshot.
    pub fn name(job: &str) -> String {
        reserved::runtime_snapshot(job)
    }

    /// Returns a snapshot of a runtime that was accepted when the snapshot was made.
    ///
    /// # Errors
    /// The runtime cannot be read.
    pub fn new(runtime: Value) -> Result<Self, String> {
        ReadRuntime::read_snapshot(runtime).map(Self::of)
    }

    /// Returns the snapshot for a TrainJob of this runtime.
    pub(crate) fn of(read: ReadRuntime) -> Self {
        Self {
            runtime: read.runtime,
            runtime_object: read.object,
            plan: None,
            lookups: Arc::default(),
            config: Value::Null,
            objects: Vec::new(),
            placement: None,
            started: false,
            recreate: false,
            stored: None,
            trusted: true,
        }
    }

    /// Returns the facts of the snapshot at that version.
    pub(crate) fn facts_at(&self, at: ObjectVersion) -> SnapshotFacts {
        SnapshotFacts {
            marks: SnapshotMarks {
                at,
                started: self.started,
                recreate: self.recreate,
            },
            trusted: self.trusted,
            has_plan: self.plan.is_some(),
            objects: self.objects.as_slice().into(),
        }
    }

    /// Replaces plan, lookups and facts by those of a rendering. Returns whether they are unchanged. A started TrainJob may keep a plan of an
    /// earlier release that pins less. `facts` has only those of the operator's facts that plugins read.
    pub fn renew(&mut self, plan: Plan, lookups: Arc<Lookups>, facts: &ClusterFacts) -> bool {
        let config = config(facts);
        let same_plan = match &self.plan {
            Some(pinned) if self.started => pinned.is_kept_by(&plan),
            had => had.as_ref() == Some(&plan),
        };
        let same = same_plan && self.lookups == lookups && self.config == config;
        (self.plan, self.lookups, self.config) = (Some(plan), lookups, config);
        same
    }

    /// Returns the whole runtime as it was written.
    #[must_use]
    pub fn runtime_object(&self) -> &Value {
        &self.runtime_object
    }

    /// Returns the operator's settings for all TrainJobs at the time of the rendering; `None` if they were not noted.
    #[must_use]
    pub fn facts(&self) -> Option<ClusterFacts> {
        let domain = self.config.get(CLUSTER_DOMAIN)?.as_str()?;
        let names = self.config.get(ACCELERATORS)?.as_array()?;
        let names: Option<Vec<_>> = names.iter().map(Value::as_str).collect();
        let facts = self
            .config
            .get(FACTS)
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        let facts: Option<BTreeMap<_, _>> = facts
            .map(|(name, fact)| Some((name.clone(), fact.as_str()?.to_owned())))
            .collect();
        Some(ClusterFacts {
            cluster_domain: domain.to_owned(),
            accelerators: Accelerators::new(names?),
            facts: Facts::new(facts?),
        })
    }

    /// Sets the list of rendered objects. Returns whether it is unchanged.
    pub fn set_objects(&mut self, objects: &[RenderedObject]) -> bool {
        let objects: Vec<_> = objects.iter().map(ObjectRef::of).collect();
        let same = self.objects == objects;
        self.objects = objects;
        same
    }

    /// Sets the placement by plugins. Returns whether it is unchanged.
    pub(crate) fn set_placement(&mut self, rendered: &Rendered) -> bool {
        let spec = rendered.job_set.get("spec").unwrap_or(&Value::Null);
        let placement = Entries::changes(rendered.patched(), spec);
        let same = self.placement == placement;
        self.placement = placement;
        same
    }

    /// Returns the placement by the pinned runtime, the current patches of the TrainJob, and the plugins as noted. It has nothing that an
    /// earlier admission added. `None` if the placement by plugins was not noted.
    ///
    /// # Errors
    /// The deadline was exceeded.
    pub(crate) fn noted_placement(
        &self,
        job: &TrainJob,
        deadline: &Deadline,
    ) -> Result<Option<Value>, Overdue> {
        let Some(by_plugins) = self.placement.clone() else {
            return Ok(None);
        };
        let mut spec = placement::patched(job, &self.runtime.template.spec, deadline)?;
        by_plugins.write(&mut spec);
        Ok(Some(spec))
    }

    /// Limits the snapshot to what may be used of it.
    pub(crate) fn limit(&mut self, trust: Trust) {
        self.trusted = trust != Trust::Nothing;
        if trust == Trust::RuntimeOnly {
            (self.plan, self.placement, self.config) = (None, None, Value::Null);
            self.lookups = Arc::default();
            self.objects = Vec::new();
        }
    }

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
    pub(super) fn check_owner(map: &ConfigMap, job: &TrainJob) -> Result<(), ReconcileError> {
        if owner::owns(job, &map.metadata) {
            return Ok(());
        }
        let job = &job.metadata.name;
        let name = Self::name(job);
        Err(owner::foreign(job, "ConfigMap", &name, &map.metadata))
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
        if let Some(text) = data(PLAN) {
            let plan =
                serde_json::from_str(text).map_err(|error| unreadable(PLAN, error.to_string()))?;
            snapshot.plan = Some(plan);
        }
        if let Some(text) = data(LOOKUPS) {
            let lookups = serde_json::from_str(text)
                .map_err(|error| unreadable(LOOKUPS, error.to_string()))?;
            snapshot.lookups = Arc::new(lookups);
        }
        if let Some(text) = data(CONFIG) {
            snapshot.config = serde_json::from_str(text)
                .map_err(|error| unreadable(CONFIG, error.to_string()))?;
        }
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

/// Returns the error of a key of a snapshot. The content is not trusted, so it is cleaned and truncated.
fn unreadable(job: &str, key: &'static str, problem: &str) -> SnapshotError {
    SnapshotError::Unreadable {
        name: Snapshot::name(job),
        key,
        problem: clean(problem),
    }
}

fn config(facts: &ClusterFacts) -> Value {
    let mut config = json!({
        CLUSTER_DOMAIN: facts.cluster_domain,
        ACCELERATORS: facts.accelerators.names().collect::<Vec<_>>(),
    });
    // Most plugins read no facts, and snapshots of earlier releases have none.
    if let (false, Some(config)) = (facts.facts.is_empty(), config.as_object_mut()) {
        config.insert(FACTS.to_owned(), json!(facts.facts.all()));
    }
    config
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

    fn facts(facts: &[(&str, &str)]) -> ClusterFacts {
        let facts = facts
            .iter()
            .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
        ClusterFacts {
            facts: Facts::new(facts.collect()),
            ..ClusterFacts::default()
        }
    }

    /// Only facts that plugins read are pinned.
    #[test]
    fn the_facts_that_plugins_read_are_pinned() {
        let runtime = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime", "metadata": {"name": "plain"},
            "spec": {"template": {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": {
                "containers": [{"name": "node", "image": "a"}],
            }}}}}]}}},
        });
        let mut snapshot = Snapshot::new(runtime).unwrap();
        let (read, plan) = (facts(&[("site/region", "north")]), Plan::default());
        assert!(!snapshot.renew(plan.clone(), Arc::default(), &read));
        let kept = snapshot.facts().unwrap();
        assert_eq!(kept.facts, read.facts);
        assert!(snapshot.renew(plan.clone(), Arc::default(), &read));
        for changed in [facts(&[]), facts(&[("site/region", "south")])] {
            assert!(!snapshot.renew(plan.clone(), Arc::default(), &changed));
        }
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
