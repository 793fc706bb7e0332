//! The content of an object for plugins, and the part of it whose changes count.

use std::sync::Arc;

use serde_json::{Map, Value};
use trainyard_api::{names, nulls::drop_nulls, yaml::memory_of};

use super::subject::{ObjectHashes, WatchedKind, hash};
use crate::{
    log_shares::{AllowedLine, LogShares},
    wire::{Identity, decode, without_managed_fields},
};

/// Members of `metadata` that only writers need. Plugins never get them.
const OF_THE_SERVER: [&str; 3] = ["managedFields", "resourceVersion", "generation"];

/// An object in the form that plugins get.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    identity: Arc<Identity>,
    /// The object; `None` if it cannot be decoded.
    pub(crate) value: Option<Arc<Value>>,
    /// A hash of the content whose changes trigger a reconcile.
    print: u64,
    /// The memory that it takes.
    pub(crate) size: usize,
}

impl Content {
    /// Reads an object of this kind; `None` if it has no metadata. In a list, items have no kind of their own.
    ///
    /// The status of a Node does not count: heartbeats, images and conditions would trigger endless renderings of TrainJobs that looked up
    /// nodes. Lookups are repeated when a TrainJob starts, so it gets the current status anyway.
    pub(crate) fn of(text: &str, kind: &WatchedKind, log: &LogShares) -> Option<Self> {
        let identity = Identity::of(text)?;
        let members: Result<Map<String, Value>, _> = decode(&without_managed_fields(text));
        let members = members.inspect_err(|why| {
            let (namespace, name) = (&identity.namespace, &identity.name);
            if let Some(AllowedLine { left_out }) = log.allow(namespace.as_deref().unwrap_or_default()) {
                tracing::warn!(?namespace, ?name, kind = &*kind.kind, %why, left_out, "an object cannot be decoded, and plugins do not get it");
            }
        });
        let (print, value) = match members {
            Ok(members) => {
                let (print, members) = plain(members, kind);
                (print, Some(Arc::new(Value::Object(members))))
            }
            Err(_) => (hash(&identity.resource_version), None),
        };
        Some(Self {
            size: value.as_deref().map_or(0, memory_of),
            identity: Arc::new(identity),
            value,
            print,
        })
    }

    /// Returns its name and its hashes.
    pub(crate) fn hashes(&self) -> ObjectHashes<'_> {
        ObjectHashes {
            namespace: self.identity.namespace.as_deref(),
            name: self.identity.name.as_deref().unwrap_or_default(),
            content: self.print,
            version: hash(&self.identity.resource_version),
        }
    }
}

/// Returns how objects of a kind are read. Those that cannot be decoded are logged.
pub(crate) fn content_of(
    kind: &WatchedKind,
    log: Arc<LogShares>,
) -> impl Fn(&str) -> Option<Content> + Send + Sync + 'static + use<> {
    let kind = kind.clone();
    move |text| Content::of(text, &kind, &log)
}

/// Returns the members that plugins get, in the same order for single objects and for items of a list, and the hash of the content.
fn plain(mut members: Map<String, Value>, kind: &WatchedKind) -> (u64, Map<String, Value>) {
    // As those of files, which are read without nulls.
    members.retain(|_, value| !value.is_null());
    members.values_mut().for_each(drop_nulls);
    let mut plain = Map::new();
    plain.insert("apiVersion".to_owned(), (*kind.api_version).into());
    plain.insert("kind".to_owned(), (*kind.kind).into());
    if let Some(mut metadata) = members.shift_remove("metadata") {
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.retain(|member, _| !OF_THE_SERVER.contains(&member.as_str()));
            if &*kind.kind == names::TRAIN_JOB {
                without_error(metadata);
            }
        }
        plain.insert("metadata".to_owned(), metadata);
    }
    let is_node = (&*kind.api_version, &*kind.kind) == ("v1", "Node");
    let status = if is_node {
        members.shift_remove("status")
    } else {
        None
    };
    for (member, value) in members {
        plain.entry(member).or_insert(value);
    }
    let print = hash(&plain);
    plain.extend(status.map(|status| ("status".to_owned(), of_node(status))));
    (print, plain)
}

/// Removes the controller's own annotation: a plugin could answer each text of it with another error, which would be written again.
fn without_error(metadata: &mut Map<String, Value>) {
    let annotations = metadata.get_mut("annotations");
    let Some(annotations) = annotations.and_then(Value::as_object_mut) else {
        return;
    };
    // Without it, the object must be equal to the one before it was annotated.
    if annotations.shift_remove(names::ERROR_ANNOTATION).is_some() && annotations.is_empty() {
        metadata.shift_remove("annotations");
    }
}

/// Returns a Node's status without fields that change often or are large, and do not affect scheduling.
fn of_node(mut status: Value) -> Value {
    if let Some(status) = status.as_object_mut() {
        for member in ["images", "volumesAttached", "volumesInUse"] {
            status.remove(member);
        }
    }
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    let conditions = conditions.into_iter().flatten();
    for condition in conditions.filter_map(Value::as_object_mut) {
        condition.remove("lastHeartbeatTime");
    }
    status
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn content(object: &Value) -> Content {
        let kind = WatchedKind {
            api_version: object["apiVersion"].as_str().unwrap().into(),
            kind: object["kind"].as_str().unwrap().into(),
        };
        Content::of(&object.to_string(), &kind, &LogShares::default()).unwrap()
    }

    fn with(object: &Value, pointer: &str, value: Value) -> Value {
        let mut object = object.clone();
        *object.pointer_mut(pointer).unwrap() = value;
        object
    }

    fn object(kind: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": kind,
            "metadata": {
                "name": "n", "labels": {"a": "b"}, "resourceVersion": "1", "generation": 1,
                "managedFields": [{"manager": "kubelet"}],
            },
            "spec": {"taints": []},
            "status": {
                "allocatable": {"cpu": "8"}, "images": [{"names": ["large"]}],
                "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}],
            },
        })
    }

    #[test]
    fn plugins_get_no_nulls() {
        let claim = object("PersistentVolumeClaim");
        let spec = json!({"taints": [], "a": null});
        let with_nulls = content(&with(&claim, "/spec", spec));
        assert_eq!(with_nulls.value, content(&claim).value);
        let without = content(&with(&claim, "/status", Value::Null)).value;
        assert_eq!(without.unwrap().get("status"), None);
    }

    #[test]
    fn what_the_server_counts_is_no_change() {
        let claim = object("PersistentVolumeClaim");
        let print = content(&claim).print;
        for (pointer, value) in [
            ("/metadata/resourceVersion", json!("2")),
            ("/metadata/generation", json!(2)),
            ("/metadata/managedFields", json!([{"manager": "other"}])),
        ] {
            assert_eq!(
                content(&with(&claim, pointer, value)).print,
                print,
                "{pointer}"
            );
        }
        for (pointer, value) in [
            ("/metadata/labels", json!({"a": "c"})),
            ("/spec", json!({})),
            ("/status", json!({"phase": "Bound"})),
        ] {
            assert_ne!(
                content(&with(&claim, pointer, value)).print,
                print,
                "{pointer}"
            );
        }
    }

    #[test]
    fn the_status_of_a_node_is_there_and_is_no_change() {
        let node = object("Node");
        let print = content(&node).print;
        let beat = with(
            &node,
            "/status/conditions/0/lastHeartbeatTime",
            json!("2026-01-02T00:00:00Z"),
        );
        let full = with(&node, "/status/allocatable/cpu", json!("4"));
        for changed in [beat, full] {
            assert_eq!(content(&changed).print, print);
        }
        let taints = json!([{"key": "gone", "effect": "NoSchedule"}]);
        assert_ne!(content(&with(&node, "/spec/taints", taints)).print, print);
        let expected = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {"taints": []},
            "status": {"allocatable": {"cpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]},
        });
        assert_eq!(content(&node).value.as_deref(), Some(&expected));
    }

    #[test]
    fn plugins_do_not_get_the_error_of_a_train_job() {
        let job = |annotations: Option<Value>| {
            let mut metadata = json!({"name": "n"});
            if let Some(annotations) = annotations {
                metadata
                    .as_object_mut()
                    .unwrap()
                    .insert("annotations".to_owned(), annotations);
            }
            content(&json!({
                "apiVersion": names::TRAINER_API_VERSION, "kind": "TrainJob", "metadata": metadata,
            }))
        };
        for (with, without) in [
            (json!({(names::ERROR_ANNOTATION): "Refused: a"}), None),
            (
                json!({(names::ERROR_ANNOTATION): "Refused: a", "b": "c"}),
                Some(json!({"b": "c"})),
            ),
        ] {
            let (with, without) = (job(Some(with)), job(without));
            assert_eq!(with.value, without.value);
            assert_eq!(with.print, without.print);
        }
    }

    #[test]
    fn objects_have_the_same_text_in_lists_and_alone() {
        let kind = WatchedKind {
            api_version: "v1".into(),
            kind: "Node".into(),
        };
        let text = |text: &str| {
            let content = Content::of(text, &kind, &LogShares::default()).unwrap();
            content.value.unwrap().to_string()
        };
        let item = r#"{"metadata": {"name": "n"}, "status": {}, "spec": {}}"#;
        let whole = r#"{"spec": {}, "kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}, "status": {}}"#;
        assert_eq!(text(item), text(whole));
    }

    #[test]
    fn undecodable_objects_have_a_name_and_a_version() {
        let deep = |version: u32| {
            let (open, close) = ("[".repeat(300), "]".repeat(300));
            let metadata =
                format!(r#"{{"namespace": "ml", "name": "n", "resourceVersion": "{version}"}}"#);
            let text = format!(r#"{{"metadata": {metadata}, "spec": {open}{close}}}"#);
            let kind = WatchedKind {
                api_version: "v1".into(),
                kind: "PersistentVolumeClaim".into(),
            };
            Content::of(&text, &kind, &LogShares::default()).unwrap()
        };
        let (first, second) = (deep(1), deep(2));
        assert!(first.value.is_none());
        assert_eq!(
            (first.hashes().namespace, first.hashes().name),
            (Some("ml"), "n")
        );
        assert_eq!(first.print, deep(1).print);
        assert_ne!(first.print, second.print);
    }
}
