//! What is left of the calls of a test.

use serde_json::Value;
use trainyard_model::{
    call::Write,
    object::EmittedObject,
    record::Datum,
    session::{Diagnostic, Session},
};

/// What a plugin did to a TrainJob.
#[derive(Debug)]
pub struct Outcome {
    session: Session,
}

impl Outcome {
    pub(super) const fn new(session: Session) -> Self {
        Self { session }
    }

    /// The value at a path of the record (`pod-sets[node].containers[node].env[NAME]`) that the plugin wrote; none where
    /// it wrote nothing there, or removed it.
    #[must_use]
    pub fn value(&self, path: &str) -> Option<Value> {
        self.last(path)?
            .change
            .new
            .as_ref()
            .and_then(Datum::to_json)
    }

    /// Why it wrote there, in its words: what `trainyard explain` shows.
    #[must_use]
    pub fn reason(&self, path: &str) -> Option<String> {
        self.last(path)?.reason.as_deref().map(str::to_owned)
    }

    /// Everything that the plugin wrote, in its order; none is a removal or a new container.
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

    /// The objects that it emitted.
    #[must_use]
    pub fn objects(&self) -> Vec<&EmittedObject> {
        self.session
            .emitted()
            .iter()
            .map(|emitted| &emitted.object)
            .collect()
    }

    /// What it warned of, each with its field.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        sentences(self.session.warnings())
    }

    /// What it refuses the TrainJob for by [`Context::error`](crate::Context::error), each with its field.
    #[must_use]
    pub fn errors(&self) -> Vec<String> {
        sentences(self.session.errors())
    }

    /// The lines that it logged, as `LEVEL: LINE`.
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
