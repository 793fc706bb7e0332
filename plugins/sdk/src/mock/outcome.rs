//! The outcome of the calls of a test.

use serde_json::Value;
use trainyard_model::{
    call::Write,
    object::EmittedObject,
    record::Datum,
    session::{Diagnostic, Session},
};

/// The changes that the plugins of a test made to a TrainJob, and everything that they reported.
#[derive(Debug)]
pub struct Outcome {
    session: Session,
    writes: Vec<Write>,
    order: Vec<String>,
}

impl Outcome {
    /// Collects the outcome of a session. `order` has the names of its plugins.
    pub(super) fn new<'a>(
        session: Session,
        writes: Vec<Write>,
        order: impl Iterator<Item = &'a str>,
    ) -> Self {
        Self {
            session,
            writes,
            order: order.map(str::to_owned).collect(),
        }
    }

    /// Returns the names of the plugins, in the order in which they ran.
    #[must_use]
    pub fn order(&self) -> Vec<&str> {
        self.order.iter().map(String::as_str).collect()
    }

    /// Returns the value that a plugin wrote at a path of the record, such as `pod-sets[node].containers[node].env[NAME]`. `None` if none
    /// wrote to the path, or the value was removed.
    #[must_use]
    pub fn value(&self, path: &str) -> Option<Value> {
        self.last(path)?
            .change
            .new
            .as_ref()
            .and_then(Datum::to_json)
    }

    /// Returns the reason that a plugin gave for the write, which `trainyard explain` shows.
    #[must_use]
    pub fn reason(&self, path: &str) -> Option<String> {
        self.last(path)?.reason.as_deref().map(str::to_owned)
    }

    /// Returns everything that the plugins wrote, in order. `None` for a removal or a new container.
    #[must_use]
    pub fn writes(&self) -> Vec<(String, Option<Value>)> {
        self.writes
            .iter()
            .map(|write| {
                let value = write.change.new.as_ref().and_then(Datum::to_json);
                (self.path(write), value)
            })
            .collect()
    }

    fn path(&self, write: &Write) -> String {
        self.session.record().path(&write.change.entry).to_string()
    }

    fn last(&self, path: &str) -> Option<&Write> {
        self.writes
            .iter()
            .rev()
            .find(|write| self.path(write) == path)
    }

    /// Returns the objects that the plugins emitted.
    #[must_use]
    pub fn objects(&self) -> Vec<&EmittedObject> {
        self.session
            .emitted()
            .iter()
            .map(|emitted| &emitted.object)
            .collect()
    }

    /// Returns the plugins' warnings, each with its field.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        sentences(self.session.warnings())
    }

    /// Returns the errors that the plugins reported with [`Context::error`](crate::Context::error), each with its field.
    #[must_use]
    pub fn errors(&self) -> Vec<String> {
        sentences(self.session.errors())
    }

    /// Returns the lines that the plugins logged, as `LEVEL: LINE`.
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
