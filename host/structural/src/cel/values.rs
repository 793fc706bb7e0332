//! The values that rules read. They have the types of the schema, and borrow their text.

use std::{cell::Cell, collections::HashMap};

use base64::{Engine, engine::general_purpose::STANDARD};
use cel::common::{
    types::{
        CelBool, CelBytes, CelDouble, CelDuration, CelInt, CelList, CelMap, CelMapKey, CelNull,
        CelString, CelTimestamp,
    },
    value::Val,
};
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};
use serde_json::{Map, Number, Value};

use super::{escaping, keyed::KeyedList, unreadable::Unreadable};
use crate::{
    duration, format,
    node::{ListType, Node},
    rules::Reads,
    value_type::ValueType,
};

/// A value for the interpreter.
pub(super) type Boxed<'v> = Box<dyn Val + 'v>;

/// Records that a value cannot be converted for a rule, in a server's words.
#[derive(Default)]
pub(super) struct Notes(Cell<Option<&'static str>>);

impl Notes {
    /// Returns the words for the last such value.
    pub(super) fn unreadable(&self) -> Option<&'static str> {
        self.0.get()
    }

    fn note<'v>(&self, words: &'static str) -> Boxed<'v> {
        self.0.set(Some(words));
        Box::new(Unreadable)
    }
}

/// The fields of an object with a kind that its schema need not declare.
const WHOLE_FIELDS: [&str; 2] = ["apiVersion", "kind"];

/// Converts the value of `self`; of an object, only the fields that its rules read.
pub(super) fn this<'v>(
    value: &'v Value,
    node: &'v Node,
    whole: bool,
    reads: &Reads,
    notes: &Notes,
) -> Boxed<'v> {
    match value {
        Value::Object(map) if is_declared(node, whole) => {
            object(map, node, whole, Some(reads), notes)
        }
        value => typed(value, node, whole, notes),
    }
}

fn typed<'v>(value: &'v Value, node: &'v Node, whole: bool, notes: &Notes) -> Boxed<'v> {
    match (value, node.kind) {
        (Value::Object(map), ValueType::Object) if is_declared(node, whole) => {
            object(map, node, whole, None, notes)
        }
        (Value::Object(map), ValueType::Object) => entries(map, node.map_values(), notes),
        (Value::Array(items), ValueType::Array) => list(items, node, notes),
        (Value::Array(_), ValueType::String) => {
            notes.note("invalid data, expected string, got []interface {}")
        }
        (Value::String(text), ValueType::String) => string(text, node),
        (Value::Number(number), ValueType::Number) => Box::new(double(number)),
        (Value::Number(number), ValueType::Integer) if number.as_i64().is_none() => {
            notes.note("invalid data, expected int, got float64")
        }
        (Value::Number(number), ValueType::IntOrString) if number.as_i64().is_none() => {
            notes.note("invalid data, expected XIntOrString value to be either a string or integer")
        }
        (value, _) => untyped(value),
    }
}

/// Returns whether values are objects with declared fields, and not maps.
pub(super) fn is_declared(node: &Node, whole: bool) -> bool {
    node.kind == ValueType::Object && (whole || node.embedded || !node.properties.is_empty())
}

fn object<'v>(
    map: &'v Map<String, Value>,
    node: &'v Node,
    whole: bool,
    reads: Option<&Reads>,
    notes: &Notes,
) -> Boxed<'v> {
    let whole = whole || node.embedded;
    let mut fields = HashMap::with_capacity(map.len());
    for (name, value) in map {
        let property = node.properties.get(name);
        let spelled = property.and_then(|property| property.cel_name.as_deref());
        let needed =
            |reads: &Reads| reads.needs(name) || spelled.is_some_and(|name| reads.needs(name));
        if !reads.is_none_or(needed) {
            continue;
        }
        let (key, value) = match (property, spelled) {
            _ if whole && name == "metadata" => (CelMapKey::from("metadata"), metadata(value)),
            (None, _) if whole && WHOLE_FIELDS.contains(&name.as_str()) => {
                (CelMapKey::from(name.as_str()), untyped(value))
            }
            // For a rule, null means that the field is absent, except for `==`.
            (Some(property), Some(spelled)) if property.node.in_cel && !value.is_null() => {
                if escaping::is_reserved(name) {
                    let value = typed(value, &property.node, false, notes);
                    fields.insert(CelMapKey::from(name.as_str()), value);
                }
                let value = typed(value, &property.node, false, notes);
                (CelMapKey::from(spelled), value)
            }
            _ => (hidden(name), untyped(value)),
        };
        fields.insert(key, value);
    }
    Box::new(CelMap::from(fields))
}

/// Converts the metadata of an object. Rules can read the name; the other fields only matter for `==`.
fn metadata(value: &Value) -> Boxed<'_> {
    let Value::Object(map) = value else {
        return untyped(value);
    };
    let fields: HashMap<_, _> = map
        .iter()
        .map(|(name, value)| match name.as_str() {
            "name" | "generateName" => (CelMapKey::from(name.as_str()), untyped(value)),
            _ => (hidden(name), untyped(value)),
        })
        .collect();
    Box::new(CelMap::from(fields))
}

/// Returns a key that no rule can spell, for a field that only matters for `==`.
fn hidden<'v>(name: &str) -> CelMapKey<'v> {
    CelMapKey::from(format!("\0{name}"))
}

fn entries<'v>(map: &'v Map<String, Value>, values: Option<&'v Node>, notes: &Notes) -> Boxed<'v> {
    let entries: HashMap<_, _> = map
        .iter()
        .map(|(key, value)| match values {
            Some(node) => (
                CelMapKey::from(key.as_str()),
                typed(value, node, false, notes),
            ),
            None => (hidden(key), untyped(value)),
        })
        .collect();
    Box::new(CelMap::from(entries))
}

fn list<'v>(items: &'v [Value], node: &'v Node, notes: &Notes) -> Boxed<'v> {
    let items: Vec<_> = items
        .iter()
        .map(|item| match &node.items {
            Some(node) => typed(item, node, false, notes),
            None => untyped(item),
        })
        .collect();
    match node.list {
        ListType::Atomic => Box::new(CelList::from(items)),
        ListType::Set | ListType::Map(_) => Box::new(KeyedList(CelList::from(items))),
    }
}

/// Converts a string; to a value of another type if its format is one of CEL's types and the string is valid.
fn string<'v>(text: &'v str, node: &Node) -> Boxed<'v> {
    let format = node
        .checks
        .format
        .as_ref()
        .map(|format| format.name.as_str());
    let special: Option<Boxed<'v>> = match format {
        Some("byte") => STANDARD
            .decode(text)
            .ok()
            .map(|bytes| Box::new(CelBytes::from(bytes)) as Boxed<'v>),
        Some("duration") => {
            duration::parse(text).map(|duration| Box::new(CelDuration::from(duration)) as Boxed<'v>)
        }
        Some("date" | "date-time") => {
            time(text).map(|time| Box::new(CelTimestamp::from(time)) as Boxed<'v>)
        }
        _ => None,
    };
    special.unwrap_or_else(|| Box::new(CelString::from(text)))
}

fn time(text: &str) -> Option<DateTime<chrono::FixedOffset>> {
    if format::is_date(text) {
        let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
        return Some(date.and_time(NaiveTime::MIN).and_utc().fixed_offset());
    }
    DateTime::parse_from_rfc3339(text).ok().or_else(|| {
        let local = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S").ok()?;
        Some(local.and_utc().fixed_offset())
    })
}

fn double(number: &Number) -> CelDouble {
    CelDouble::from(number.as_f64().unwrap_or(f64::NAN))
}

/// Converts a value without a schema, by its JSON type.
fn untyped(value: &Value) -> Boxed<'_> {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(value) => Box::new(CelBool::from(*value)),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => Box::new(CelInt::from(integer)),
            None => Box::new(double(number)),
        },
        Value::String(text) => Box::new(CelString::from(text.as_str())),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(untyped).collect();
            Box::new(CelList::from(items))
        }
        Value::Object(map) => {
            let entries: HashMap<_, _> = map
                .iter()
                .map(|(key, value)| (CelMapKey::from(key.as_str()), untyped(value)))
                .collect();
            Box::new(CelMap::from(entries))
        }
    }
}
