//! The states that are kept of TrainJobs, JobSets and runtimes.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    desired::DesiredState,
    runtime::ReadRuntime,
    state::{Namespaced, State},
};
use crate::queue::NamespacedName;

/// The key of a runtime; a ClusterTrainingRuntime has no namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuntimeKey {
    /// The namespace.
    pub namespace: Option<Arc<str>>,
    /// The name.
    pub name: Arc<str>,
}

impl Namespaced for RuntimeKey {
    fn namespace(&self) -> Option<&Arc<str>> {
        self.namespace.as_ref()
    }
}

impl Namespaced for NamespacedName {
    fn namespace(&self) -> Option<&Arc<str>> {
        Some(&self.namespace)
    }
}

/// The counts of a replicated job, as `status.jobsStatus` of a TrainJob and `status.replicatedJobsStatus` of a JobSet have them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

/// The part of a TrainJob's status that this controller writes.
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

// `Condition` has no floats, but does not implement `Eq`.
impl Eq for TrainJobStatus {}

impl Hash for TrainJobStatus {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for condition in &self.conditions {
            hash_condition(condition, state);
        }
        self.jobs_status.hash(state);
    }
}

fn hash_condition(condition: &Condition, state: &mut impl Hasher) {
    (&condition.type_, &condition.status, &condition.reason).hash(state);
    (&condition.message, condition.last_transition_time.0).hash(state);
}

impl TrainJobStatus {
    /// Returns the condition of that type if its status is `True`.
    pub fn is_true(&self, kind: &str) -> Option<&Condition> {
        let mut conditions = self.conditions.iter();
        conditions.find(|condition| condition.type_ == kind && condition.status == "True")
    }
}

/// The state that is kept of a TrainJob.
#[derive(Clone, Debug)]
pub struct TrainJobState {
    /// `metadata.uid`.
    pub uid: Box<str>,
    pub(super) version: u64,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// Its status.
    pub status: TrainJobStatus,
    /// Its annotation about the last error.
    pub(crate) error: Option<Box<str>>,
    /// The parts of the spec that are needed without parsing the text.
    pub(crate) desired: DesiredState,
    /// Kind, metadata and spec as JSON text, which takes a tenth of the memory of a parsed value. An error if the spec cannot be decoded as
    /// a whole.
    pub(super) object: Result<Box<str>, Box<str>>,
}

impl State for TrainJobState {
    fn version(&self) -> u64 {
        self.version
    }

    fn text_bytes(&self) -> usize {
        self.object.as_deref().map_or(0, str::len)
    }

    fn leave_text_out(&mut self, why: String) {
        self.object = Err(why.into());
    }
}

impl TrainJobState {
    /// Returns the object without its status and server-side metadata.
    ///
    /// # Errors
    /// The part of the spec that cannot be decoded.
    pub fn object(&self) -> Result<Value, String> {
        let text = self.object.as_deref().map_err(ToString::to_string)?;
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// Returns kind, metadata and spec as JSON text, or the part that cannot be decoded.
    pub fn text(&self) -> &str {
        match &self.object {
            Ok(text) | Err(text) => text,
        }
    }

    /// Returns a hash of everything that the TrainJob is rendered from.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.object.hash(&mut hasher);
        hasher.finish()
    }

    /// `metadata.resourceVersion`.
    pub fn resource_version(&self) -> String {
        self.version.to_string()
    }

    /// Whether another state differs in the controller's own annotation, and in nothing else.
    pub(crate) fn differs_only_in_error(&self, other: &Self) -> bool {
        self.error != other.error && self.is_same_without_error(other)
    }

    /// Whether another state differs in its version, and in nothing else that is kept, such as after progress was written.
    pub(crate) fn differs_only_in_version(&self, other: &Self) -> bool {
        self.error == other.error && self.is_same_without_error(other)
    }

    fn is_same_without_error(&self, other: &Self) -> bool {
        let Self {
            uid,
            version: _,
            created,
            deleting,
            status,
            error: _,
            desired,
            object,
        } = self;
        (uid, created, deleting, status, desired, object)
            == (
                &other.uid,
                &other.created,
                &other.deleting,
                &other.status,
                &other.desired,
                &other.object,
            )
    }
}

/// The state that is kept of a JobSet.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSetState {
    /// `metadata.uid`.
    pub uid: Box<str>,
    pub(super) version: u64,
    /// `metadata.creationTimestamp`.
    pub(crate) created: Option<Timestamp>,
    /// The UID of its controlling owner.
    pub owner: Option<Box<str>>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// The finalizers that keep it although it was deleted.
    pub(crate) finalizers: Box<str>,
    /// `spec.suspend`.
    pub suspended: bool,
    /// Whether it is deleted some time after its end.
    pub(crate) expires: bool,
    /// The digest of its inputs, if it has one.
    pub(crate) inputs: Option<Box<str>>,
    /// Whether it was recreated after a deletion.
    pub(crate) recreated: bool,
    /// The digests of the snapshot that it was applied with; `None` if the reference created it.
    pub(crate) snapshot: Option<Box<str>>,
    /// The plugins that it was rendered with, if they were noted.
    pub(crate) plugins: Option<Box<str>>,
    /// The condition `Completed` or `Failed`, if it is true.
    pub end: Option<Box<Condition>>,
    /// The counts of each replicated job, by name.
    pub jobs: Box<[JobCounts]>,
}

impl Eq for JobSetState {}

impl Hash for JobSetState {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.uid, self.version, &self.owner, self.deleting).hash(state);
        (self.suspended, self.expires).hash(state);
        (&self.inputs, self.recreated).hash(state);
        (&self.finalizers, &self.snapshot, &self.jobs).hash(state);
        if let Some(end) = &self.end {
            hash_condition(end, state);
        }
    }
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

    /// Returns the state of a deleted JobSet with its end, for the TrainJob with this UID.
    pub(crate) fn of_deleted(owner: Box<str>, end: Condition, jobs: &[JobCounts]) -> Self {
        Self {
            uid: Box::default(),
            version: 0,
            created: None,
            owner: Some(owner),
            deleting: true,
            finalizers: Box::default(),
            suspended: false,
            expires: false,
            inputs: None,
            recreated: false,
            snapshot: None,
            plugins: None,
            end: Some(Box::new(end)),
            jobs: jobs.into(),
        }
    }

    /// Whether pods of it are running or terminating.
    pub fn is_active(&self) -> bool {
        self.jobs.iter().any(|job| job.active > 0)
    }

    /// Whether pods of it may be missing, because they have not been created or are not ready. The counts show only whether a Job has any
    /// pods, and are empty until the JobSet controller has created all Jobs once.
    pub(crate) fn may_lack_pods(&self) -> bool {
        let has_none = |job: &JobCounts| job.active.max(job.succeeded).max(job.failed) == 0;
        self.has_waiting_pods() || self.jobs.is_empty() || self.jobs.iter().any(has_none)
    }

    /// Whether pods of it exist that are not ready, for example because they wait for a node or for a volume.
    pub(crate) fn has_waiting_pods(&self) -> bool {
        self.jobs.iter().any(|job| job.active > job.ready)
    }
}

/// The state that is kept of a runtime.
#[derive(Debug)]
pub struct RuntimeState {
    pub(super) version: u64,
    /// The object without the metadata that only the API server needs, as JSON text. An error if it cannot be decoded as a whole, or is too
    /// large.
    pub(super) object: Result<Box<str>, Box<str>>,
}

impl RuntimeState {
    /// Returns the length of its text, or of the reason why it is not held.
    pub(crate) fn len(&self) -> usize {
        match &self.object {
            Ok(text) | Err(text) => text.len(),
        }
    }

    /// Parses the runtime. This may take long, and much memory: reserve it first.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(&self) -> Result<ReadRuntime, String> {
        let text = self.object.as_deref().map_err(ToString::to_string)?;
        let object: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        ReadRuntime::read(object)
    }
}

impl State for RuntimeState {
    fn version(&self) -> u64 {
        self.version
    }

    fn text_bytes(&self) -> usize {
        self.object.as_deref().map_or(0, str::len)
    }

    fn leave_text_out(&mut self, why: String) {
        self.object = Err(why.into());
    }
}

#[cfg(test)]
impl JobSetState {
    /// The same at another version.
    pub(crate) fn at(mut self, version: u64) -> Self {
        self.version = version;
        self
    }

    /// One with this end and these counts.
    pub(crate) fn for_tests(end: Option<Box<Condition>>, jobs: Box<[JobCounts]>) -> Self {
        Self {
            uid: "u".into(),
            version: 1,
            created: None,
            owner: None,
            deleting: false,
            finalizers: Box::default(),
            suspended: false,
            expires: false,
            inputs: None,
            recreated: false,
            snapshot: None,
            plugins: None,
            end,
            jobs,
        }
    }
}
