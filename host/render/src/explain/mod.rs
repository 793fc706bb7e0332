//! What set each field of the JobSet, from which value, and why. Computed on request.

mod answer;
mod host;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::Serialize;
use serde_json::{Value, json};
use trainyard_api::{
    FieldPath,
    merge::{JOB_SET, JOB_SET_SPEC, Names},
    path::Segment,
};
use trainyard_model::{
    job::Job,
    plugin_info::PluginId,
    record::{Datum, EntryRef, Field, Record},
    session::Session,
    text::clean,
};

pub use self::answer::{NoSuchField, env_vars, path_in_job_set};
use crate::{
    authors::Authors,
    journal::{Journal, JournalEntry, Source},
    place::paths_in,
    resolve::Resolved,
};

/// What set a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Setter {
    /// The runtime, by its template or its policy.
    Runtime {
        /// The runtime's field.
        field: String,
    },
    /// A runtime patch of the TrainJob.
    Patch {
        /// The manager of the patch.
        manager: String,
        /// The TrainJob's field.
        field: String,
    },
    /// An override of the TrainJob.
    TrainJob {
        /// The TrainJob's field.
        field: String,
    },
    Plugin {
        name: String,
        version: String,
        digest: String,
        /// The reason that it gave.
        reason: Option<String>,
    },
    /// The host, if neither the runtime nor the TrainJob sets the field.
    Host { reason: String },
}

impl Setter {
    fn plugin(id: &PluginId, reason: Option<String>) -> Self {
        Self::Plugin {
            name: id.name.to_string(),
            version: id.version.to_string(),
            digest: id.digest.to_string(),
            reason,
        }
    }
}

/// One write of a field.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProvenanceStep {
    /// What wrote it.
    pub by: Setter,
    /// The old value. `None` if there was none.
    pub from: Option<Value>,
    /// The new value. `None` if the field was removed.
    pub to: Option<Value>,
}

/// The origin of one field of the result.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    /// The path in the record, or in the JobSet with names if the record does not have the field.
    pub path: String,
    /// The path in the JobSet, with positions. `None` if the field was removed or is not part of the JobSet.
    pub job_set_path: Option<String>,
    /// The writes, in order. Fields that one write set share them.
    pub steps: Arc<[ProvenanceStep]>,
    /// The path in the JobSet, with names. `None` if the field is not part of the JobSet.
    #[serde(skip)]
    named: Option<FieldPath>,
    /// The path in the JobSet, with positions. `None` if the JobSet does not have the field.
    #[serde(skip)]
    placed: Option<FieldPath>,
}

impl Provenance {
    fn new(
        path: String,
        named: Option<FieldPath>,
        job_set: &Names<'_>,
        steps: impl Into<Arc<[ProvenanceStep]>>,
    ) -> Self {
        let placed = named.as_ref().and_then(|named| {
            let placed = job_set.by_positions(named);
            (placed.segments().len() == named.segments().len()).then_some(placed)
        });
        Self {
            path,
            job_set_path: placed.as_ref().map(ToString::to_string),
            steps: steps.into(),
            named,
            placed,
        }
    }

    /// The field in the JobSet, with names in brackets. `None` if the field is not part of the JobSet.
    #[must_use]
    pub const fn named(&self) -> Option<&FieldPath> {
        self.named.as_ref()
    }

    /// Returns the origin of a field that the record does not have.
    fn unrecorded(named: FieldPath, job_set: &Names<'_>, steps: Vec<ProvenanceStep>) -> Self {
        Self::new(clean(&named.to_string()), Some(named), job_set, steps)
    }
}

/// All changes between the runtime's template and a JobSet.
#[derive(Debug)]
pub(crate) struct Origins {
    /// The JobSet's spec in the runtime.
    pub(crate) template: Arc<Value>,
    /// The spec with the TrainJob's patches. `None` if no patch changes it.
    patched: Option<Arc<Value>>,
    pub(crate) job: Arc<Job>,
    pub(crate) journal: Journal,
    /// The session with the final record.
    pub(crate) session: Session,
    pub(crate) defaults: Defaults,
}

/// Fields that have a default of their schema.
#[derive(Debug)]
pub(crate) struct Defaults {
    /// The TrainJob's.
    pub(crate) job: Arc<[FieldPath]>,
    /// The runtime's.
    pub(crate) runtime: Arc<[FieldPath]>,
}

impl Origins {
    pub(crate) fn new(
        template: Arc<Value>,
        resolved: Resolved,
        mut session: Session,
        defaults: Defaults,
    ) -> Self {
        let mut journal = resolved.journal;
        journal.record_plugins(session.take_committed());
        Self {
            template,
            patched: resolved.patched,
            job: resolved.job,
            journal,
            session,
            defaults,
        }
    }

    /// Returns the JobSet's spec with the TrainJob's patches and no other changes.
    pub(crate) fn patched(&self) -> &Value {
        self.patched.as_deref().unwrap_or(&self.template)
    }

    /// Returns what the TrainJob changed in the runtime's template.
    pub(crate) fn authors(&self) -> Authors<'_> {
        Authors {
            template: &self.template,
            patched: self.patched(),
            journal: &self.journal,
            record: self.session.record(),
        }
    }

    /// Returns the origins of all fields that differ from the runtime's template, by path.
    pub(crate) fn provenance(&self, job_set: &Value) -> Vec<Provenance> {
        Explainer::new(self, job_set).provenance()
    }

    /// Returns the origins of a field and all fields below it. If a parent was written as a whole, that is the origin of the parent. If the
    /// field did not change, it is the runtime's field.
    pub(crate) fn explain(
        &self,
        job_set: &Value,
        path: &FieldPath,
    ) -> Result<Vec<Provenance>, NoSuchField> {
        Explainer::new(self, job_set).explain(path)
    }

    /// Returns what set each of these fields of the JobSet last; `None` if nothing did. For fields of the runtime's template, see
    /// [`Self::authors`].
    pub(crate) fn setters<'p>(
        &self,
        job_set: &Value,
        paths: impl ExactSizeIterator<Item = &'p FieldPath>,
    ) -> Vec<Option<Setter>> {
        if paths.len() == 0 {
            return Vec::new();
        }
        let explainer = Explainer::new(self, job_set);
        let rows = explainer.provenance();
        paths.map(|path| explainer.setter(&rows, path)).collect()
    }
}

/// The origins of a JobSet, with indexes for everything that is searched for each field, because a JobSet may have very many.
struct Explainer<'a> {
    origins: &'a Origins,
    job_set: &'a Value,
    /// The paths of the JobSet.
    paths: Names<'a>,
    /// The paths of the template's spec.
    template_paths: Names<'a>,
    /// The replicated jobs of the template, by name.
    template_jobs: BTreeMap<&'a str, &'a Value>,
    /// The last source of each number of pods and jobs.
    counts: BTreeMap<&'a EntryRef, &'a Source>,
    /// The fields of the TrainJob and the runtime that have a default.
    job_defaults: DefaultPaths<'a>,
    runtime_defaults: DefaultPaths<'a>,
}

/// Fields that have a default, as an index.
struct DefaultPaths<'a>(BTreeSet<&'a [Segment]>);

impl<'a> DefaultPaths<'a> {
    fn of(paths: &'a [FieldPath]) -> Self {
        Self(paths.iter().map(FieldPath::segments).collect())
    }

    /// Whether the field, or a parent, has a default.
    fn hold(&self, path: &FieldPath) -> bool {
        path.starts().any(|start| self.0.contains(start))
    }
}

impl<'a> Explainer<'a> {
    fn new(origins: &'a Origins, job_set: &'a Value) -> Self {
        let jobs = origins.template.get("replicatedJobs");
        let mut template_jobs = BTreeMap::new();
        for job in jobs.and_then(Value::as_array).into_iter().flatten() {
            if let Some(name) = job.get("name").and_then(Value::as_str) {
                template_jobs.entry(name).or_insert(job);
            }
        }
        let counts = origins.journal.entries().iter();
        let counts = counts.filter(|entry| entry.is_count());
        Self {
            origins,
            job_set,
            paths: Names::new(job_set, &JOB_SET),
            template_paths: Names::new(&origins.template, &JOB_SET_SPEC),
            template_jobs,
            counts: counts
                .map(|entry| (&entry.change.entry, &entry.source))
                .collect(),
            job_defaults: DefaultPaths::of(&origins.defaults.job),
            runtime_defaults: DefaultPaths::of(&origins.defaults.runtime),
        }
    }

    fn provenance(&self) -> Vec<Provenance> {
        let mut rows = self.of_record();
        rows.extend(self.unrecorded());
        rows.extend(self.of_host());
        rows.sort_by(|a, b| a.path.cmp(&b.path));
        rows
    }

    fn of_record(&self) -> Vec<Provenance> {
        let record = self.origins.session.record();
        let mut by_place: BTreeMap<&EntryRef, Vec<ProvenanceStep>> = BTreeMap::new();
        // Counts are explained with the host's fields.
        let is_explained = |entry: &&JournalEntry| {
            !entry.is_count()
                && !matches!(entry.change.entry.field, Field::Placement | Field::Count)
        };
        for JournalEntry { change, source } in
            self.origins.journal.entries().iter().filter(is_explained)
        {
            let old = change.old.as_ref().map(|old| &old.datum);
            let step = ProvenanceStep {
                by: source.into(),
                from: old.and_then(|datum| json_of(record, datum)),
                to: change.new.as_ref().and_then(|datum| json_of(record, datum)),
            };
            by_place.entry(&change.entry).or_default().push(step);
        }
        let rows = |(place, mut steps): (&EntryRef, Vec<ProvenanceStep>)| {
            let path = record.path(place).to_string();
            self.complete_raw(place, &mut steps);
            let named = paths_in(record, self.job_set, place);
            if named.is_empty() {
                return vec![Provenance::new(path, None, &self.paths, steps)];
            }
            let steps: Arc<[ProvenanceStep]> = steps.into();
            let named = named.into_iter();
            named
                .map(|named| Provenance::new(path.clone(), Some(named), &self.paths, steps.clone()))
                .collect()
        };
        by_place.into_iter().flat_map(rows).collect()
    }

    /// Adds the template's value of a raw member, which the record does not have, and replaces null by `None`.
    fn complete_raw(&self, place: &EntryRef, steps: &mut [ProvenanceStep]) {
        if !place.field.is_raw() {
            return;
        }
        if let Some(first) = steps.first_mut()
            && first.from.is_none()
        {
            let record = self.origins.session.record();
            first.from = record.template_member(place.scope, &place.key).cloned();
        }
        for step in steps {
            step.to.take_if(|value| value.is_null());
            step.from.take_if(|value| value.is_null());
        }
    }

    /// Returns the origins of fields that patches wrote and the record does not have.
    fn unrecorded(&self) -> Vec<Provenance> {
        let mut by_path: BTreeMap<&FieldPath, Vec<ProvenanceStep>> = BTreeMap::new();
        for change in self.origins.journal.spec_changes() {
            let by = Setter::from(&change.source);
            let (from, to) = (change.from.clone(), change.to.clone());
            let steps = by_path.entry(&change.path).or_default();
            steps.push(ProvenanceStep { by, from, to });
        }
        let row = |(path, steps): (&FieldPath, _)| {
            Provenance::unrecorded(path.clone(), &self.paths, steps)
        };
        by_path.into_iter().map(row).collect()
    }
}

impl From<&Source> for Setter {
    fn from(source: &Source) -> Self {
        match source {
            Source::Runtime { field } => Self::Runtime {
                field: field.to_string(),
            },
            Source::Patch { manager, field } => Self::Patch {
                manager: manager.to_string(),
                field: field.to_string(),
            },
            Source::TrainJob { field } => Self::TrainJob {
                field: field.to_string(),
            },
            Source::NodeSets { plugin, field } => {
                let reason = format!("its `nodeSets` assign the nodes of {field} to this pod set");
                Self::plugin(plugin, Some(reason))
            }
            Source::Plugin { plugin, reason } => {
                Self::plugin(plugin, reason.as_deref().map(str::to_owned))
            }
        }
    }
}

/// Returns a value for the output. Of a container that is its name, because its fields are explained one by one.
fn json_of(record: &Record, datum: &Datum) -> Option<Value> {
    match datum {
        Datum::Container(id) => Some(json!({"name": &*record.container(*id)?.name})),
        datum => datum.to_json(),
    }
}
