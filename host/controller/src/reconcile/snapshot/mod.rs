//! The snapshot of a TrainJob: everything that its rendering depends on, in a [ConfigMap](config_map).
//!
//! It keeps the runtime as it was when the TrainJob was created. Plan, lookups and facts are renewed until the JobSet runs, and are pinned
//! from then on. The name and the key `runtime` are the reference's.

mod config_map;

use std::{collections::BTreeMap, sync::Arc};

pub(super) use config_map::{KEYS, is_started, is_to_recreate};
use serde_json::{Value, json};
use trainyard_api::{Runtime, TrainJob};
use trainyard_model::{
    deadline::{Deadline, Overdue},
    facts::{Facts, HostFacts},
    lookup::Lookups,
    plan::Plan,
    record::Accelerators,
    reserved,
};
use trainyard_render::{ClusterFacts, Rendered, RenderedObject};

use super::{
    facts::{SnapshotFacts, SnapshotMarks},
    object_ref::ObjectRef,
    object_version::ObjectVersion,
    placement::{self, Entries},
    vouch::{Digests, Trust},
};
use crate::watch::ReadRuntime;

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
    /// How far the content of the ConfigMap is used.
    pub(crate) trust: Trust,
}

impl Snapshot {
    /// Returns the name of a TrainJob's snapshot.
    pub fn name(job: &str) -> String {
        reserved::runtime_snapshot(job)
    }

    /// Returns the digests of a snapshot with this data, which the JobSet that was applied with it has as an annotation.
    #[must_use]
    pub fn digests(data: &BTreeMap<String, String>) -> String {
        Digests::of(data).to_string()
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
            trust: Trust::Nothing,
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
            trust: self.trust,
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
            // They are not pinned.
            host: HostFacts::default(),
            // The snapshot has the answers to lookups.
            catalog: None,
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
        self.trust = trust;
        if trust == Trust::RuntimeOnly {
            (self.plan, self.placement, self.config) = (None, None, Value::Null);
            self.lookups = Arc::default();
            self.objects = Vec::new();
        }
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
}
