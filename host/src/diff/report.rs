//! The result of `trainyard diff`.

use serde::Serialize;
use trainyard_api::ObjectId;

use super::{
    objects::{NamedReport, ObjectReport, Outcome, cleaned},
    rows::{self, RowReport},
};

/// The result for all objects.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DiffReport {
    pub(super) outcome: Outcome,
    /// The objects with their findings, in the order of their names.
    pub(super) objects: Vec<NamedReport>,
    /// The rows that were found, the most severe and most frequent first.
    pub(super) rows: Vec<RowReport>,
    /// What could not be read, so that something is not compared.
    pub(super) not_read: Vec<String>,
    /// What was not in the input.
    pub(super) notes: Vec<String>,
}

impl DiffReport {
    /// Adds an object.
    pub(super) fn add(&mut self, id: ObjectId, report: ObjectReport) {
        self.objects.push(NamedReport {
            kind: cleaned(&id.kind),
            namespace: id.namespace.as_deref().map(cleaned),
            name: cleaned(&id.name),
            report,
        });
    }

    /// Counts the rows, after all objects were added.
    pub(super) fn finish(&mut self) {
        let key = |it: &NamedReport| (it.is_train_job(), it.namespace.clone(), it.name.clone());
        self.objects.sort_by_key(key);
        let outcomes = self.objects.iter().map(|object| object.report.outcome);
        self.outcome = outcomes.max().unwrap_or_default();
        if !self.not_read.is_empty() {
            self.outcome = self.outcome.max(Outcome::NotCompared);
        }
        self.rows = rows::found(&self.objects);
    }
}
