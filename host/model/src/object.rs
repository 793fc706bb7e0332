//! Objects that plugins emit beside the JobSet.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::names::short_hash;

/// How an object is applied. In every mode it is made before the JobSet, and made again where it is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApplyMode {
    /// Changed only while the JobSet has never run: running pods never see a new script under a live mount, and neither do
    /// those that go on after a suspension.
    #[default]
    #[serde(rename = "with-jobset")]
    WithJobSet,
    /// Never changed; what is there is used.
    Once,
    /// Changed only while the JobSet is suspended, also one that has run: for the last time just before its pods start.
    WhileSuspended,
    /// Changed whenever it differs, also while the JobSet runs.
    Live,
}

impl ApplyMode {
    /// All modes.
    pub const ALL: [Self; 4] = [
        Self::WithJobSet,
        Self::Once,
        Self::WhileSuspended,
        Self::Live,
    ];

    /// As the contract spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WithJobSet => "with-jobset",
            Self::Once => "once",
            Self::WhileSuspended => "while-suspended",
            Self::Live => "live",
        }
    }

    /// The mode of that spelling.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

impl fmt::Display for ApplyMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An emitted object. Namespace and owner are added when it is assembled.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// As `v1`.
    pub api_version: String,
    /// As `ConfigMap`.
    pub kind: String,
    /// What stands behind the TrainJob's name.
    pub suffix: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`.
    pub annotations: BTreeMap<String, String>,
    /// What it holds.
    pub content: Content,
    /// How it is applied.
    pub apply: ApplyMode,
}

impl Object {
    /// The text of a key of a ConfigMap's `data`.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        match &self.content {
            Content::ConfigMap(map) => map.data.get(key).map(String::as_str),
            Content::Body(_) => None,
        }
    }
}

/// What an emitted object holds beside its header.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// That of a ConfigMap.
    ConfigMap(ConfigMap),
    /// That of any other kind: the members beside `apiVersion`, `kind` and `metadata`.
    Body(Map<String, Value>),
}

/// The content of a ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigMap {
    /// `data`.
    pub data: BTreeMap<String, String>,
    /// `binaryData`, as bytes.
    pub binary_data: BTreeMap<String, Vec<u8>>,
    /// `immutable`.
    pub immutable: bool,
}

impl Content {
    /// An empty one of that kind.
    #[must_use]
    pub fn of(api_version: &str, kind: &str) -> Self {
        match (api_version, kind) {
            ("v1", "ConfigMap") => Self::ConfigMap(ConfigMap::default()),
            _ => Self::Body(Map::new()),
        }
    }
}

/// Digits of the hash in a name.
const HASH_DIGITS: usize = 10;

/// The name of an object: the TrainJob's name and the suffix; with content, a hash over it and the job's identity
/// (job `a` with suffix `-b-c` and job `a-b` with suffix `-c` would meet otherwise).
#[must_use]
pub fn object_name(job: &str, uid: &str, suffix: &str, content: Option<&str>) -> String {
    match content {
        None => format!("{job}{suffix}"),
        Some(content) => format!(
            "{job}{suffix}-{}",
            short_hash(&[uid, suffix, content], HASH_DIGITS)
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_stored_mode_is_spelled_as_in_the_contract() {
        for mode in ApplyMode::ALL {
            let stored = serde_json::to_value(mode).unwrap();
            assert_eq!(stored, mode.name());
            assert_eq!(serde_json::from_value::<ApplyMode>(stored).unwrap(), mode);
            assert_eq!(ApplyMode::named(mode.name()), Some(mode));
        }
    }
}
