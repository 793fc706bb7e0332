//! The reports that wait to be written as Events. Namespaces take turns, and a newer report about an object replaces the one that waits.

use std::{
    collections::{HashMap, hash_map::Entry},
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::api::core::v1::ObjectReference;

use crate::fair::RoundRobin;

/// The most reports that wait.
const WAITING: usize = 1_024;

/// A report about an object, with the messages of its Events.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) regarding: ObjectReference,
    /// `Normal` or `Warning`.
    pub(super) kind: &'static str,
    pub(super) reason: String,
    pub(super) action: String,
    pub(super) messages: Vec<String>,
    /// How many times it was made in a row.
    pub(super) times: i32,
}

impl Report {
    /// Returns the namespace of its Events: `default` for objects without a namespace.
    pub(super) fn namespace(&self) -> &str {
        self.regarding.namespace.as_deref().unwrap_or("default")
    }

    /// Returns the identity of its object.
    pub(super) fn object(&self) -> Arc<str> {
        let regarding = &self.regarding;
        match &regarding.uid {
            Some(uid) => uid.as_str().into(),
            None => format!(
                "{} {} {}",
                regarding.kind.as_deref().unwrap_or_default(),
                regarding.namespace.as_deref().unwrap_or_default(),
                regarding.name.as_deref().unwrap_or_default(),
            )
            .into(),
        }
    }
}

/// The object and the reason of a report. A newer report with the same subject replaces the older one.
type Subject = (Arc<str>, String);

/// Events that are not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dropped {
    /// A newer report replaced them.
    pub(super) replaced: usize,
    /// Too many reports wait.
    pub(super) full: usize,
}

/// The waiting reports.
#[derive(Debug)]
pub(super) struct Pending(Mutex<Waiting>);

#[derive(Debug)]
struct Waiting {
    turns: RoundRobin<Subject>,
    reports: HashMap<Subject, Report>,
}

impl Pending {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Waiting {
            turns: RoundRobin::new(NonZeroUsize::MIN),
            reports: HashMap::new(),
        }))
    }

    /// Adds a report, and returns which Events are dropped for it. If too many wait, the last one of the namespace with the most gives way.
    pub(super) fn add(&self, report: Report) -> Dropped {
        self.waiting().add(report)
    }

    /// Takes the first report of the namespace whose turn it is.
    pub(super) fn take(&self) -> Option<Report> {
        let mut waiting = self.waiting();
        let (namespace, subject) = waiting.turns.take()?;
        // Reports are written one at a time.
        waiting.turns.done(&namespace);
        waiting.reports.remove(&subject)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn add(&mut self, report: Report) -> Dropped {
        let namespace: Arc<str> = report.namespace().into();
        let subject = (report.object(), report.reason.clone());
        let mut dropped = Dropped::default();
        if let Entry::Occupied(mut entry) = self.reports.entry(subject.clone()) {
            let known = entry.get_mut();
            if known.messages == report.messages {
                known.times = known.times.saturating_add(report.times);
            } else {
                dropped.replaced = known.messages.len();
                *known = report;
            }
            return dropped;
        }
        if self.reports.len() >= WAITING {
            let Some(last) = self.turns.take_last_of_another(&namespace) else {
                dropped.full = report.messages.len();
                return dropped;
            };
            let last = self.reports.remove(&last);
            dropped.full = last.map_or(0, |last| last.messages.len());
        }
        self.turns.push(&namespace, subject.clone());
        self.reports.insert(subject, report);
        dropped
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, clippy::unwrap_used)]

    use super::*;

    fn report(namespace: &str, name: &str, message: &str) -> Report {
        Report {
            kind: "Warning",
            regarding: ObjectReference {
                namespace: Some(namespace.to_owned()),
                name: Some(name.to_owned()),
                ..ObjectReference::default()
            },
            reason: "Failed".to_owned(),
            action: "Reconciling".to_owned(),
            messages: vec![message.to_owned()],
            times: 1,
        }
    }

    fn add(pending: &Pending, namespace: &str, name: &str, message: &str) -> Dropped {
        pending.add(report(namespace, name, message))
    }

    /// Returns the namespace, the message and the count of the next report.
    fn take(pending: &Pending) -> Option<(String, String, i32)> {
        let report = pending.take()?;
        let message = report.messages.concat();
        Some((report.namespace().to_owned(), message, report.times))
    }

    fn expected(namespace: &str, message: &str, times: i32) -> Option<(String, String, i32)> {
        Some((namespace.to_owned(), message.to_owned(), times))
    }

    #[test]
    fn namespaces_take_turns() {
        let pending = Pending::new();
        for name in 0..3_000 {
            add(&pending, "busy", &name.to_string(), "busy");
        }
        assert_eq!(add(&pending, "quiet", "one", "quiet").full, 1);
        assert_eq!(take(&pending), expected("busy", "busy", 1));
        assert_eq!(take(&pending), expected("quiet", "quiet", 1));
        assert_eq!(take(&pending), expected("busy", "busy", 1));
    }

    #[test]
    fn newer_reports_replace_waiting_ones_of_the_same_object() {
        let pending = Pending::new();
        let dropped = ["old", "old", "new", "new"].map(|text| add(&pending, "a", "one", text));
        add(&pending, "a", "two", "other");
        assert_eq!(dropped.map(|dropped| dropped.replaced), [0, 0, 1, 0]);
        assert_eq!(take(&pending), expected("a", "new", 2));
        assert_eq!(take(&pending), expected("a", "other", 1));
        assert_eq!(take(&pending), None);
    }

    #[test]
    fn namespace_with_the_most_reports_gives_way() {
        let pending = Pending::new();
        for name in 0..WAITING {
            add(&pending, "busy", &name.to_string(), "busy");
        }
        let full = |namespace: &str, name: &str| add(&pending, namespace, name, "text").full;
        assert_eq!(full("busy", "more"), 1);
        assert!((0..WAITING / 2).all(|name| full("second", &name.to_string()) == 1));
        let mut counts = HashMap::<String, usize>::new();
        while let Some((namespace, ..)) = take(&pending) {
            *counts.entry(namespace).or_default() += 1;
        }
        let half = WAITING / 2;
        assert_eq!((counts["busy"], counts["second"]), (half, half));
    }
}
