//! What is kept of a TrainJob, a JobSet and a runtime, and how they come in.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use kube::api::ObjectMeta;
use kube::core::{ClusterResourceScope, NamespaceResourceScope};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use trainyard_api::names;

use crate::queue::Key;
use crate::reconcile::{Snapshot, Wishes};

use super::store::State;
use super::stream::Watched;

/// A runtime of either kind; no namespace for one of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuntimeKey {
    /// The namespace.
    pub namespace: Option<Arc<str>>,
    /// The name.
    pub name: Arc<str>,
}

/// The counts of a replicated job, as `status.jobsStatus` of a TrainJob and `status.replicatedJobsStatus` of a JobSet have them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobCounts {
    /// The replicated job.
    pub name: String,
    /// Jobs whose pods are ready.
    pub ready: i64,
    /// Jobs that succeeded.
    pub succeeded: i64,
    /// Jobs that failed.
    pub failed: i64,
    /// Jobs with active pods.
    pub active: i64,
    /// Jobs that are suspended.
    pub suspended: i64,
}

/// What this controller writes of a TrainJob's status; what others write there is left alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TrainJobStatus {
    /// Conditions of all types.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The counts of each replicated job.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs_status: Vec<JobCounts>,
}

impl TrainJobStatus {
    /// The condition of a type where its status is `True`.
    pub fn is_true(&self, kind: &str) -> Option<&Condition> {
        let mut conditions = self.conditions.iter();
        conditions.find(|condition| condition.type_ == kind && condition.status == "True")
    }
}

/// What is kept of a TrainJob.
#[derive(Clone, Debug)]
pub struct TrainJobState {
    /// `metadata.uid`.
    pub uid: Box<str>,
    version: u64,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// Its status.
    pub status: TrainJobStatus,
    /// What it says of itself, so that the text is read only where something is made of it.
    pub(crate) wishes: Wishes,
    /// Kind, metadata and spec as JSON text: a tree of values takes ten times as much.
    object: Box<str>,
}

impl State for TrainJobState {
    fn version(&self) -> u64 {
        self.version
    }
}

impl TrainJobState {
    /// The object without its status and what only the API server needs.
    ///
    /// # Errors
    /// None in fact: the text was written from a value.
    pub fn object(&self) -> serde_json::Result<Value> {
        serde_json::from_str(&self.object)
    }

    /// A number that differs where the object differs in what it is rendered from.
    pub fn fingerprint(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.object.hash(&mut hasher);
        hasher.finish()
    }

    /// `metadata.resourceVersion`.
    pub fn resource_version(&self) -> String {
        self.version.to_string()
    }
}

/// What is kept of a JobSet.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSetState {
    /// `metadata.uid`.
    pub uid: Box<str>,
    version: u64,
    /// The UID of its controlling owner.
    pub owner: Option<Box<str>>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// `spec.suspend`.
    pub suspended: bool,
    /// Its end, where it has one: the condition `Completed` or `Failed`.
    pub end: Option<Box<Condition>>,
    /// The counts of each replicated job, by name.
    pub jobs: Box<[JobCounts]>,
}

impl State for JobSetState {
    fn version(&self) -> u64 {
        self.version
    }
}

impl JobSetState {
    /// `metadata.resourceVersion`.
    pub fn resource_version(&self) -> String {
        self.version.to_string()
    }

    /// Whether pods of it run or are about to end.
    pub fn is_active(&self) -> bool {
        self.jobs.iter().any(|job| job.active > 0)
    }
}

/// A runtime, as a whole: there are few.
#[derive(Debug)]
pub struct RuntimeState {
    version: u64,
    /// The object without what only the API server needs.
    object: Value,
    snapshot: OnceLock<Result<Snapshot, String>>,
}

impl RuntimeState {
    /// The snapshot of it that a TrainJob which comes now gets.
    ///
    /// # Errors
    /// What is wrong with the runtime.
    pub fn snapshot(&self) -> Result<Snapshot, String> {
        let read = || Snapshot::new(self.object.clone());
        self.snapshot.get_or_init(read).clone()
    }
}

impl State for RuntimeState {
    fn version(&self) -> u64 {
        self.version
    }
}

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

#[cfg(test)]
impl JobSetState {
    /// One with this end and these counts.
    pub(crate) fn for_tests(end: Option<Box<Condition>>, jobs: Box<[JobCounts]>) -> Self {
        Self {
            uid: "u".into(),
            version: 1,
            owner: None,
            deleting: false,
            suspended: false,
            end,
            jobs,
        }
    }
}
