//! Parts of a Secret's keys, plain and in base64, that are too long to occur in a text by chance.

use std::collections::HashSet;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;

pub(crate) struct Parts(HashSet<Vec<u8>>);

const PART: usize = 12;

/// The encoding around keys, which is not secret.
const FRAMES: [&str; 5] = [
    "-----BEGIN EC PRIVATE KEY-----\n",
    "-----BEGIN PRIVATE KEY-----\n",
    "curve\n    public-key = \"",
    "    secret-key = \"",
    "ecdsa-sha2-nistp521 ",
];

impl Parts {
    /// Returns the parts of all keys except `plain`, which the plugin wrote itself.
    pub(crate) fn of(secret: &Value) -> Self {
        let data = secret["data"].as_object().into_iter().flatten();
        let mut parts = HashSet::new();
        for (_, value) in data.filter(|(key, _)| *key != "plain") {
            let encoded = value.as_str().unwrap_or_default();
            let bytes = BASE64_STANDARD.decode(encoded).unwrap_or_default();
            let mut text = String::from_utf8_lossy(&bytes).into_owned();
            for frame in FRAMES {
                text = text.replace(frame, "\n");
            }
            let lines = text.lines().filter(|line| !line.starts_with("-----"));
            for text in lines.chain([encoded]) {
                parts.extend(text.as_bytes().windows(PART).map(<[u8]>::to_vec));
            }
        }
        for frame in FRAMES {
            for part in BASE64_STANDARD.encode(frame).as_bytes().windows(PART) {
                parts.remove(part);
            }
        }
        assert!(parts.len() > 500, "{} parts of keys", parts.len());
        Self(parts)
    }

    pub(crate) fn are_in(&self, text: &str) -> bool {
        let mut windows = text.as_bytes().windows(PART);
        windows.any(|window| self.0.contains(window))
    }
}
