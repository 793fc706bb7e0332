//! The last Events of a TrainJob and its JobSet.

use serde::Serialize;
use serde_json::Value;

use crate::live_objects::text;

/// The most Events that are listed.
const MOST: usize = 5;

/// An Event.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct EventReport {
    /// When it was last reported.
    time: String,
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    kind: String,
    reason: String,
    /// The kind of the object.
    object: String,
    message: String,
}

impl EventReport {
    fn of(event: &Value) -> Self {
        let own = |pointer: &str| text(event, pointer).unwrap_or_default().to_owned();
        let times = [
            "/series/lastObservedTime",
            "/lastTimestamp",
            "/eventTime",
            "/metadata/creationTimestamp",
        ];
        let time = times.iter().find_map(|pointer| text(event, pointer));
        Self {
            time: time.unwrap_or_default().to_owned(),
            kind: own("/type"),
            reason: own("/reason"),
            object: own("/involvedObject/kind"),
            message: own("/message"),
        }
    }

    pub(super) fn line(&self) -> String {
        let Self {
            time,
            kind,
            reason,
            object,
            message,
        } = self;
        format!("{time} {kind} {reason} ({object}): {message}")
    }
}

/// Returns the last Events, oldest first.
pub(super) fn last(events: &[Value]) -> Vec<EventReport> {
    let mut reports: Vec<_> = events.iter().map(EventReport::of).collect();
    reports.sort();
    let older = reports.len().saturating_sub(MOST);
    reports.split_off(older)
}
