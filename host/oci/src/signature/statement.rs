//! In-toto statements: what a signer says of a manifest.

use serde::Deserialize;

use super::object::Object;
use crate::digest::Digest;

/// The type of the predicate by which cosign signs.
pub(crate) const SIGNATURE_PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";

const TYPES: [&str; 2] = [
    "https://in-toto.io/Statement/v1",
    "https://in-toto.io/Statement/v0.1",
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(rename = "_type")]
    kind: String,
    predicate_type: String,
    subject: Vec<Object<Subject>>,
}

#[derive(Deserialize)]
struct Subject {
    digest: Object<Digests>,
}

#[derive(Deserialize)]
struct Digests {
    sha256: Option<String>,
}

/// What a signer says of which manifest.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) predicate_type: String,
    pub(crate) subject: Digest,
}

impl Statement {
    /// Reads a statement; `None` if it is not one, or has not exactly one subject with a SHA-256.
    pub(crate) fn parse(payload: &[u8]) -> Option<Self> {
        let Object(document): Object<Document> = serde_json::from_slice(payload).ok()?;
        let [Object(subject)] = document.subject.as_slice() else {
            return None;
        };
        let subject = format!("sha256:{}", subject.digest.0.sha256.as_deref()?);
        let is_statement = TYPES.contains(&document.kind.as_str());
        is_statement.then_some(Self {
            predicate_type: document.predicate_type,
            subject: subject.parse().ok()?,
        })
    }
}
