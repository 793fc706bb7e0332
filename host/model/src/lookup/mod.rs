//! Objects of the cluster that plugins look up.

mod kept;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::kept::Reads;
use self::kept::StoredAnswer;
pub(crate) use self::kept::is_known;
use crate::{
    names::{NO_KIND, is_api_version, is_kind},
    object::DataKind,
    record::Field,
    reserved::is_runtime_snapshot,
};

/// A lookup of a plugin. Replay needs the lookups of a TrainJob, and the controller watches their objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum LookupKey {
    /// One object by name.
    Object(ObjectKey),
    /// One object by name, which may not exist.
    Optional(ObjectKey),
    /// One object by name in the catalog, which may not exist.
    Catalog(ObjectKey),
    /// All objects of a kind.
    All {
        /// The API version, such as `v1` or `resource.k8s.io/v1`.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// Whether a kind is served.
    Served {
        /// The API version, such as `v1` or `resource.k8s.io/v1`.
        api_version: String,
        /// The kind.
        kind: String,
    },
}

/// An object that is looked up by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectKey {
    /// The API version, such as `v1` or `resource.k8s.io/v1`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// `metadata.name`.
    pub name: String,
}

impl ObjectKey {
    /// Returns the key of an object.
    pub fn new(
        api_version: impl Into<String>,
        kind: impl Into<String>,
        name: impl Into<String>,
    ) -> Self {
        Self {
            api_version: api_version.into(),
            kind: kind.into(),
            name: name.into(),
        }
    }
}

impl LookupKey {
    /// The object that it looks up by name; `None` for lookups of a kind.
    #[must_use]
    pub const fn object(&self) -> Option<&ObjectKey> {
        match self {
            Self::Object(object) | Self::Optional(object) | Self::Catalog(object) => Some(object),
            Self::All { .. } | Self::Served { .. } => None,
        }
    }

    /// The namespace of its objects: that of the catalog, if there is one, or that of the TrainJob.
    pub fn namespace<N>(&self, of_job: N, catalog: Option<N>) -> Option<N> {
        match self {
            Self::Catalog(_) => catalog,
            _ => Some(of_job),
        }
    }

    /// The API version and kind.
    #[must_use]
    pub fn api_version_and_kind(&self) -> (&str, &str) {
        match self {
            Self::Object(object) | Self::Optional(object) | Self::Catalog(object) => {
                (&object.api_version, &object.kind)
            }
            Self::All { api_version, kind } | Self::Served { api_version, kind } => {
                (api_version, kind)
            }
        }
    }

    /// The field of the claims on it.
    #[must_use]
    pub const fn field(&self) -> Field {
        match self {
            Self::Catalog(_) => Field::Catalog,
            _ => Field::Lookups,
        }
    }

    /// The answer if the object does not exist; `None` if the TrainJob has to wait for it.
    #[must_use]
    pub const fn answer_without_object(&self) -> Option<LookupAnswer> {
        match self {
            Self::Optional(_) | Self::Catalog(_) => Some(LookupAnswer::Absent),
            _ => None,
        }
    }

    /// Why no plugin can make this lookup, even with a claim and a grant.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let (api_version, kind) = self.api_version_and_kind();
        if !is_api_version(api_version) || !is_kind(kind) {
            return Some(NO_KIND);
        }
        if DataKind::meant(api_version, kind) == Some(DataKind::Secret) {
            return Some("plugins cannot look up Secrets");
        }
        if DataKind::is_misspelled(api_version, kind) {
            return Some(NO_KIND);
        }
        let name = &self.object()?.name;
        if !is_object_name(name) {
            return Some("the name is not a valid object name");
        }
        is_runtime_snapshot(api_version, kind, name)
            .then_some("plugins cannot look up runtime snapshots of TrainJobs")
    }
}

/// Whether the text is valid as a path segment of the API server. `*` and `#` have another meaning in a claim.
fn is_object_name(text: &str) -> bool {
    (1..=253).contains(&text.len())
        && !matches!(text, "." | "..")
        && text
            .bytes()
            .all(|b| b.is_ascii_graphic() && !matches!(b, b'/' | b'%' | b'*' | b'#'))
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            api_version,
            kind,
            name,
        } = self;
        write!(f, "{kind} `{name}` ({api_version})")
    }
}

impl fmt::Display for LookupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(object) | Self::Optional(object) => object.fmt(f),
            Self::Catalog(object) => write!(f, "{object} in the catalog"),
            Self::All { api_version, kind } => write!(f, "the list of {kind} ({api_version})"),
            Self::Served { api_version, kind } => {
                write!(f, "whether {kind} ({api_version}) is served")
            }
        }
    }
}

/// The TrainJob that a lookup is made for.
///
/// The results of a TrainJob are not visible to its own lookups. A snapshot contains the answers of lookups, so a list that contained the
/// snapshot would grow with every reconcile.
#[derive(Clone, Copy, Debug)]
pub struct Requester<'a> {
    /// `metadata.name`.
    pub name: &'a str,
    /// `metadata.uid`. `None` offline, if the file does not have one.
    pub uid: Option<&'a str>,
}

impl Requester<'_> {
    /// Whether the TrainJob's plugins can see an object: it is not a snapshot, and the TrainJob does not control it.
    #[must_use]
    pub fn may_see(&self, object: &Value) -> bool {
        let metadata = object.get("metadata");
        let name = metadata.map_or("", |metadata| text(metadata, "name"));
        if is_runtime_snapshot(text(object, "apiVersion"), text(object, "kind"), name) {
            return false;
        }
        let owners = metadata.and_then(|metadata| metadata.get("ownerReferences"));
        let mut owners = owners.and_then(Value::as_array).into_iter().flatten();
        let controls = |owner: &Value| owner.get("controller") == Some(&Value::Bool(true));
        // An object of an earlier TrainJob with this name will be garbage-collected.
        let is_this = |owner: &Value| {
            text(owner, "kind") == "TrainJob"
                && (text(owner, "name") == self.name
                    || self.uid.is_some_and(|uid| text(owner, "uid") == uid))
        };
        !owners.any(|owner| controls(owner) && is_this(owner))
    }
}

/// A string member; empty if it is absent.
fn text<'v>(object: &'v Value, name: &str) -> &'v str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The answer to a lookup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LookupAnswer {
    /// The object.
    Object(Arc<Value>),
    /// The kind is not served.
    NotServed,
    /// The object does not exist. Only for [`LookupKey::Optional`] and [`LookupKey::Catalog`].
    Absent,
    /// The objects by name, from [`Self::all`].
    #[non_exhaustive]
    All(Vec<Arc<Value>>),
    /// Whether the kind is served.
    Served(bool),
}

impl LookupAnswer {
    /// The objects of a kind that the TrainJob's plugins can see, sorted by name, then by namespace, so that the order does not depend on
    /// the host.
    #[must_use]
    pub fn all(mut objects: Vec<Arc<Value>>, asker: Requester<'_>) -> Self {
        objects.retain(|object| asker.may_see(object));
        fn key(object: &Value) -> [Option<&str>; 2] {
            ["name", "namespace"].map(|name| object.get("metadata")?.get(name)?.as_str())
        }
        objects.sort_by(|a, b| key(a).cmp(&key(b)));
        Self::All(objects)
    }
}

/// The answers for one TrainJob. Its JSON is a list of pairs in the order of the keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(
    from = "Vec<(LookupKey, StoredAnswer)>",
    into = "Vec<(LookupKey, StoredAnswer)>"
)]
pub struct Lookups(BTreeMap<LookupKey, StoredAnswer>);

impl From<Vec<(LookupKey, StoredAnswer)>> for Lookups {
    fn from(answers: Vec<(LookupKey, StoredAnswer)>) -> Self {
        Self(answers.into_iter().collect())
    }
}

impl From<Lookups> for Vec<(LookupKey, StoredAnswer)> {
    fn from(lookups: Lookups) -> Self {
        lookups.0.into_iter().collect()
    }
}

impl Lookups {
    /// The answer, or the stored part of it.
    #[must_use]
    pub fn get(&self, key: &LookupKey) -> Option<&LookupAnswer> {
        match self.0.get(key)? {
            StoredAnswer::Whole(answer) | StoredAnswer::Part { answer, .. } => Some(answer),
            StoredAnswer::Digest(_) => None,
        }
    }

    /// Returns the objects of a kind if it was listed, as far as they are stored.
    #[must_use]
    pub fn listed(&self, of_kind: &str) -> Option<&[Arc<Value>]> {
        let is_it =
            |key: &&LookupKey| matches!(key, LookupKey::All { kind, .. } if kind == of_kind);
        match self.get(self.keys().find(is_it)?)? {
            LookupAnswer::All(objects) => Some(objects),
            _ => None,
        }
    }

    /// The pointers whose values are available. `None` if the whole answer is.
    pub(crate) fn known(&self, key: &LookupKey) -> Option<&BTreeSet<String>> {
        match self.0.get(key)? {
            StoredAnswer::Part { pointers, .. } => Some(pointers),
            StoredAnswer::Whole(_) | StoredAnswer::Digest(_) => None,
        }
    }

    /// Adds an answer.
    pub fn insert(&mut self, key: LookupKey, answer: LookupAnswer) {
        self.0.insert(key, StoredAnswer::Whole(answer));
    }

    /// Whether only a digest is stored, so that the lookup has to be repeated.
    #[must_use]
    pub fn is_digest(&self, key: &LookupKey) -> bool {
        matches!(self.0.get(key), Some(StoredAnswer::Digest(_)))
    }

    /// Whether others, stored in the same way, have all digests of these.
    #[must_use]
    pub fn has_digests_of(&self, others: &Self) -> bool {
        let mut held = self.0.iter();
        held.all(|(key, held)| {
            !matches!(held, StoredAnswer::Digest(_)) || others.0.get(key) == Some(held)
        })
    }

    /// Returns what has to be stored to repeat calls that read no more than this: the parts that were read, or their digests if they are
    /// too large.
    #[must_use]
    pub fn keeping(&self, reads: &Reads) -> Self {
        self.keeping_up_to(reads, kept::MOST)
    }

    /// Returns the parts that were read, including large ones.
    #[must_use]
    pub fn keeping_all(&self, reads: &Reads) -> Self {
        self.keeping_up_to(reads, usize::MAX)
    }

    fn keeping_up_to(&self, reads: &Reads, most: usize) -> Self {
        let nothing = BTreeSet::new();
        let kept = |(key, held): (&LookupKey, &StoredAnswer)| {
            let pointers = reads.get(key).unwrap_or(&nothing);
            let held = match held {
                StoredAnswer::Whole(answer) => StoredAnswer::part(answer, pointers, most),
                StoredAnswer::Part { .. } | StoredAnswer::Digest(_) => held.clone(),
            };
            (key.clone(), held)
        };
        Self(self.0.iter().map(kept).collect())
    }

    /// The number of answers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no answer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All lookups that were answered.
    pub fn keys(&self) -> impl Iterator<Item = &LookupKey> {
        self.0.keys()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]

    use serde_json::json;

    use super::*;

    const ASKER: Requester<'static> = Requester {
        name: "job",
        uid: Some("1"),
    };

    #[test]
    fn answers_hide_snapshots_and_objects_of_the_train_job() {
        let owned = |kind: &str, name: &str, uid: &str| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "object", "ownerReferences": [
                    {"kind": kind, "name": name, "uid": uid, "controller": true},
                ]},
            })
        };
        let named = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
        let mut not_controlled = owned("TrainJob", "job", "1");
        not_controlled["metadata"]["ownerReferences"][0]["controller"] = json!(false);
        for (seen, object) in [
            (false, named("ConfigMap", "job-runtime-snapshot")),
            (false, named("ConfigMap", "another-runtime-snapshot")),
            (true, named("Service", "a-runtime-snapshot")),
            (true, named("ConfigMap", "job-runtime-snapshots")),
            (false, owned("TrainJob", "job", "1")),
            (false, owned("TrainJob", "job", "of an earlier one")),
            (true, owned("TrainJob", "another", "2")),
            (true, owned("Deployment", "job", "1")),
            (true, not_controlled),
        ] {
            assert_eq!(ASKER.may_see(&object), seen, "{object}");
            let all = LookupAnswer::all(vec![Arc::new(object.clone())], ASKER);
            let LookupAnswer::All(objects) = all else {
                unreachable!("it answers with a list");
            };
            assert_eq!(!objects.is_empty(), seen, "{object}");
        }
        let without_uid = Requester { uid: None, ..ASKER };
        assert!(!without_uid.may_see(&owned("TrainJob", "job", "1")));
        assert!(without_uid.may_see(&owned("TrainJob", "another", "1")));
    }

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
        // Offline a file may omit the namespace, so a missing one does not mean that the kind is cluster-scoped.
        let names = [
            ("c", None),
            ("b", Some("ml")),
            ("a", None),
            ("b", Some("eu")),
        ];
        let objects = names.map(|(name, of)| object(name, of)).into();
        let answer = LookupAnswer::all(objects, ASKER);
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
