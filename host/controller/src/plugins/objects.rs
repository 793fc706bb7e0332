//! PolicyPlugins and PluginRevisions as the API server sends them, and what is kept of them.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use k8s_openapi::{api::core::v1::ObjectReference, jiff::Timestamp};
use kube::{api::ObjectMeta, core::ClusterResourceScope};
use serde::Deserialize;
use serde_json::{Value, json};
use trainyard_api::{Location, names::TRAINYARD_GROUP, nulls::drop_nulls};
use trainyard_config::policy_plugin::{
    API_VERSION, PLUGIN_REVISION, POLICY_PLUGIN, PluginRevisionSpec, PluginRevisionStatus,
    PolicyPlugin, PolicyPluginStatus, Replica, RevisionError, Stage,
};
use trainyard_model::text::clean;

use super::rollout::{Asked, RevisionFacts};
use crate::{
    watch::{Decode, Namespaced, State, WatchedObject, resource},
    wire::{self, Undecodable},
};

/// What to do if the kinds are not served.
const INSTALL: &str =
    "apply the CRDs, which `trainyard crds` prints, or set plugins.source to File";

/// The annotations by which people control a rollout. The last one also lets a paused plugin be called again.
const ACCEPT: &str = "trainyard.dev/accept";
const ROLL_BACK: &str = "trainyard.dev/roll-back";
const RETRY: &str = "trainyard.dev/retry";

/// The label of a revision that was created again after it had run and was deleted. Only the controller creates revisions, and nobody can change
/// the labels of one.
const HAS_RUN: &str = "trainyard.dev/has-run";

/// The name of a cluster-scoped object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    unreachable_pub,
    reason = "the trait of watched objects, whose type this is, is public"
)]
pub struct ObjectName(pub(crate) Arc<str>);

impl Namespaced for ObjectName {
    fn namespace(&self) -> Option<&Arc<str>> {
        None
    }
}

/// A PolicyPlugin as the API server sends it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PolicyPluginObject {
    metadata: ObjectMeta,
    #[serde(default)]
    status: Value,
}

/// A PluginRevision as the API server sends it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RevisionObject {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: Value,
}

resource!(
    PolicyPluginObject,
    ClusterResourceScope,
    POLICY_PLUGIN,
    TRAINYARD_GROUP,
    "v1alpha1",
    "policyplugins"
);
resource!(
    RevisionObject,
    ClusterResourceScope,
    PLUGIN_REVISION,
    TRAINYARD_GROUP,
    "v1alpha1",
    "pluginrevisions"
);

/// What is kept of a PolicyPlugin.
#[derive(Clone, Debug)]
#[expect(
    unreachable_pub,
    reason = "the trait of watched objects, whose type this is, is public"
)]
pub struct PolicyPluginState {
    version: u64,
    pub(crate) uid: Box<str>,
    /// `metadata.generation`, which changes with the spec and not with the status.
    pub(crate) generation: i64,
    /// The object, or what is wrong with it.
    pub(crate) object: Result<Arc<PolicyPlugin>, InvalidPolicy>,
    /// Its status, as far as it can be read.
    pub(crate) status: PolicyPluginStatus,
    /// The annotation by which people let a paused plugin be called again; `None` without it.
    retry: Option<Box<str>>,
}

/// A PolicyPlugin that is wrong.
#[derive(Clone, Debug)]
pub(crate) struct InvalidPolicy {
    /// What is wrong.
    pub(crate) problem: Box<str>,
    /// What it does in spite of that; `None` if it is not disabled.
    pub(crate) disabled: Option<Arc<PolicyPlugin>>,
}

impl State for PolicyPluginState {
    fn version(&self) -> u64 {
        self.version
    }
}

impl PolicyPluginState {
    /// Whether somebody has asked since that state to call a paused plugin again.
    pub(crate) fn asks_again(&self, before: &Self) -> bool {
        self.retry.is_some() && self.retry != before.retry
    }

    /// Whether the controller acts on nothing that differs in these states. It writes the status itself.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        (&self.uid, self.generation, &self.retry) == (&other.uid, other.generation, &other.retry)
    }

    /// Its version, as a write compares it.
    pub(crate) fn resource_version(&self) -> String {
        self.version.to_string()
    }

    /// Returns the reference to the object in Events.
    pub(crate) fn reference(&self, name: &str) -> ObjectReference {
        reference(POLICY_PLUGIN, name, &self.uid, self.version)
    }
}

impl WatchedObject for PolicyPluginObject {
    type Key = ObjectName;
    type State = PolicyPluginState;
    const INSTALL: &'static str = INSTALL;

    fn key(_: Option<&str>, name: &str) -> Option<ObjectName> {
        Some(ObjectName(name.into()))
    }
}

impl Decode for PolicyPluginObject {
    fn decode(object: &str, version: u64) -> Result<PolicyPluginState, Undecodable> {
        let Self { metadata, status } = wire::decode(object)?;
        let mut value: Value = wire::decode(object)?;
        // An API server keeps those of `config`. Files are read without them.
        drop_nulls(&mut value);
        // Lists omit both.
        if let Some(members) = value.as_object_mut() {
            members.insert("apiVersion".to_owned(), API_VERSION.into());
            members.insert("kind".to_owned(), POLICY_PLUGIN.into());
        }
        let at = Location::file(format!(
            "PolicyPlugin {}",
            metadata.name.as_deref().unwrap_or_default()
        ));
        let read = PolicyPlugin::decode(&value, at.clone());
        let invalid = |errors: Vec<trainyard_config::ConfigError>| {
            let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
            InvalidPolicy {
                problem: errors.join("; ").into(),
                disabled: PolicyPlugin::decode_disabled(&value, at).map(Arc::new),
            }
        };
        Ok(PolicyPluginState {
            version,
            uid: metadata.uid.unwrap_or_default().into(),
            generation: metadata.generation.unwrap_or_default(),
            object: read.map(Arc::new).map_err(invalid),
            status: serde_json::from_value(status).unwrap_or_default(),
            retry: set(metadata.annotations.as_ref(), RETRY).map(Into::into),
        })
    }
}

/// What is kept of a PluginRevision.
#[derive(Clone, Debug)]
#[expect(
    unreachable_pub,
    reason = "the trait of watched objects, whose type this is, is public"
)]
pub struct RevisionState {
    version: u64,
    pub(crate) uid: Box<str>,
    /// The plugins, or why they cannot be used.
    pub(crate) spec: Result<Arc<PluginRevisionSpec>, RevisionProblem>,
    /// The digest of the plugins; empty if they cannot be used.
    pub(crate) hash: Box<str>,
    /// The stage with all that is written with it; `None` before the first.
    pub(crate) status: Option<PluginRevisionStatus>,
    /// The replicas that have reported.
    pub(crate) replicas: Vec<Replica>,
    asked: Asked,
    /// Whether it had run before it was created.
    has_run: bool,
}

/// Why a PluginRevision cannot be used.
#[derive(Clone, Debug)]
pub(crate) struct RevisionProblem {
    /// Whether a later release may have written it, so that this one must not lead.
    pub(crate) is_newer: bool,
    /// The reason, with what to do.
    pub(crate) message: Arc<str>,
}

impl State for RevisionState {
    fn version(&self) -> u64 {
        self.version
    }
}

impl RevisionState {
    /// Its version, as a write compares it.
    pub(crate) fn resource_version(&self) -> String {
        self.version.to_string()
    }

    /// Returns the stage; `None` before the first.
    pub(crate) fn stage(&self) -> Option<Stage> {
        self.status.as_ref().map(|status| status.stage)
    }

    /// Returns what a rollout depends on; `None` if it cannot be used.
    pub(crate) fn facts(&self, name: &str) -> Option<RevisionFacts> {
        let spec = self.spec.as_ref().ok()?;
        let status = self.status.as_ref();
        Some(RevisionFacts {
            number: spec.number,
            name: name.to_owned(),
            hash: self.hash.to_string(),
            stage: self.stage(),
            percent: status.map_or(0, |status| status.percent),
            since: status.and_then(|status| status.since.as_ref()?.parse::<Timestamp>().ok()),
            reason: status.map_or_else(String::new, |status| status.reason.clone()),
            message: status.map_or_else(String::new, |status| status.message.clone()),
            asked: self.asked,
            has_run: self.has_run,
        })
    }

    /// Returns the reference to the object in Events.
    pub(crate) fn reference(&self, name: &str) -> ObjectReference {
        reference(PLUGIN_REVISION, name, &self.uid, self.version)
    }
}

impl WatchedObject for RevisionObject {
    type Key = ObjectName;
    type State = RevisionState;
    const INSTALL: &'static str = INSTALL;

    fn key(_: Option<&str>, name: &str) -> Option<ObjectName> {
        Some(ObjectName(name.into()))
    }
}

impl Decode for RevisionObject {
    fn decode(object: &str, version: u64) -> Result<RevisionState, Undecodable> {
        let Self {
            metadata,
            spec,
            mut status,
        } = wire::decode(object)?;
        let name = metadata.name.as_deref().unwrap_or_default();
        let members = status.as_object_mut();
        let replicas = members.and_then(|members| members.shift_remove("replicas"));
        let replicas = replicas.and_then(|replicas| serde_json::from_value(replicas).ok());
        // A replica may report before the leader writes a stage.
        let has_stage = status.get("stage").is_some();
        let status = has_stage.then(|| serde_json::from_value::<PluginRevisionStatus>(status));
        let (status, unreadable) = match status.transpose() {
            Ok(status) => (status, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let spec = PluginRevisionSpec::decode(name, &spec).map_err(|error| RevisionProblem {
            is_newer: matches!(
                error,
                RevisionError::NewerFormat { .. } | RevisionError::Unreadable { .. }
            ),
            message: error.to_string().into(),
        });
        let spec = match unreadable {
            Some(problem) if spec.is_ok() => Err(RevisionProblem {
                is_newer: true,
                message: format!(
                    "PluginRevision {}: status: {}; a later release may have written it, so upgrade this controller",
                    clean(name),
                    clean(&problem)
                )
                .into(),
            }),
            _ => spec,
        };
        Ok(RevisionState {
            version,
            uid: metadata.uid.unwrap_or_default().into(),
            hash: spec
                .as_ref()
                .map_or_else(|_| Box::default(), |spec| spec.hash().into()),
            spec: spec.map(Arc::new),
            status,
            replicas: replicas.unwrap_or_default(),
            asked: asked(metadata.annotations.as_ref()),
            has_run: metadata
                .labels
                .is_some_and(|labels| labels.contains_key(HAS_RUN)),
        })
    }
}

/// Returns the value of an annotation by which people ask for something, unless it is `false`.
fn set<'a>(annotations: Option<&'a BTreeMap<String, String>>, name: &str) -> Option<&'a str> {
    let value = annotations.and_then(|annotations| annotations.get(name))?;
    (value != "false").then_some(value)
}

fn asked(annotations: Option<&BTreeMap<String, String>>) -> Asked {
    let is_set = |name: &str| set(annotations, name).is_some();
    Asked {
        accept: is_set(ACCEPT),
        accept_failures: set(annotations, ACCEPT) == Some("failures"),
        roll_back: is_set(ROLL_BACK),
        retry: is_set(RETRY),
    }
}

fn reference(kind: &str, name: &str, uid: &str, version: u64) -> ObjectReference {
    ObjectReference {
        api_version: Some(API_VERSION.to_owned()),
        kind: Some(kind.to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        resource_version: Some(version.to_string()),
        ..ObjectReference::default()
    }
}

/// Returns the object that is created for a revision.
pub(crate) fn revision_object(spec: &PluginRevisionSpec, has_run: bool) -> Value {
    let mut metadata = json!({"name": spec.name()});
    if has_run && let Some(members) = metadata.as_object_mut() {
        members.insert("labels".to_owned(), json!({HAS_RUN: "true"}));
    }
    json!({
        "apiVersion": API_VERSION,
        "kind": PLUGIN_REVISION,
        "metadata": metadata,
        "spec": spec,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    /// `trainyard plan` reads them without nulls, so that the digest of the plan is that of the cluster.
    #[test]
    fn policy_plugins_are_read_without_nulls() {
        let config = json!({"any": null, "nested": {"a": null, "b": [{"c": null}, null]}});
        let object = json!({"metadata": {"name": "stamp"}, "spec": {"config": config}});
        let state = PolicyPluginObject::decode(&object.to_string(), 1).unwrap();
        let read = state.object.unwrap();
        let wanted = json!({"nested": {"b": [{}, null]}});
        assert_eq!(read.spec.config, Some(wanted));
    }

    #[test]
    fn annotations_ask_for_something_unless_they_are_false() {
        let asked = |annotations: Value| {
            let spec = PluginRevisionSpec::new(1, Vec::new());
            let mut object = revision_object(&spec, false);
            object["metadata"]["annotations"] = annotations;
            let state = RevisionObject::decode(&object.to_string(), 1).unwrap();
            state.facts(&spec.name()).unwrap().asked
        };
        for (value, accept, accept_failures) in [
            ("", true, false),
            ("true", true, false),
            ("failures", true, true),
            ("Failures", true, false),
            ("failures,removed", true, false),
            ("false", false, false),
        ] {
            let asked = asked(json!({ACCEPT: value}));
            let wanted = Asked {
                accept,
                accept_failures,
                ..Asked::default()
            };
            assert_eq!(asked, wanted, "{value}");
        }
        let both = asked(json!({ROLL_BACK: "", RETRY: "false"}));
        assert!(both.roll_back && !both.retry, "{both:?}");
        // Whatever else is written, it is not asked for.
        assert_eq!(
            asked(json!({ROLL_BACK: "false", "a/b": ""})),
            Asked::default()
        );
    }

    #[test]
    fn a_new_value_of_the_annotation_asks_for_another_call_unless_it_is_false() {
        let state = |retry: Option<&str>| {
            let annotations = retry.map(|value| json!({RETRY: value}));
            let object =
                json!({"metadata": {"name": "stamp", "annotations": annotations}, "spec": {}});
            PolicyPluginObject::decode(&object.to_string(), 1).unwrap()
        };
        for (before, after, asks) in [
            (None, Some("1"), true),
            (Some("1"), Some("1"), false),
            (Some("1"), Some("2"), true),
            (Some("1"), Some("false"), false),
            (Some("1"), None, false),
            (None, Some("false"), false),
            (Some("false"), Some("1"), true),
        ] {
            let asked = state(after).asks_again(&state(before));
            assert_eq!(asked, asks, "{before:?} {after:?}");
        }
    }
}
