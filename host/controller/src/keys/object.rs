//! The JSON of a Secret with its keys.

use std::{collections::BTreeMap, io};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use hyper::body::Bytes;
use serde::{
    Serialize,
    ser::{SerializeMap as _, Serializer},
};
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use super::KeyError;

/// Serializes the Secret, with these texts instead of the placeholders.
pub(super) fn json(
    secret: &Value,
    texts: &BTreeMap<&str, Zeroizing<String>>,
) -> Result<Bytes, KeyError> {
    let encode = |text: &Zeroizing<String>| Zeroizing::new(BASE64_STANDARD.encode(&**text));
    let encoded = texts.iter().map(|(key, text)| (*key, encode(text)));
    let whole = WithKeys {
        secret: secret.as_object().ok_or(KeyError::Json)?,
        encoded: &encoded.collect(),
    };
    let mut length = Length(0);
    serde_json::to_writer(&mut length, &whole).map_err(|_| KeyError::Json)?;
    // Reallocation would leave a copy behind.
    let mut json = Zeroizing::new(Vec::with_capacity(length.0));
    serde_json::to_writer(&mut *json, &whole).map_err(|_| KeyError::Json)?;
    Ok(Bytes::from_owner(json))
}

/// A Secret that is serialized with its keys.
struct WithKeys<'a> {
    secret: &'a Map<String, Value>,
    encoded: &'a BTreeMap<&'a str, Zeroizing<String>>,
}

impl Serialize for WithKeys<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        for (name, value) in self.secret {
            match (name.as_str(), value) {
                ("data", Value::Object(shown)) => {
                    let encoded = self.encoded;
                    members.serialize_entry(name, &Data { shown, encoded })?;
                }
                _ => members.serialize_entry(name, value)?,
            }
        }
        members.end()
    }
}

/// The `data` of such a Secret.
struct Data<'a> {
    shown: &'a Map<String, Value>,
    encoded: &'a BTreeMap<&'a str, Zeroizing<String>>,
}

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut keys = serializer.serialize_map(None)?;
        for (key, shown) in self.shown {
            match self.encoded.get(key.as_str()) {
                Some(text) => keys.serialize_entry(key, text.as_str())?,
                None => keys.serialize_entry(key, shown)?,
            }
        }
        keys.end()
    }
}

/// Counts the bytes that are written.
struct Length(usize);

impl io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
