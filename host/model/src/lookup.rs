//! Objects of the cluster that plugins ask for.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a plugin asked for. The keys of a TrainJob are what replay needs and what a controller watches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum LookupKey {
    /// One object by name.
    Object {
        /// As `v1` or `resource.k8s.io/v1`.
        api_version: String,
        /// The kind.
        kind: String,
        /// `metadata.name`.
        name: String,
    },
    /// All objects of a kind.
    All {
        /// As `v1` or `resource.k8s.io/v1`.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// Whether a kind is served.
    Served {
        /// As `v1` or `resource.k8s.io/v1`.
        api_version: String,
        /// The kind.
        kind: String,
    },
}

impl LookupKey {
    /// As the key of a claim: `v1/ConfigMap/NAME`, with `*` for all objects and `#` for the kind itself.
    #[must_use]
    pub fn claim_key(&self) -> String {
        match self {
            Self::Object {
                api_version,
                kind,
                name,
            } => format!("{api_version}/{kind}/{name}"),
            Self::All { api_version, kind } => format!("{api_version}/{kind}/*"),
            Self::Served { api_version, kind } => format!("{api_version}/{kind}/#"),
        }
    }
}

impl fmt::Display for LookupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object {
                api_version,
                kind,
                name,
            } => write!(f, "{kind} `{name}` ({api_version})"),
            Self::All { api_version, kind } => write!(f, "the list of {kind} ({api_version})"),
            Self::Served { api_version, kind } => {
                write!(f, "whether {kind} ({api_version}) is served")
            }
        }
    }
}

/// What the host holds for a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LookupAnswer {
    /// The object.
    Object(Arc<Value>),
    /// The kind is not served.
    NotServed,
    /// The objects by name; [`Self::all`] makes it.
    #[non_exhaustive]
    All(Vec<Arc<Value>>),
    /// Whether it is served.
    Served(bool),
}

impl LookupAnswer {
    /// The objects of a kind, which a plugin gets by name, and where two namespaces have one by namespace: whatever order
    /// a host holds them in, a plugin sees one.
    #[must_use]
    pub fn all(mut objects: Vec<Arc<Value>>) -> Self {
        fn key(object: &Value) -> [Option<&str>; 2] {
            ["/metadata/name", "/metadata/namespace"]
                .map(|pointer| object.pointer(pointer).and_then(Value::as_str))
        }
        objects.sort_by(|a, b| key(a).cmp(&key(b)));
        Self::All(objects)
    }
}

/// The answers that the host holds for one TrainJob. As JSON, a list of pairs in the order of the keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(
    from = "Vec<(LookupKey, LookupAnswer)>",
    into = "Vec<(LookupKey, LookupAnswer)>"
)]
pub struct Lookups(BTreeMap<LookupKey, LookupAnswer>);

impl From<Vec<(LookupKey, LookupAnswer)>> for Lookups {
    fn from(answers: Vec<(LookupKey, LookupAnswer)>) -> Self {
        Self(answers.into_iter().collect())
    }
}

impl From<Lookups> for Vec<(LookupKey, LookupAnswer)> {
    fn from(lookups: Lookups) -> Self {
        lookups.0.into_iter().collect()
    }
}

impl Lookups {
    /// The answer, if the host holds it.
    #[must_use]
    pub fn get(&self, key: &LookupKey) -> Option<&LookupAnswer> {
        self.0.get(key)
    }

    /// Adds an answer.
    pub fn insert(&mut self, key: LookupKey, answer: LookupAnswer) {
        self.0.insert(key, answer);
    }

    /// How many answers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no answer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All keys that were ever asked for and answered.
    pub fn keys(&self) -> impl Iterator<Item = &LookupKey> {
        self.0.keys()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_come_by_name_wherever_they_were_held() {
        let object = |name: &str, namespace: Option<&str>| {
            let mut object = json!({"metadata": {"name": name}});
            if let (Some(namespace), Some(metadata)) = (namespace, object.pointer_mut("/metadata"))
            {
                metadata["namespace"] = namespace.into();
            }
            Arc::new(object)
        };
        // Offline a file may leave the namespace out: that says nothing of its place.
        let names = [
            ("c", None),
            ("b", Some("ml")),
            ("a", None),
            ("b", Some("eu")),
        ];
        let answer = LookupAnswer::all(names.map(|(name, of)| object(name, of)).into());
        let LookupAnswer::All(objects) = answer else {
            unreachable!("it answers with a list");
        };
        let sorted = [
            ("a", None),
            ("b", Some("eu")),
            ("b", Some("ml")),
            ("c", None),
        ];
        assert_eq!(objects, sorted.map(|(name, of)| object(name, of)));
    }
}
