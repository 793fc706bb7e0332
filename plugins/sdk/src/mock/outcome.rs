//! The outcome of the calls of a test.

use serde_json::Value;
use trainyard_model::{
    call::Write,
    object::EmittedObject,
    record::Datum,
    session::{Diagnostic, Session},
};

/// The changes that a plugin made to a TrainJob, and everything that it reported.
#[derive(Debug)]
pub struct Outcome {
    session: Session,
}

impl Outcome {
    pub(super) const fn new(session: Session) -> Self {
        Self { session }
    }

    /// Returns the value that the plugin wrote at a path of the record, such as `pod-sets[node].containers[node].env[NAME]`. `None` if
    /// it did not write to the path, or removed the value.
    #[must_use]
    pub fn value(&self, path: &str) -> Option<Value> {
        self.last(path)?
            .change
            .new
            .as_ref()
            .and_then(Datum::to_json)
    }

    /// Returns the reason that the plugin gave for the write, which `trainyard explain` shows.
    #[must_use]
    pub fn reason(&self, path: &str) -> Option<String> {
        self.last(path)?.reason.as_deref().map(str::to_owned)
    }

    /// Returns everything that the plugin wrote, in order. `None` for a removal or a new container.
    #[must_use]
    pub fn writes(&self) -> Vec<(String, Option<Value>)> {
        self.journal()
            .map(|write| {
                let value = write.change.new.as_ref().and_then(Datum::to_json);
                (self.path(write), value)
            })
            .collect()
    }

    fn journal(&self) -> impl DoubleEndedIterator<Item = &Write> {
        let committed = self.session.committed().iter();
        committed.flat_map(|committed| &committed.writes)
    }

    fn path(&self, write: &Write) -> String {
        self.session.record().path(&write.change.entry).to_string()
    }

    fn last(&self, path: &str) -> Option<&Write> {
        self.journal().rev().find(|write| self.path(write) == path)
    }

    /// Returns the objects that the plugin emitted.
    #[must_use]
    pub fn objects(&self) -> Vec<&EmittedObject> {
        self.session
            .emitted()
            .iter()
            .map(|emitted| &emitted.object)
            .collect()
    }

    /// Returns the plugin's warnings, each with its field.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        sentences(self.session.warnings())
    }

    /// Returns the errors that the plugin reported with [`Context::error`](crate::Context::error), each with its field.
    #[must_use]
    pub fn errors(&self) -> Vec<String> {
        sentences(self.session.errors())
    }

    /// Returns the lines that the plugin logged, as `LEVEL: LINE`.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        let log = self.session.log().iter();
        log.map(|logged| format!("{}: {}", logged.line.level, logged.line.line))
            .collect()
    }
}

fn sentences(said: Vec<&Diagnostic>) -> Vec<String> {
    said.into_iter()
        .map(|said| said.failure.to_string())
        .collect()
}
