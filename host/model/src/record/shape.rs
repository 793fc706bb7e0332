//! How the values of a field are written in a JobSet.

use std::borrow::Cow;

use serde_json::Value;
use trainyard_text::json;

use super::{Datum, Field};

/// The shape of a field's values in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A single value, such as `image`.
    One,
    /// An object whose members are the values, such as `nodeSelector`.
    Map,
    /// A list whose items have a key, such as `name` in `env`.
    List(ListKey),
    /// Items that plugins add to a list, after those of the template, which have no key.
    Additions,
    /// Members of the object, keyed by name. `securityContext/runAsUser` is one level down.
    Members,
    /// A single value of the replicated job, above its pod template, with its own rules for reading and writing.
    Job,
    /// Not part of a JobSet.
    Elsewhere,
}

/// The key of a list's items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKey {
    /// The field of this name.
    Field(&'static str),
    /// The number and protocol of a port (W28).
    Port,
    /// The item itself, a string.
    Text,
    /// The position.
    Position,
}

impl ListKey {
    /// Returns the key of a list's item. `None` if the item has no key.
    #[must_use]
    pub fn of(self, at: usize, item: &Value) -> Option<Cow<'_, str>> {
        match self {
            Self::Field(name) => text(item, name).map(Cow::from),
            Self::Port => {
                let protocol = text(item, "protocol").unwrap_or("TCP");
                let number = json::get(item, "containerPort")?.as_u64()?;
                Some(format!("{number}/{protocol}").into())
            }
            Self::Text => item.as_str().map(Cow::from),
            Self::Position => Some(at.to_string().into()),
        }
    }
}

impl Field {
    /// Returns the value of a list's item.
    #[must_use]
    pub fn datum_of(self, item: &Value) -> Datum {
        match (self, json::get(item, "valueFrom")) {
            (Self::Env, Some(source)) => source.clone().into(),
            (Self::Env, None) => text(item, "value").unwrap_or_default().into(),
            _ => match item {
                Value::String(text) => text.as_str().into(),
                item => item.clone().into(),
            },
        }
    }

    /// Returns the list's item of a value.
    #[must_use]
    pub fn item_of(self, key: &str, datum: &Datum) -> Value {
        let value = datum.to_json().unwrap_or_default();
        if self != Self::Env {
            return value;
        }
        let member = match datum {
            Datum::Json(_) => "valueFrom",
            _ => "value",
        };
        [("name", key.into()), (member, value)]
            .into_iter()
            .collect()
    }

    /// Returns a map's value as text. Quantities may be numbers in YAML.
    #[must_use]
    pub fn map_text(self, value: &Value) -> Option<Cow<'_, str>> {
        match value {
            Value::String(text) => Some(text.into()),
            Value::Number(number) if matches!(self, Self::Requests | Self::Limits) => {
                Some(number.to_string().into())
            }
            _ => None,
        }
    }
}

fn text<'v>(of: &'v Value, member: &str) -> Option<&'v str> {
    json::get(of, member)?.as_str()
}
