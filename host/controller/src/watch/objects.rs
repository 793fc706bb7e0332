//! TrainJobs, JobSets and runtimes as the API server sends them, and how they are decoded.

use std::{borrow::Cow, collections::BTreeMap, hash::Hash};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, OwnerReference};
use kube::{
    Resource,
    api::ObjectMeta,
    core::{ClusterResourceScope, NamespaceResourceScope},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::json;
use trainyard_api::names;
use trainyard_model::text::clean;

use super::{
    desired::DesiredState,
    spec::Spec,
    state::{Namespaced, State},
    states::{JobCounts, JobSetState, RuntimeKey, RuntimeState, TrainJobState, TrainJobStatus},
    store::{Read, UnreadableObject},
};
use crate::{
    annotations::{INPUTS, RECREATED, SNAPSHOT},
    queue::NamespacedName,
    wire::{self, Identity, Undecodable},
};

/// An object as the API server sends it, and the state that is kept of it.
pub trait WatchedObject: Resource<DynamicType = ()> + Send + Sync + 'static {
    /// Its key in a store.
    type Key: Eq + Hash + Clone + Namespaced + Send + Sync + 'static;
    /// The state that is kept.
    type State: State + Send + Sync + 'static;
    /// What to do if the kind is not served.
    const INSTALL: &'static str;

    /// Returns the key of an object; `None` if such an object cannot exist.
    fn key(namespace: Option<&str>, name: &str) -> Option<Self::Key>;
}

/// Decodes the state that is kept of an object.
pub(crate) trait Decode: WatchedObject {
    /// Decodes an object of that version, without its managed fields.
    fn decode(object: &str, version: u64) -> Result<Self::State, Undecodable>;
}

/// An object with its key.
pub(crate) type Keyed<W> = (<W as WatchedObject>::Key, Read<<W as WatchedObject>::State>);

/// Reads an object. An object that cannot be decoded is still known by its name.
///
/// # Errors
/// Its name and version cannot be decoded. No API server sends such an object.
pub(crate) fn read<W: Decode>(object: &str) -> Result<Keyed<W>, Undecodable> {
    let object = wire::without_managed_fields(object);
    let missing = |field: &str| Undecodable::Field(field.to_owned());
    let identity = Identity::of(&object).ok_or_else(|| missing("metadata"))?;
    let name = identity.name.as_deref().unwrap_or_default();
    let key = W::key(identity.namespace.as_deref(), name);
    let key = key.ok_or_else(|| missing("metadata.namespace"))?;
    let version = identity.resource_version.as_deref();
    let version = version.and_then(|version| version.parse().ok());
    let version = version.ok_or_else(|| missing("metadata.resourceVersion"))?;
    let read = W::decode(&object, version).map_err(|why| UnreadableObject {
        version,
        uid: identity.uid.unwrap_or_default().into(),
        why: why.to_string().into(),
    });
    Ok((key, read))
}

/// A TrainJob as the API server sends it, without its spec: see [`Spec`].
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct TrainJobObject {
    metadata: ObjectMeta,
    #[serde(default)]
    status: TrainJobStatus,
}

/// The most counts in the status of a TrainJob. A JobSet's status may have more, with which the whole status of the TrainJob would be
/// invalid.
const MOST_COUNTS: usize = 100;

/// A JobSet as the API server sends it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct JobSetObject {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: JobSetSpec,
    #[serde(default)]
    status: JobSetStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JobSetSpec {
    suspend: bool,
    ttl_seconds_after_finished: Option<IgnoredAny>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JobSetStatus {
    conditions: Vec<Condition>,
    replicated_jobs_status: Vec<JobCounts>,
}

/// A TrainingRuntime as the API server sends it, without its spec.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RuntimeObject {
    metadata: ObjectMeta,
}

/// A ClusterTrainingRuntime as the API server sends it, without its spec.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ClusterRuntimeObject {
    metadata: ObjectMeta,
}

/// Implements [`Resource`] for the form in which the API server sends a kind.
macro_rules! resource {
    ($type:ty, $scope:ty, $kind:expr, $group:expr, $version:expr, $plural:expr) => {
        impl kube::Resource for $type {
            type DynamicType = ();
            type Scope = $scope;

            fn kind(&(): &()) -> Cow<'_, str> {
                $kind.into()
            }

            fn group(&(): &()) -> Cow<'_, str> {
                $group.into()
            }

            fn version(&(): &()) -> Cow<'_, str> {
                $version.into()
            }

            fn plural(&(): &()) -> Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

pub(crate) use resource;

resource!(
    TrainJobObject,
    NamespaceResourceScope,
    names::TRAIN_JOB,
    names::TRAINER_GROUP,
    "v1alpha1",
    "trainjobs"
);
resource!(
    JobSetObject,
    NamespaceResourceScope,
    names::JOB_SET,
    names::JOB_SET_GROUP,
    "v1alpha2",
    "jobsets"
);
resource!(
    RuntimeObject,
    NamespaceResourceScope,
    names::TRAINING_RUNTIME,
    names::TRAINER_GROUP,
    "v1alpha1",
    "trainingruntimes"
);
resource!(
    ClusterRuntimeObject,
    ClusterResourceScope,
    names::CLUSTER_TRAINING_RUNTIME,
    names::TRAINER_GROUP,
    "v1alpha1",
    "clustertrainingruntimes"
);

/// What to do if the trainer's kinds are not served.
const INSTALL_OURS: &str = "apply the CRDs, which `trainyard crds` prints";

/// Returns the annotations without the copy of the whole object by `kubectl apply`.
fn annotations(found: Option<BTreeMap<String, String>>) -> BTreeMap<String, String> {
    let mut annotations = found.unwrap_or_default();
    annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    annotations
}

/// The most bytes that are kept of a text that the API server does not bound, such as an annotation of the controller or the UID of an
/// owner. Those of the controller and of API servers are shorter, so a longer one still differs when it is cut.
const LONGEST_TEXT: usize = 512;

fn short(mut text: String) -> Box<str> {
    text.truncate(text.floor_char_boundary(LONGEST_TEXT));
    text.into()
}

fn key(namespace: Option<&str>, name: &str) -> Option<NamespacedName> {
    namespace.map(|namespace| NamespacedName::new(namespace, name))
}

fn uid(metadata: &mut ObjectMeta) -> Result<Box<str>, Undecodable> {
    let uid = metadata.uid.take().map(Into::into);
    uid.ok_or_else(|| Undecodable::Field("metadata.uid".to_owned()))
}

impl WatchedObject for TrainJobObject {
    type Key = NamespacedName;
    type State = TrainJobState;
    const INSTALL: &'static str = INSTALL_OURS;

    fn key(namespace: Option<&str>, name: &str) -> Option<NamespacedName> {
        key(namespace, name)
    }
}

impl Decode for TrainJobObject {
    fn decode(object: &str, version: u64) -> Result<TrainJobState, Undecodable> {
        let Self {
            mut metadata,
            status,
        } = wire::decode(object)?;
        let uid = uid(&mut metadata)?;
        let created = metadata.creation_timestamp.as_ref();
        let created =
            created.ok_or_else(|| Undecodable::Field("metadata.creationTimestamp".to_owned()))?;
        let created = created.0;
        let spec = Spec::of(object)?;
        let mut annotations = annotations(metadata.annotations);
        // The controller's own annotation is not an input of the rendering.
        let error = annotations.remove(names::ERROR_ANNOTATION).map(short);
        let object = json!({
            "apiVersion": names::TRAINER_API_VERSION,
            "kind": names::TRAIN_JOB,
            "metadata": {
                "name": metadata.name,
                "namespace": metadata.namespace,
                "uid": uid,
                "labels": metadata.labels.unwrap_or_default(),
                "annotations": annotations,
            },
            "spec": spec.members,
        });
        // Suspending, ending and deleting work even if other members cannot be decoded.
        let desired = DesiredState::of(&object);
        Ok(TrainJobState {
            uid,
            version,
            created,
            deleting: metadata.deletion_timestamp.is_some(),
            status,
            error,
            desired,
            object: match spec.problem {
                None => Ok(object.to_string().into()),
                Some(problem) => Err(problem.to_string().into()),
            },
        })
    }
}

impl WatchedObject for JobSetObject {
    type Key = NamespacedName;
    type State = JobSetState;
    const INSTALL: &'static str = "install JobSet v0.12 or newer (https://jobset.sigs.k8s.io)";

    fn key(namespace: Option<&str>, name: &str) -> Option<NamespacedName> {
        key(namespace, name)
    }
}

impl Decode for JobSetObject {
    fn decode(object: &str, version: u64) -> Result<JobSetState, Undecodable> {
        let Self {
            mut metadata,
            spec,
            status,
        } = wire::decode(object)?;
        let is_end = |condition: &Condition| {
            matches!(condition.type_.as_str(), "Completed" | "Failed") && condition.status == "True"
        };
        let mut jobs = status.replicated_jobs_status;
        if jobs.len() > MOST_COUNTS {
            // JobSet builds the list from a map, so its order is arbitrary. The same counts are kept each time.
            jobs.sort();
            jobs.truncate(MOST_COUNTS);
        }
        let owner = |owners: Vec<OwnerReference>| {
            let mut owners = owners.into_iter();
            owners
                .find(|owner| owner.controller == Some(true))
                .map(|owner| short(owner.uid))
        };
        let uid = uid(&mut metadata)?;
        let mut annotations = metadata.annotations.unwrap_or_default();
        let finalizers = metadata.finalizers.unwrap_or_default();
        let finalizers = metadata.deletion_timestamp.as_ref().map(|_| finalizers);
        Ok(JobSetState {
            uid,
            version,
            created: metadata.creation_timestamp.map(|time| time.0),
            owner: metadata.owner_references.and_then(owner),
            deleting: finalizers.is_some(),
            finalizers: short(clean(&finalizers.unwrap_or_default().join(", "))),
            suspended: spec.suspend,
            expires: spec.ttl_seconds_after_finished.is_some(),
            inputs: annotations.remove(INPUTS).map(short),
            recreated: annotations.contains_key(RECREATED),
            snapshot: annotations.remove(SNAPSHOT).map(short),
            plugins: annotations
                .remove(names::RENDERED_WITH_ANNOTATION)
                .map(short),
            end: status.conditions.into_iter().find(is_end).map(Box::new),
            jobs: jobs.into(),
        })
    }
}

impl WatchedObject for RuntimeObject {
    type Key = RuntimeKey;
    type State = RuntimeState;
    const INSTALL: &'static str = INSTALL_OURS;

    fn key(namespace: Option<&str>, name: &str) -> Option<RuntimeKey> {
        Some(runtime_key(namespace, name))
    }
}

impl Decode for RuntimeObject {
    fn decode(object: &str, version: u64) -> Result<RuntimeState, Undecodable> {
        let Self { metadata } = wire::decode(object)?;
        runtime(names::TRAINING_RUNTIME, metadata, object, version)
    }
}

impl WatchedObject for ClusterRuntimeObject {
    type Key = RuntimeKey;
    type State = RuntimeState;
    const INSTALL: &'static str = INSTALL_OURS;

    fn key(namespace: Option<&str>, name: &str) -> Option<RuntimeKey> {
        Some(runtime_key(namespace, name))
    }
}

impl Decode for ClusterRuntimeObject {
    fn decode(object: &str, version: u64) -> Result<RuntimeState, Undecodable> {
        let Self { metadata } = wire::decode(object)?;
        runtime(names::CLUSTER_TRAINING_RUNTIME, metadata, object, version)
    }
}

fn runtime_key(namespace: Option<&str>, name: &str) -> RuntimeKey {
    RuntimeKey {
        namespace: namespace.map(Into::into),
        name: name.into(),
    }
}

/// The most bytes of a runtime, without its managed fields. A larger one has no room in the ConfigMap of a snapshot.
const LARGEST_RUNTIME: usize = 1 << 20;

fn too_large(bytes: usize) -> String {
    format!(
        "has {bytes} bytes, but at most {LARGEST_RUNTIME} fit in the snapshot of a TrainJob; move long scripts and lists into the image or a ConfigMap"
    )
}

fn runtime(
    kind: &str,
    mut metadata: ObjectMeta,
    object: &str,
    version: u64,
) -> Result<RuntimeState, Undecodable> {
    metadata.managed_fields = None;
    metadata.annotations = metadata.annotations.map(|found| annotations(Some(found)));
    let text = Spec::of(object)?.whole().map(|spec| {
        let object = json!({
            "apiVersion": names::TRAINER_API_VERSION,
            "kind": kind,
            "metadata": metadata,
            "spec": spec,
        });
        object.to_string()
    });
    let object = match text {
        Ok(text) if text.len() > LARGEST_RUNTIME => Err(too_large(text.len()).into()),
        Ok(text) => Ok(text.into()),
        Err(problem) => Err(problem.to_string().into()),
    };
    Ok(RuntimeState { version, object })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn job_sets_with_a_time_to_live_expire() {
        for (spec, expires) in [
            (json!({}), false),
            (json!({"ttlSecondsAfterFinished": null}), false),
            (json!({"ttlSecondsAfterFinished": 0}), true),
            (json!({"ttlSecondsAfterFinished": 60}), true),
        ] {
            let object = json!({"metadata": {"name": "a", "uid": "b"}, "spec": spec});
            let state = JobSetObject::decode(&object.to_string(), 1).unwrap();
            assert_eq!(state.expires, expires, "{spec}");
        }
    }
}
