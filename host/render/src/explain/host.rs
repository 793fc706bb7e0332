//! The origins of fields that the host writes to every JobSet: `suspend`, and the numbers of pods and jobs.

use serde_json::Value;
use trainyard_api::{FieldPath, fields::value_at, path::Segment};
use trainyard_model::record::{EntryRef, EntryScope, Field};

use super::{Explainer, Provenance, ProvenanceStep, Setter};
use crate::{journal::Source, place::path_of, record_path::replicated_jobs};

/// The numbers of a replicated job: the field of the record, the path, and the reason for a default.
const NUMBERS: [(Field, &[&str], &str); 3] = [
    (
        Field::Count,
        &["template", "spec", "parallelism"],
        "not set in the runtime; defaults to 1",
    ),
    (
        Field::Count,
        &["template", "spec", "completions"],
        "not set in the runtime; defaults to parallelism",
    ),
    (
        Field::Replicas,
        &["replicas"],
        "not set in the runtime; defaults to 1",
    ),
];

impl Explainer<'_> {
    pub(super) fn of_host(&self) -> Vec<Provenance> {
        let mut rows = vec![self.suspend()];
        let jobs = self.job_set.pointer("/spec/replicatedJobs");
        for job in jobs.and_then(Value::as_array).into_iter().flatten() {
            rows.extend(self.counts(job));
        }
        rows
    }

    fn suspend(&self) -> Provenance {
        let path = FieldPath::of(["spec", "suspend"]);
        let is_default = self.job_defaults.hold(&path);
        let by = if self.origins.job.spec.get("suspend").is_some() && !is_default {
            let field = path.to_string();
            Setter::TrainJob { field }
        } else {
            let reason = "not set in the TrainJob; defaults to false".to_owned();
            Setter::Host { reason }
        };
        let step = ProvenanceStep {
            by,
            from: self.origins.template.get("suspend").cloned(),
            to: self.job_set.pointer("/spec/suspend").cloned(),
        };
        Provenance::unrecorded(path, &self.paths, vec![step])
    }

    /// Returns the origins of the numbers of a replicated job that were changed or that are not set in the runtime.
    fn counts(&self, job: &Value) -> Vec<Provenance> {
        let name = job.get("name").and_then(Value::as_str).unwrap_or_default();
        let record = self.origins.session.record();
        let Some(set) = record.pod_set_named(name) else {
            return Vec::new();
        };
        let template = self.template_jobs.get(name);
        let number = |(field, keys, reason): &(Field, &[&str], &str)| {
            let place = EntryRef {
                scope: EntryScope::PodSet(set),
                field: *field,
                key: "".into(),
            };
            let below = FieldPath::of(*keys);
            let named = replicated_jobs().key(name).join(&below);
            let from = template
                .and_then(|job| value_at(job, below.segments()))
                .filter(|_| !self.is_default(&named))
                .cloned();
            let by = match self.counts.get(&place) {
                Some(Source::NodeSets { plugin, field }) if place.field == Field::Replicas => {
                    let reason = format!(
                        "its `nodeSets` assign none of the nodes of {field} to this pod set"
                    );
                    Setter::plugin(plugin, Some(reason))
                }
                Some(source) => Setter::from(*source),
                None if from.is_none() => Setter::Host {
                    reason: (*reason).to_owned(),
                },
                None => return None,
            };
            let to = Some(value_at(job, below.segments())?.clone());
            let steps = vec![ProvenanceStep { by, from, to }];
            Some(if path_of(record, &place).as_ref() == Some(&named) {
                let path = record.path(&place).to_string();
                Provenance::new(path, Some(named), &self.paths, steps)
            } else {
                Provenance::unrecorded(named, &self.paths, steps)
            })
        };
        NUMBERS.iter().filter_map(number).collect()
    }

    /// Returns the origin of an unchanged field, at a path of the JobSet with positions.
    pub(super) fn untouched(&self, placed: &FieldPath) -> Vec<Provenance> {
        let named = self.paths.by_names(placed);
        let texts: Vec<_> = placed.segments().iter().map(Segment::text).collect();
        let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
        let host = |reason: &str| Setter::Host {
            reason: reason.to_owned(),
        };
        let by = match *texts {
            ["metadata"] => {
                let members = self.job_set.get("metadata").and_then(Value::as_object);
                let names = members.into_iter().flatten().map(|(name, _)| name);
                let each = names.map(|name| self.untouched(&placed.field(name)));
                return each.flatten().collect();
            }
            ["metadata", "name"] => Setter::TrainJob {
                field: "metadata.name".to_owned(),
            },
            ["metadata", "namespace"] => host("the namespace of the TrainJob"),
            ["metadata", "labels" | "annotations", ..] => Setter::Runtime {
                field: FieldPath::of(["spec", "template"]).join(&named).to_string(),
            },
            _ => match self.in_template(&named) {
                Some(path) if self.runtime_defaults.hold(&path) => {
                    host("not set in the runtime; the default of its schema")
                }
                Some(path) => Setter::Runtime {
                    field: path.to_string(),
                },
                None => host("the same for every TrainJob"),
            },
        };
        let to = value_at(self.job_set, placed.segments()).cloned();
        let step = ProvenanceStep { by, from: None, to };
        vec![Provenance::unrecorded(named, &self.paths, vec![step])]
    }

    /// Whether a field of the JobSet, with names, has a default of the runtime's schema.
    fn is_default(&self, named: &FieldPath) -> bool {
        self.in_template(named)
            .is_some_and(|path| self.runtime_defaults.hold(&path))
    }

    /// Returns the runtime's field for a field of the JobSet, with names.
    fn in_template(&self, named: &FieldPath) -> Option<FieldPath> {
        let spec = FieldPath::of(["spec"]);
        let below = named.moved(&spec, &FieldPath::root())?;
        let placed = self.template_paths.by_positions(&below);
        let is_there = placed.segments().len() == below.segments().len();
        is_there.then(|| FieldPath::of(["spec", "template", "spec"]).join(&placed))
    }
}
