//! Prints the fields of a TrainJob as blocks of lines, grouped by container, pod template or replicated job.
//!
//! Lines are never wrapped or truncated, so values can be copied and searched.

use std::collections::BTreeMap;

use serde_json::Value;
use trainyard_api::{FieldPath, path::Segment};
use trainyard_model::text::{clean_to, is_hidden};
use trainyard_render::Provenance;

use super::{Explanation, without_name};
use crate::field_changes::setter;

/// A group of fields. Groups are printed in this order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    /// The JobSet itself.
    JobSet,
    /// The replicated job, pod template or container at that path.
    At(FieldPath),
    /// Fields of the record that are not part of the JobSet.
    Record,
}

impl Group {
    /// Returns the group of a field, and the field's path in it.
    fn of(field: &Provenance) -> (Self, String) {
        let Some(named) = field.named() else {
            return (Self::Record, field.path.clone());
        };
        let depth = depth(named);
        let segments = || named.segments().iter().cloned();
        let below: FieldPath = segments().skip(depth).collect();
        let group = match depth {
            0 => Self::JobSet,
            depth => Self::At(segments().take(depth).collect()),
        };
        (group, below.to_string())
    }

    fn title(&self) -> String {
        match self {
            Self::JobSet => "JobSet".to_owned(),
            Self::At(path) => path.to_string(),
            Self::Record => "Known to plugins, not part of the JobSet".to_owned(),
        }
    }
}

/// Returns the length of the path's prefix that leads to its container, or else to its pod template or replicated job.
fn depth(path: &FieldPath) -> usize {
    const CONTAINER: [&str; 8] = [
        "spec",
        "replicatedJobs",
        "*",
        "template",
        "spec",
        "template",
        "spec",
        "containers",
    ];
    let fits = |(segment, wanted): (&Segment, &&str)| match *wanted {
        "*" => true,
        "containers" => ["containers", "initContainers"].contains(&&*segment.text()),
        wanted => segment.text() == wanted,
    };
    let segments = path.segments();
    let same = segments
        .iter()
        .zip(&CONTAINER)
        .take_while(|pair| fits(*pair));
    match (same.count(), segments.len()) {
        // With the container's name.
        (8, 9..) => 9,
        (6.., _) => 6,
        (3.., _) => 3,
        _ => 0,
    }
}

pub(super) fn text(explained: &Explanation<'_>) -> String {
    let mut groups: BTreeMap<Group, Vec<(String, &Provenance)>> = BTreeMap::new();
    for field in &explained.fields {
        let (group, path) = Group::of(field);
        groups.entry(group).or_default().push((path, field));
    }
    let mut text = line("", &explained.title());
    for plugin in explained.plugins() {
        text += &line("", &plugin);
    }
    for (group, mut fields) in groups {
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        text += "\n";
        text += &line("", &group.title());
        for (path, field) in fields {
            text += &block(&path, field);
        }
    }
    text
}

/// Returns the lines of one field: its value, followed by its changes, the last one first.
fn block(path: &str, field: &Provenance) -> String {
    let steps = &field.steps;
    let mut text = String::new();
    let indent = if path.is_empty() {
        // The container itself.
        "  "
    } else {
        let value = steps.last().and_then(|step| step.to.as_ref());
        let value = value.map(|value| shown(without_name(field, value)));
        let value = value.unwrap_or_else(|| "removed".to_owned());
        text += &line("  ", &format!("{path}: {value}"));
        "    "
    };
    for step in steps.iter().rev() {
        let (by, why) = setter(&step.by);
        let verb = match step.to {
            Some(_) => "set",
            None => "removed",
        };
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        text += &line(indent, &format!("{verb} by {by}{why}"));
        if let Some(from) = &step.from {
            text += &line(indent, &format!("was: {}", shown(from)));
        }
    }
    text
}

/// Returns a value as text. A string is only quoted if it would be ambiguous otherwise.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        value => value.to_string(),
    }
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.trim() == text && !text.contains(is_hidden)
}

fn line(indent: &str, text: &str) -> String {
    format!("{indent}{}\n", clean_to(text, usize::MAX))
}
