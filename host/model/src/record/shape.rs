//! The shapes of the values of a field in a JobSet.

use std::borrow::Cow;

use serde_json::Value;
use trainyard_text::json;

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

fn text<'v>(of: &'v Value, member: &str) -> Option<&'v str> {
    json::get(of, member)?.as_str()
}
