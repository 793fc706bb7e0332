//! TrainJobs, JobSets and runtimes as the API server sends them, and how they come in.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::ObjectMeta;
use kube::core::{ClusterResourceScope, NamespaceResourceScope};
use serde::Deserialize;
use serde_json::{Value, json};
use trainyard_api::names;

use crate::queue::Key;
use crate::reconcile::Wishes;

use super::states::{
    JobCounts, JobSetState, RuntimeKey, RuntimeState, TrainJobState, TrainJobStatus,
};
use super::stream::Watched;

/// A TrainJob as the API server sends it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct TrainJobObject {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: TrainJobStatus,
}

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
struct JobSetSpec {
    #[serde(default)]
    suspend: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JobSetStatus {
    conditions: Vec<Condition>,
    replicated_jobs_status: Vec<JobCounts>,
}

/// A TrainingRuntime as the API server sends it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RuntimeObject {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
}

/// A ClusterTrainingRuntime as the API server sends it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ClusterRuntimeObject {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
}

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

/// What to do where there are no kinds of the trainer's.
const INSTALL_OURS: &str = "apply the CRDs of deploy/crds, which `trainyard crds` prints too";

/// All but the copy of the whole object that `kubectl apply` leaves there.
fn annotations(found: Option<BTreeMap<String, String>>) -> BTreeMap<String, String> {
    let mut annotations = found.unwrap_or_default();
    annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    annotations
}

fn version(metadata: &ObjectMeta) -> Option<u64> {
    metadata.resource_version.as_deref()?.parse().ok()
}

fn key(metadata: &ObjectMeta) -> Option<Key> {
    Some(Key::new(
        metadata.namespace.as_deref()?,
        metadata.name.as_deref()?,
    ))
}

impl Watched for TrainJobObject {
    type Key = Key;
    type State = TrainJobState;
    const INSTALL: &'static str = INSTALL_OURS;

    fn slim(self) -> Option<(Key, TrainJobState)> {
        let key = key(&self.metadata)?;
        let version = version(&self.metadata)?;
        let created = self.metadata.creation_timestamp.as_ref()?.0;
        let object = json!({
            "apiVersion": names::TRAINER_API_VERSION,
            "kind": names::TRAIN_JOB,
            "metadata": {
                "name": self.metadata.name,
                "namespace": self.metadata.namespace,
                "uid": self.metadata.uid,
                "labels": self.metadata.labels.unwrap_or_default(),
                "annotations": annotations(self.metadata.annotations),
            },
            "spec": self.spec,
        });
        let state = TrainJobState {
            uid: self.metadata.uid?.into(),
            version,
            created,
            deleting: self.metadata.deletion_timestamp.is_some(),
            status: self.status,
            wishes: Wishes::of(&object),
            object: object.to_string().into(),
        };
        Some((key, state))
    }
}

impl Watched for JobSetObject {
    type Key = Key;
    type State = JobSetState;
    const INSTALL: &'static str =
        "install JobSet v0.12 or newer, as https://jobset.sigs.k8s.io says";

    fn slim(self) -> Option<(Key, JobSetState)> {
        let key = key(&self.metadata)?;
        let version = version(&self.metadata)?;
        let is_end = |condition: &Condition| {
            matches!(condition.type_.as_str(), "Completed" | "Failed") && condition.status == "True"
        };
        let mut jobs = self.status.replicated_jobs_status;
        // JobSet builds the list from a map: its order says nothing.
        jobs.sort();
        let owner =
            |owners: Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference>| {
                let mut owners = owners.into_iter();
                owners
                    .find(|owner| owner.controller == Some(true))
                    .map(|owner| owner.uid.into())
            };
        let state = JobSetState {
            uid: self.metadata.uid?.into(),
            version,
            owner: self.metadata.owner_references.and_then(owner),
            deleting: self.metadata.deletion_timestamp.is_some(),
            suspended: self.spec.suspend,
            end: self
                .status
                .conditions
                .into_iter()
                .find(is_end)
                .map(Box::new),
            jobs: jobs.into(),
        };
        Some((key, state))
    }
}

impl Watched for RuntimeObject {
    type Key = RuntimeKey;
    type State = RuntimeState;
    const INSTALL: &'static str = INSTALL_OURS;

    fn slim(self) -> Option<(RuntimeKey, RuntimeState)> {
        runtime(names::TRAINING_RUNTIME, self.metadata, self.spec)
    }
}

impl Watched for ClusterRuntimeObject {
    type Key = RuntimeKey;
    type State = RuntimeState;
    const INSTALL: &'static str = INSTALL_OURS;

    fn slim(self) -> Option<(RuntimeKey, RuntimeState)> {
        runtime(names::CLUSTER_TRAINING_RUNTIME, self.metadata, self.spec)
    }
}

fn runtime(
    kind: &str,
    mut metadata: ObjectMeta,
    spec: Value,
) -> Option<(RuntimeKey, RuntimeState)> {
    let key = RuntimeKey {
        namespace: metadata.namespace.as_deref().map(Into::into),
        name: metadata.name.as_deref()?.into(),
    };
    let version = version(&metadata)?;
    metadata.managed_fields = None;
    metadata.annotations = metadata.annotations.map(|found| annotations(Some(found)));
    let object = json!({
        "apiVersion": names::TRAINER_API_VERSION,
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    });
    let state = RuntimeState {
        version,
        object,
        snapshot: OnceLock::new(),
    };
    Some((key, state))
}
