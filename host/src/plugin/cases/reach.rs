//! Which pod sets and containers a plugin wrote to.

use std::collections::BTreeMap;

use serde_json::Value;
use trainyard_api::path::{FieldPath, Segment};
use trainyard_render::{Provenance, ProvenanceStep, Setter};

use super::Rendering;

/// The pod sets of the TrainJobs of one runtime, and whether a plugin wrote to them or emitted an object.
#[derive(Debug, Default, PartialEq)]
pub(in crate::plugin) struct Reach {
    /// Whether a TrainJob was rendered.
    is_rendered: bool,
    /// Whether the plugin wrote anything.
    has_written: bool,
    pod_sets: BTreeMap<String, PodSetReach>,
}

/// The containers of a pod set.
#[derive(Debug, Default, PartialEq)]
struct PodSetReach {
    has_written: bool,
    containers: BTreeMap<String, bool>,
}

impl Reach {
    /// Returns what a plugin wrote to in a rendering.
    pub(in crate::plugin) fn of(rendering: &Rendering<'_>, plugin: &str) -> Self {
        let mut reach = Self::default();
        for job in &rendering.jobs {
            let rendered = &job.rendered;
            reach.add_job_set(&rendered.job_set);
            let mut objects = rendered.objects.iter();
            reach.has_written |= objects.any(|object| *object.plugin.name == *plugin);
            let is_ours = |step: &ProvenanceStep| matches!(&step.by, Setter::Plugin { name, .. } if name == plugin);
            let rows = rendered.provenance().into_iter();
            let written = rows.filter(|row| row.steps.iter().any(is_ours));
            written.for_each(|row| reach.add_write(&row));
        }
        reach
    }

    /// Adds the pod sets of a JobSet that have pods.
    fn add_job_set(&mut self, job_set: &Value) {
        self.is_rendered = true;
        let jobs = job_set.pointer("/spec/replicatedJobs");
        for job in items(jobs).filter(|job| has_pods(job)) {
            let containers = &mut self.pod_sets.entry(name(job)).or_default().containers;
            for list in ["initContainers", "containers"] {
                let list = job.pointer(&format!("/template/spec/template/spec/{list}"));
                for container in items(list) {
                    containers.entry(name(container)).or_default();
                }
            }
        }
    }

    /// Adds a write, by its path in the record.
    fn add_write(&mut self, row: &Provenance) {
        self.has_written = true;
        let Ok(path) = row.path.parse::<FieldPath>() else {
            return;
        };
        let texts: Vec<_> = path.segments().iter().map(Segment::text).collect();
        let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
        let ["pod-sets", pod_set, below @ ..] = texts.as_slice() else {
            return;
        };
        let Some(pod_set) = self.pod_sets.get_mut(*pod_set) else {
            return;
        };
        pod_set.has_written = true;
        if let ["containers" | "init-containers", container, ..] = below
            && let Some(has_written) = pod_set.containers.get_mut(*container)
        {
            *has_written = true;
        }
    }

    /// Whether a pod set of this name has pods.
    pub(in crate::plugin) fn has_pods(&self, name: &str) -> bool {
        self.pod_sets.contains_key(name)
    }

    pub(in crate::plugin) fn has_written_to(&self, name: &str) -> bool {
        self.pod_sets.get(name).is_some_and(|set| set.has_written)
    }

    pub(in crate::plugin) fn has_written_to_any(&self) -> bool {
        self.pod_sets.values().any(|set| set.has_written)
    }

    /// Adds the writes of another rendering.
    pub(in crate::plugin) fn absorb(&mut self, other: Self) {
        self.is_rendered |= other.is_rendered;
        self.has_written |= other.has_written;
        for (name, set) in other.pod_sets {
            let own = self.pod_sets.entry(name).or_default();
            own.has_written |= set.has_written;
            for (name, has_written) in set.containers {
                *own.containers.entry(name).or_default() |= has_written;
            }
        }
    }

    /// Returns the pod sets, and `with_containers` also the containers, that the plugin never wrote to, in words. Empty if nothing was rendered.
    pub(in crate::plugin) fn untouched(&self, with_containers: bool) -> Vec<String> {
        if !self.is_rendered {
            return Vec::new();
        }
        if !self.has_written {
            return vec!["anything".to_owned()];
        }
        let mut all = Vec::new();
        for (name, set) in &self.pod_sets {
            if !set.has_written {
                all.push(format!("pod set `{name}`"));
                continue;
            }
            if !with_containers {
                continue;
            }
            let containers = set.containers.iter().filter(|(_, written)| !**written);
            let containers = containers
                .map(|(container, _)| format!("container `{container}` of pod set `{name}`"));
            all.extend(containers);
        }
        all
    }
}

fn items(list: Option<&Value>) -> impl Iterator<Item = &Value> {
    list.and_then(Value::as_array).into_iter().flatten()
}

/// Whether a replicated job has pods. Of an MPI TrainJob with one node, only the launcher has.
fn has_pods(job: &Value) -> bool {
    let counts = ["/replicas", "/template/spec/parallelism"];
    let is_zero = |count: &Value| count.as_u64() == Some(0);
    !counts
        .iter()
        .any(|count| job.pointer(count).is_some_and(is_zero))
}

fn name(item: &Value) -> String {
    let name = item.get("name").and_then(Value::as_str);
    name.unwrap_or_default().to_owned()
}
