//! Facts of the cluster that the operator gives to plugins: names with texts, under `facts` in `rendering` of the controller's configuration and in PolicyPlugins.
//!
//! Facts are not secret: a TrainJob's snapshot contains those that its plugins read.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError, RwLock},
};

use serde_json::{Value, json};

/// The name of the host's version, a fact that every host has.
pub const HOST_VERSION: &str = "host/version";

/// The prefix of the host's own facts.
pub const HOST_PREFIX: &str = "host/";

/// The URL of the status server, up to the path. The controller provides it if it has a status server, unless the operator sets it.
pub const STATUS_URL: &str = "status/url";

/// The certificates, as PEM, of the authorities that clients of the status server have to trust: a fact of a host that has a status server.
pub const STATUS_CA: &str = "host/status-ca";

/// The longest name, in bytes.
pub const MAX_NAME: usize = 128;

/// The most bytes of all names and texts together, because a snapshot may contain them.
pub const MAX_BYTES: usize = 32 << 10;

/// The operator's facts. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts(Arc<BTreeMap<String, String>>);

impl Facts {
    /// Returns facts by name. The caller has checked names and sizes.
    #[must_use]
    pub fn new(facts: BTreeMap<String, String>) -> Self {
        Self(facts.into())
    }

    /// Adds a fact.
    #[must_use]
    pub fn with(mut self, name: &str, text: &str) -> Self {
        Arc::make_mut(&mut self.0).insert(name.to_owned(), text.to_owned());
        self
    }

    /// The fact with that name, except for the host's own facts.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All of them, by name.
    #[must_use]
    pub fn all(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The facts with certain names.
    #[must_use]
    pub fn only(&self, names: &BTreeSet<String>) -> Self {
        let facts = self.0.iter().filter(|(name, _)| names.contains(*name));
        Self::new(facts.map(|(k, v)| (k.clone(), v.clone())).collect())
    }

    /// The digest of all of them.
    pub(crate) fn digest(&self) -> String {
        let facts: Value = json!(*self.0);
        crate::digest::canonical_digest(&facts)
    }
}

/// The host's own facts apart from its version, by name.
pub type HostFactTexts = Arc<BTreeMap<String, String>>;

/// The host's own facts, which may change while it runs, such as a certificate. They are not pinned in snapshots. A rendering reads them once,
/// at its start. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct HostFacts(Arc<RwLock<HostFactTexts>>);

impl HostFacts {
    /// Returns facts by name.
    #[must_use]
    pub fn new(facts: BTreeMap<String, String>) -> Self {
        Self(Arc::new(RwLock::new(facts.into())))
    }

    /// Sets a fact, whose name begins with [`HOST_PREFIX`], or removes it.
    pub fn set(&self, name: &str, text: Option<&str>) {
        let mut facts = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let facts = Arc::make_mut(&mut facts);
        match text {
            Some(text) => facts.insert(name.to_owned(), text.to_owned()),
            None => facts.remove(name),
        };
    }

    /// Returns the facts as they are now.
    #[must_use]
    pub fn now(&self) -> HostFactTexts {
        let facts = self.0.read().unwrap_or_else(PoisonError::into_inner);
        facts.clone()
    }
}

/// What is wrong with the name of a fact that an operator sets.
#[must_use]
pub fn name_problem(name: &str) -> Option<String> {
    let is_word = |word: &str| {
        let is_end = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let bytes = word.as_bytes();
        bytes.first().is_some_and(is_end)
            && bytes.last().is_some_and(is_end)
            && bytes
                .iter()
                .all(|b| is_end(b) || matches!(b, b'-' | b'_' | b'.'))
    };
    if name.starts_with(HOST_PREFIX) {
        return Some(format!(
            "names that begin with `{HOST_PREFIX}` are reserved for the host; choose another name"
        ));
    }
    let is_name = name.len() <= MAX_NAME && name.split('/').all(is_word);
    (!is_name).then(|| {
        format!("is not the name of a fact; a name is words of a-z, 0-9, `-`, `_` and `.` separated by `/`, such as `status/url`, with at most {MAX_NAME} bytes")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_words_with_slashes_between_them() {
        for name in ["a", "status/url", "cluster.example.com/zone", "a-b_c/0"] {
            assert_eq!(name_problem(name), None, "{name}");
        }
        let long = "x".repeat(MAX_NAME + 1);
        for name in [
            "",
            "/",
            "a/",
            "/a",
            "A",
            "-a",
            "a b",
            "a//b",
            HOST_VERSION,
            "host/x",
            &long,
        ] {
            assert!(name_problem(name).is_some(), "{name}");
        }
    }
}
