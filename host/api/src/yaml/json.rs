//! JSON by the JSON reader: escapes of surrogate pairs and values in a row, which YAML does not have.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{Document, Error, ErrorKind, scalar};

/// Reads exactly one JSON value, with duplicate keys refused.
///
/// # Errors
/// The text is no JSON, or a key is there twice; with line and column.
pub fn read_json(text: &str) -> Result<Value, Error> {
    serde_json::from_str::<Strict>(text)
        .map(|strict| strict.0)
        .map_err(|error| json_error(1, &error))
}

/// Reads any number of JSON values in a row.
pub(super) fn read_stream(text: &str) -> Result<Vec<Document>, Error> {
    let mut documents = Vec::new();
    for (at, value) in serde_json::Deserializer::from_str(text)
        .into_iter::<Strict>()
        .enumerate()
    {
        let value = value.map_err(|error| json_error(at + 1, &error))?.0;
        if !value.is_null() {
            documents.push(Document {
                number: at + 1,
                value,
            });
        }
    }
    Ok(documents)
}

fn json_error(document: usize, error: &serde_json::Error) -> Error {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let place = format!(" at line {line} column {column}");
    let text = text.strip_suffix(&place).unwrap_or(&text);
    let kind = match text.strip_prefix(DUPLICATE) {
        Some(key) => ErrorKind::DuplicateKey(key.to_owned()),
        None => ErrorKind::Json(text.to_owned()),
    };
    // The JSON reader gives column 0 for a line break.
    let column = column.max(1);
    Error {
        document,
        line,
        column,
        kind,
    }
}

/// How a duplicate key travels through serde's error, which is text.
const DUPLICATE: &str = "duplicate key: ";

/// A JSON value whose objects have no key twice.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Strict;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Strict, E> {
        Ok(Strict(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Strict, E> {
        Ok(Strict(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Strict, E> {
        Ok(Strict(Value::from(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Strict, E> {
        Ok(Strict(Value::from(value)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Strict, E> {
        Ok(Strict(
            scalar::float(value).map_or(Value::Null, Value::Number),
        ))
    }

    fn visit_str<E>(self, value: &str) -> Result<Strict, E> {
        Ok(Strict(Value::String(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Strict, E> {
        Ok(Strict(Value::String(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Strict, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = access.next_element()? {
            items.push(item);
        }
        Ok(Strict(Value::Array(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Strict, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!("{DUPLICATE}{key}")));
            }
            let Strict(value) = access.next_value()?;
            map.insert(key, value);
        }
        Ok(Strict(Value::Object(map)))
    }
}
