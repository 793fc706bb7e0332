//! The fields that place pods, and their entries.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A field of a pod template that may change while a JobSet is suspended. The affinity is not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Field {
    #[serde(rename = "/metadata/annotations")]
    Annotations,
    #[serde(rename = "/metadata/labels")]
    Labels,
    #[serde(rename = "/spec/nodeSelector")]
    NodeSelector,
    #[serde(rename = "/spec/schedulingGates")]
    SchedulingGates,
    #[serde(rename = "/spec/tolerations")]
    Tolerations,
}

impl Field {
    pub(super) const ALL: [Self; 5] = [
        Self::Annotations,
        Self::Labels,
        Self::NodeSelector,
        Self::SchedulingGates,
        Self::Tolerations,
    ];

    /// Returns the pointer to the field in a pod template.
    pub(super) const fn pointer(self) -> &'static str {
        match self {
            Self::Annotations => "/metadata/annotations",
            Self::Labels => "/metadata/labels",
            Self::NodeSelector => "/spec/nodeSelector",
            Self::SchedulingGates => "/spec/schedulingGates",
            Self::Tolerations => "/spec/tolerations",
        }
    }

    const fn is_list(self) -> bool {
        matches!(self, Self::SchedulingGates | Self::Tolerations)
    }
}

/// Entries of one field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Entries {
    /// Keys with their values; `null` for one that is removed.
    Map(Map<String, Value>),
    /// Items, in their order.
    List(Vec<Value>),
}

impl Entries {
    /// Returns the entries of a field in a pod template, without those of a wrong type.
    pub(super) fn of(field: Field, found: Option<&Value>) -> Self {
        if field.is_list() {
            let items = found.and_then(Value::as_array).into_iter().flatten();
            return Self::List(items.filter(|item| item.is_object()).cloned().collect());
        }
        let entries = found.and_then(Value::as_object).into_iter().flatten();
        let entries = entries.filter(|(_, value)| value.is_string());
        let entries = entries.map(|(key, value)| (key.clone(), value.clone()));
        Self::Map(entries.collect())
    }

    /// Returns the changes from one value of a field to another. For a list, these are only the added items.
    pub(super) fn changes(field: Field, from: Option<&Value>, to: Option<&Value>) -> Self {
        let (before, after) = (Self::of(field, from), Self::of(field, to));
        match (before, after) {
            (Self::Map(before), Self::Map(mut after)) => {
                let removed = before.keys().filter(|key| !after.contains_key(*key));
                let removed: Vec<_> = removed.map(|key| (key.clone(), Value::Null)).collect();
                after.retain(|key, value| before.get(key) != Some(value));
                after.extend(removed);
                Self::Map(after)
            }
            (_, after) => after.not_in(from),
        }
    }

    /// Returns the entries that the value of a field does not have: keys of a map, or items of a list.
    pub(super) fn not_in(self, found: Option<&Value>) -> Self {
        match self {
            Self::Map(mut entries) => {
                if let Some(found) = found.and_then(Value::as_object) {
                    entries.retain(|key, _| !found.contains_key(key));
                }
                Self::Map(entries)
            }
            Self::List(mut items) => {
                let found = found.and_then(Value::as_array);
                let found: HashSet<_> = found.into_iter().flatten().collect();
                items.retain(|item| !found.contains(item));
                Self::List(items)
            }
        }
    }

    /// Adds entries of the same field. An equal key is replaced, and an equal item is not repeated.
    pub(super) fn with(&mut self, more: Self) {
        match (&mut *self, more) {
            (Self::Map(entries), Self::Map(more)) => entries.extend(more),
            (Self::List(items), Self::List(more)) => {
                let known: HashSet<_> = items.iter().collect();
                let new = more.iter().map(|item| !known.contains(item));
                let new: Vec<_> = new.collect();
                let new = more.into_iter().zip(new).filter(|(_, is_new)| *is_new);
                items.extend(new.map(|(item, _)| item));
            }
            (of, more) => *of = more,
        }
    }

    /// Returns the value of a field with these entries.
    pub(super) fn written(self, field: Field, found: Option<&Value>) -> Value {
        let mut value = match found {
            // A value of a wrong type is left unchanged.
            Some(Value::Object(found)) if !field.is_list() => Self::Map(found.clone()),
            Some(Value::Array(found)) if field.is_list() => Self::List(found.clone()),
            _ => Self::of(field, None),
        };
        value.with(self);
        match value {
            Self::Map(mut entries) => {
                entries.retain(|_, value| !value.is_null());
                Value::Object(entries)
            }
            Self::List(items) => Value::Array(items),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Map(entries) => entries.len(),
            Self::List(items) => items.len(),
        }
    }

    /// Whether the entries have the type of the field.
    pub(super) fn are_of(&self, field: Field) -> bool {
        match self {
            Self::Map(entries) => {
                let is_entry = |value: &Value| value.is_string() || value.is_null();
                !field.is_list() && entries.values().all(is_entry)
            }
            Self::List(items) => field.is_list() && items.iter().all(Value::is_object),
        }
    }

    /// Keeps the first entries: at most `most`, and as many bytes of text as fit into `room`.
    pub(super) fn cut(&mut self, most: usize, room: &mut usize) {
        let mut left = most;
        let mut fits = |bytes: usize| {
            let fits = left > 0 && bytes <= *room;
            if fits {
                left -= 1;
                *room -= bytes;
            }
            fits
        };
        match self {
            Self::Map(entries) => {
                entries.retain(|key, value| fits(key.len() + value.to_string().len() + 4));
            }
            Self::List(items) => items.retain(|item| fits(item.to_string().len() + 1)),
        }
    }
}
