//! JSON, which has escaped surrogate pairs and sequences of values, unlike YAML.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value};

use super::{Budget, Document, Error, ErrorKind, MAX_VALUE_BYTES, scalar};

/// Parses exactly one JSON value. Duplicate keys are refused.
///
/// # Errors
/// The text is not JSON, a key is a duplicate, or the value takes more memory than a [`Budget`] has.
pub fn read_json(text: &str) -> Result<Value, Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict(&mut Budget::default()).deserialize(&mut reader);
    value
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| json_error(1, &error))
}

/// Parses a sequence of JSON values.
pub(super) fn read_stream(text: &str, budget: &mut Budget) -> Result<Vec<Document>, Error> {
    let mut documents = Vec::new();
    // Each value is found before it is parsed, because only the stream parser finds its end.
    let mut found = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    for number in 1.. {
        let start = found.byte_offset();
        let Some(is_value) = found.next() else { break };
        let end = if is_value.is_ok() {
            found.byte_offset()
        } else {
            text.len()
        };
        let (before, rest) = text.split_at_checked(start).unwrap_or_default();
        let part = rest.get(..end - start).unwrap_or_default();
        let value = read_first(part, budget);
        let value = value.map_err(|error| behind(before, json_error(number, &error)))?;
        is_value.map_err(|error| json_error(number, &error))?;
        if !value.is_null() {
            documents.push(Document {
                number,
                value,
                part: None,
            });
        }
    }
    Ok(documents)
}

fn read_first(text: &str, budget: &mut Budget) -> serde_json::Result<Value> {
    budget.take(2 * size_of::<Document>()).map_err(too_much)?;
    Strict(budget).deserialize(&mut serde_json::Deserializer::from_str(text))
}

/// Converts the error of a part of a text to one of the whole text.
fn behind(before: &str, error: Error) -> Error {
    let (lines, last) = match before.rsplit_once('\n') {
        Some((lines, last)) => (lines.matches('\n').count() + 1, last),
        None => (0, before),
    };
    let column = if error.line == 1 { last.len() } else { 0 };
    Error {
        line: error.line + lines,
        column: error.column + column,
        ..error
    }
}

fn json_error(document: usize, error: &serde_json::Error) -> Error {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let place = format!(" at line {line} column {column}");
    let text = text.strip_suffix(&place).unwrap_or(&text);
    let kind = if let Some(key) = text.strip_prefix(DUPLICATE) {
        ErrorKind::DuplicateKey(key.to_owned())
    } else if let Some(number) = text.strip_prefix(ROUNDED) {
        ErrorKind::Rounded(number.to_owned())
    } else if text == OUT_OF_RANGE {
        ErrorKind::TooLarge
    } else if text == TOO_MUCH {
        ErrorKind::TooManyValues {
            limit: MAX_VALUE_BYTES,
        }
    } else {
        ErrorKind::Json(text.to_owned())
    };
    // The JSON parser reports column 0 for a line break.
    let column = column.max(1);
    Error {
        document,
        line: line.max(1),
        column,
        kind,
    }
}

/// Marks a duplicate key in the text of serde's error.
const DUPLICATE: &str = "duplicate key: ";

/// Marks an integer that an API server would round in the same way.
const ROUNDED: &str = "rounded integer: ";

/// How serde_json says that a number is larger than a float can be.
const OUT_OF_RANGE: &str = "number out of range";

/// Marks an exceeded budget in the same way.
const TOO_MUCH: &str = "too much memory";

fn too_much<E: serde::de::Error>(_: ErrorKind) -> E {
    E::custom(TOO_MUCH)
}

/// Parses a JSON value without duplicate keys, within a budget.
struct Strict<'b>(&'b mut Budget);

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        let number = scalar::unsigned(value);
        let rounded = || E::custom(format_args!("{ROUNDED}{value}"));
        number.map(Value::Number).ok_or_else(rounded)
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(scalar::float(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.0.take_text(value).map_err(too_much)?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(Strict(self.0))? {
            self.0.take_item(items.len()).map_err(too_much)?;
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!("{DUPLICATE}{key}")));
            }
            self.0.take_member(map.len(), &key).map_err(too_much)?;
            let value = access.next_value_seed(Strict(self.0))?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
