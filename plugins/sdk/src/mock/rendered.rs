//! The result of rendering a TrainJob of a test.

use serde_json::Value;

use super::Outcome;

/// A rendered TrainJob: the objects that a cluster would have, and what the plugins did.
#[derive(Debug)]
pub struct Rendered {
    job_set: Value,
    objects: Vec<Value>,
    warnings: Vec<String>,
    outcome: Outcome,
}

impl Rendered {
    pub(super) fn new(rendered: trainyard_render::Rendered, warnings: Vec<String>) -> Self {
        let names = rendered.plan.iter().map(|active| &*active.plugin.id.name);
        let session = rendered.session().clone();
        let outcome = Outcome::new(session, rendered.plugin_writes(), names);
        let objects = rendered.objects.into_iter();
        Self {
            job_set: rendered.job_set,
            objects: objects.map(|object| object.value).collect(),
            warnings,
            outcome,
        }
    }

    /// Returns the JobSet.
    #[must_use]
    pub const fn job_set(&self) -> &Value {
        &self.job_set
    }

    /// Returns the pod spec of a replicated job. `None` if the JobSet has no such job.
    #[must_use]
    pub fn pod_spec(&self, replicated_job: &str) -> Option<&Value> {
        let jobs = self.job_set.pointer("/spec/replicatedJobs")?;
        named(jobs, replicated_job)?.pointer("/template/spec/template/spec")
    }

    /// Returns a container or an init container of a replicated job. `None` if it does not exist.
    #[must_use]
    pub fn container(&self, replicated_job: &str, name: &str) -> Option<&Value> {
        let pod = self.pod_spec(replicated_job)?;
        let lists = ["containers", "initContainers"].into_iter();
        lists
            .filter_map(|list| pod.get(list))
            .find_map(|list| named(list, name))
    }

    /// Returns the objects that the plugins emitted, as a cluster would store them, with placeholders for key material.
    #[must_use]
    pub fn objects(&self) -> &[Value] {
        &self.objects
    }

    /// Returns all warnings, those of the host and of plugins, each with its line in the YAML, its object and its field.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns what the plugins wrote, emitted and reported, with their reasons and their order.
    #[must_use]
    pub const fn outcome(&self) -> &Outcome {
        &self.outcome
    }
}

/// Returns the item of a list that has a name.
fn named<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
    let mut items = list.as_array()?.iter();
    items.find(|item| item.get("name").and_then(Value::as_str) == Some(name))
}
