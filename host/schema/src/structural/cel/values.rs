//! Values as rules see them: typed by the schema, and without copies of their text.

use super::super::duration;
use super::super::format;
use super::super::node::{Kind, ListType, Node};
use super::keyed::KeyedList;
use super::types::Reads;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cel::common::types::{
    CelBool, CelBytes, CelDouble, CelDuration, CelInt, CelList, CelMap, CelMapKey, CelNull,
    CelString, CelTimestamp,
};
use cel::common::value::Val;
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};
use serde_json::{Map, Number, Value};
use std::collections::HashMap;

/// A value of its own, as the interpreter takes it.
pub(super) type Boxed<'v> = Box<dyn Val + 'v>;

/// The fields of a whole object that its schema need not declare.
const WHOLE_FIELDS: [&str; 2] = ["apiVersion", "kind"];

/// The value of `self`: of an object only the fields that its rules read.
pub(super) fn this<'v>(value: &'v Value, node: &'v Node, whole: bool, reads: &Reads) -> Boxed<'v> {
    match value {
        Value::Object(map) if is_declared(node, whole) => object(map, node, whole, Some(reads)),
        value => typed(value, node, whole),
    }
}

fn typed<'v>(value: &'v Value, node: &'v Node, whole: bool) -> Boxed<'v> {
    match (value, node.kind) {
        (Value::Object(map), Kind::Object) if is_declared(node, whole) => {
            object(map, node, whole, None)
        }
        (Value::Object(map), Kind::Object) => entries(map, node.map_values()),
        (Value::Array(items), Kind::Array) => list(items, node),
        (Value::String(text), Kind::String) => string(text, node),
        (Value::Number(number), Kind::Number) => Box::new(double(number)),
        (Value::Number(number), Kind::Integer | Kind::IntOrString) => integer(number),
        (value, _) => untyped(value),
    }
}

/// Whether a value is an object with declared fields, and no map.
pub(super) fn is_declared(node: &Node, whole: bool) -> bool {
    node.kind == Kind::Object && (whole || node.embedded || !node.properties.is_empty())
}

fn object<'v>(
    map: &'v Map<String, Value>,
    node: &'v Node,
    whole: bool,
    reads: Option<&Reads>,
) -> Boxed<'v> {
    let whole = whole || node.embedded;
    let mut fields = HashMap::with_capacity(map.len());
    for (name, value) in map {
        let property = node.properties.get(name);
        let spelled = property.and_then(|property| property.cel_name.as_deref());
        if reads.is_some_and(|reads| !reads.needs(spelled.unwrap_or(name))) {
            continue;
        }
        let (key, value) = match (property, spelled) {
            _ if whole && name == "metadata" => (CelMapKey::from("metadata"), metadata(value)),
            (None, _) if whole && WHOLE_FIELDS.contains(&name.as_str()) => {
                (CelMapKey::from(name.as_str()), untyped(value))
            }
            // A null means the same as an absent field to a rule, though not to `==`.
            (Some(property), Some(spelled)) if property.node.in_cel && !value.is_null() => (
                CelMapKey::from(spelled),
                typed(value, &property.node, false),
            ),
            _ => (hidden(name), untyped(value)),
        };
        fields.insert(key, value);
    }
    Box::new(CelMap::from(fields))
}

/// The metadata of a whole object: rules see the name, and the rest only counts for `==`.
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

/// The key of a field that no rule can name, so that it still counts where objects are compared.
fn hidden<'v>(name: &str) -> CelMapKey<'v> {
    CelMapKey::from(format!("\0{name}"))
}

fn entries<'v>(map: &'v Map<String, Value>, values: Option<&'v Node>) -> Boxed<'v> {
    let entries: HashMap<_, _> = map
        .iter()
        .map(|(key, value)| match values {
            Some(node) => (CelMapKey::from(key.as_str()), typed(value, node, false)),
            None => (hidden(key), untyped(value)),
        })
        .collect();
    Box::new(CelMap::from(entries))
}

fn list<'v>(items: &'v [Value], node: &'v Node) -> Boxed<'v> {
    let items: Vec<_> = items
        .iter()
        .map(|item| match &node.items {
            Some(node) => typed(item, node, false),
            None => untyped(item),
        })
        .collect();
    match node.list {
        ListType::Atomic => Box::new(CelList::from(items)),
        ListType::Set | ListType::Map(_) => Box::new(KeyedList(CelList::from(items))),
    }
}

/// A text; where its format is one of CEL's types and it keeps to it, a value of that type.
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

fn integer<'v>(number: &Number) -> Boxed<'v> {
    match number.as_i64() {
        Some(integer) => Box::new(CelInt::from(integer)),
        None => whole(number).map_or_else(
            || Box::new(double(number)) as Boxed<'v>,
            |integer| Box::new(CelInt::from(integer)),
        ),
    }
}

/// A float that is a whole number, as `3.0`, is an integer where the schema asks for one.
#[allow(clippy::cast_possible_truncation)]
fn whole(number: &Number) -> Option<i64> {
    let float = number.as_f64()?;
    (float.fract() == 0.0 && float.abs() < 9.2e18).then_some(float as i64)
}

fn double(number: &Number) -> CelDouble {
    CelDouble::from(number.as_f64().unwrap_or(f64::NAN))
}

/// A value of which no schema says the type: what JSON says.
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
