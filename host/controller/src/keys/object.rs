//! A Secret with its keys, as it goes to the API server.

use std::collections::{BTreeMap, HashSet};
use std::io;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use hyper::body::Bytes;
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use super::KeyError;

/// How many characters of a key may stand in a message by chance.
const BY_CHANCE: usize = 12;

/// A Secret with its keys.
pub(crate) struct Filled {
    /// Its JSON, whose memory is overwritten when the last one who holds it is done.
    pub(crate) json: Bytes,
    /// What must not be quoted.
    pub(crate) texts: KeyTexts,
}

/// The texts with keys, and the same in base64.
pub(crate) struct KeyTexts(Vec<Zeroizing<String>>);

impl Filled {
    /// The Secret with those texts in the places of their placeholders.
    pub(super) fn new(
        secret: &Value,
        texts: BTreeMap<&str, Zeroizing<String>>,
    ) -> Result<Self, KeyError> {
        let encode = |text: &Zeroizing<String>| Zeroizing::new(BASE64_STANDARD.encode(&**text));
        let encoded: BTreeMap<_, _> = texts
            .iter()
            .map(|(key, text)| (*key, encode(text)))
            .collect();
        let whole = WithKeys {
            secret: secret.as_object().ok_or(KeyError::Json)?,
            encoded: &encoded,
        };
        let mut length = Length(0);
        serde_json::to_writer(&mut length, &whole).map_err(|_| KeyError::Json)?;
        // What outgrows its memory leaves a copy behind.
        let mut json = Zeroizing::new(Vec::with_capacity(length.0));
        serde_json::to_writer(&mut *json, &whole).map_err(|_| KeyError::Json)?;
        let texts = texts.into_values().chain(encoded.into_values());
        Ok(Self {
            json: Bytes::from_owner(json),
            texts: KeyTexts(texts.collect()),
        })
    }
}

impl KeyTexts {
    /// Whether a message quotes a part of a key.
    pub(crate) fn are_quoted_in(&self, message: &str) -> bool {
        let texts = self.0.iter();
        // The set is of the keys, which are short: an answer of the API server may have many megabytes.
        let parts: HashSet<&[u8]> = texts
            .flat_map(|text| text.as_bytes().windows(BY_CHANCE))
            .collect();
        let mut windows = message.as_bytes().windows(BY_CHANCE);
        windows.any(|window| parts.contains(window))
    }
}

/// A Secret whose keys hold other values than it shows.
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

/// Counts what is written.
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
