//! Problems and warnings name the object whose author can correct the value. A field of the runtime's template that the TrainJob set, by a
//! patch or an override, is the TrainJob's.
//!
//! `explain` answers another question: what set a field of the JobSet last. It needs the JobSet, which a refused TrainJob does not have, and its
//! answer may be a plugin. A plugin that reports a value means the one that it was given, and may name a parent that exists only because the
//! TrainJob set a field below it.

use std::{collections::BTreeMap, ops::Bound};

use serde_json::Value;
use trainyard_api::{
    FieldPath,
    merge::{JOB_SET_SPEC, Names},
    path::Segment,
};
use trainyard_model::record::Record;

use crate::{
    journal::{Journal, Source},
    place::path_of,
    problem::{InputObject, Problem, Warning},
};

/// A problem or warning with the field to correct.
pub(crate) trait Report {
    /// Returns the field if it is a field of the runtime.
    fn runtime_field(&self) -> Option<FieldPath>;
    /// Makes it about this field of the TrainJob.
    fn move_to_train_job(&mut self, field: FieldPath);
}

impl Report for Problem {
    fn runtime_field(&self) -> Option<FieldPath> {
        match self {
            Self::Field {
                about: InputObject::Runtime,
                path,
                ..
            } => Some(path.clone()),
            Self::Refused {
                about: InputObject::Runtime,
                failure,
                ..
            } => failure.field.as_deref()?.parse().ok(),
            _ => None,
        }
    }

    fn move_to_train_job(&mut self, field: FieldPath) {
        match self {
            Self::Field { about, path, .. } => (*about, *path) = (InputObject::TrainJob, field),
            Self::Refused { about, failure, .. } => {
                *about = InputObject::TrainJob;
                failure.field = Some(field.to_string());
            }
            _ => {}
        }
    }
}

impl Report for Warning {
    fn runtime_field(&self) -> Option<FieldPath> {
        let field = self.field.as_deref();
        let field = field.filter(|_| self.about == InputObject::Runtime);
        field?.parse().ok()
    }

    fn move_to_train_job(&mut self, field: FieldPath) {
        (self.about, self.field) = (InputObject::TrainJob, Some(field.to_string()));
    }
}

/// The spec of a JobSet before and after the TrainJob's patches, and what the TrainJob changed.
#[derive(Clone, Copy)]
pub(crate) struct Authors<'a> {
    /// The spec in the runtime.
    pub(crate) template: &'a Value,
    /// The spec with the patches.
    pub(crate) patched: &'a Value,
    pub(crate) journal: &'a Journal,
    pub(crate) record: &'a Record,
}

impl Authors<'_> {
    /// Moves each report about a field of the runtime's template to the TrainJob's field if the TrainJob was the last to set it.
    pub(crate) fn locate<R: Report>(self, reports: &mut [R]) {
        let root = FieldPath::of(["spec", "template"]);
        let field = |report: &R| report.runtime_field()?.moved(&root, &FieldPath::root());
        // Most TrainJobs have no such report, so the index is built only for the first one.
        let mut fields = None;
        for report in reports {
            if let Some(path) = field(report) {
                let fields = fields.get_or_insert_with(|| TrainJobFields::new(self));
                if let Some(path) = fields.find(&path) {
                    report.move_to_train_job(path);
                }
            }
        }
    }
}

/// The places of a JobSet that the host changed last, by their path with names.
struct TrainJobFields<'a> {
    template: Names<'a>,
    patched: Names<'a>,
    /// The field of the TrainJob. `None` if the source is another one.
    places: BTreeMap<Vec<String>, Option<&'a FieldPath>>,
}

impl<'a> TrainJobFields<'a> {
    fn new(authors: Authors<'a>) -> Self {
        let Authors {
            journal, record, ..
        } = authors;
        // Changes by plugins, which are most, are left out, because a plugin reports a value that it was given.
        let is_by_host = |source: &Source| !matches!(source, Source::Plugin { .. });
        let entries = journal.entries().iter();
        let of_record = entries.filter(|entry| is_by_host(&entry.source));
        let of_record = of_record.filter_map(|entry| {
            let path = path_of(record, &entry.change.entry)?;
            Some((path, &entry.source))
        });
        let others = journal.spec_changes().iter();
        let others = others.filter(|change| is_by_host(&change.source));
        let others = others.map(|change| (change.path.clone(), &change.source));
        let places = of_record.chain(others);
        Self {
            template: Names::new(authors.template, &JOB_SET_SPEC),
            patched: Names::new(authors.patched, &JOB_SET_SPEC),
            places: places
                .map(|(path, source)| (texts(&path), source.train_job_field()))
                .collect(),
        }
    }

    /// Returns the TrainJob's field for a field of the JobSet.
    fn find(&self, path: &FieldPath) -> Option<FieldPath> {
        if self.places.is_empty() {
            return None;
        }
        let spec = FieldPath::of(["spec"]);
        let named = match path.moved(&spec, &FieldPath::root()) {
            Some(below) => {
                let named = spec.join(&self.patched.by_names(&below));
                // A field that is absent has no other spelling.
                let rest = path.segments().iter().skip(named.segments().len());
                named.join(&rest.cloned().collect())
            }
            None => path.clone(),
        };
        let wanted = texts(&named);
        for length in (1..=wanted.len()).rev() {
            let found = wanted
                .get(..length)
                .and_then(|start| self.places.get(start));
            if let Some(field) = found {
                let below = named.segments().iter().skip(length).cloned().collect();
                return field.map(|field| field.join(&below));
            }
        }
        self.parent(&named, &wanted)
    }

    /// Returns the TrainJob's field for a parent of what it set, if the runtime does not have the parent.
    fn parent(&self, named: &FieldPath, wanted: &[String]) -> Option<FieldPath> {
        let from = (Bound::Included(wanted), Bound::Unbounded);
        let (place, field) = self.places.range::<[String], _>(from).next()?;
        let below = named.moved(&FieldPath::of(["spec"]), &FieldPath::root())?;
        if !place.starts_with(wanted) || self.template.value(&below).is_some() {
            return None;
        }
        let field = (*field)?.segments();
        let length = field.len().checked_sub(place.len() - wanted.len())?;
        Some(field.iter().take(length).cloned().collect())
    }
}

fn texts(path: &FieldPath) -> Vec<String> {
    let texts = path.segments().iter().map(Segment::text);
    texts.map(|text| text.into_owned()).collect()
}
