//! What a reconcile reads and changes: the cluster, and what the controller keeps in memory.
//!
//! [`LiveCluster`](super::live_cluster::LiveCluster) calls the API server. The tests of [`flow`](super::flow) have a simulated cluster, in
//! which every call may fail, and the process may be killed at every call.

use std::sync::Arc;

use trainyard_render::RenderedObject;

use super::{
    error::ReconcileError,
    facts::{
        FoundMarks, ObjectState, OldJob, Owner, PlacementFacts, RenderedFacts, SnapshotFacts,
        SuspendedFacts, WithFacts,
    },
    inputs::Inputs,
    last_reconcile::{AppliedObject, LastReconcile},
    object_ref::ObjectRef,
    object_version::ObjectVersion,
    start::KnownJobSet,
};
use crate::watch::TrainJobStatus;

/// Everything that a reconcile reads and changes.
pub(crate) trait Cluster:
    Memory
    + TrainJobs
    + Snapshots
    + Runtimes
    + Renderings
    + Objects
    + JobSets
    + Placements
    + Jobs
    + Diagnosis
{
}

/// The large values that calls return and later calls need. Decisions depend only on their facts.
pub(crate) trait Values {
    /// A valid TrainJob.
    type TrainJob;
    /// The content of a snapshot.
    type Snapshot: Clone;
    /// A JobSet with the objects beside it, before they are written.
    type Rendering;
    /// A suspended JobSet.
    type JobSet;
    /// The changes that a suspended JobSet needs for the wanted placement of its pods.
    type Placement;
}

/// The result of a call, or of a part of a reconcile.
pub(crate) type Result<T, E = ReconcileError> = std::result::Result<T, E>;

/// What the controller keeps of TrainJobs in memory.
pub(crate) trait Memory {
    /// Returns what is known of the TrainJob's JobSet now. It may have changed since the reconcile began.
    fn job_set_now(&self) -> KnownJobSet;

    /// Forgets the result of the last reconcile, so that a failure is followed by a full reconcile, and starts to register interests: later
    /// changes make the rendering outdated.
    fn begin(&mut self);

    /// Notes that writes for the creation or the update of a JobSet begin. Until a result is remembered, the last of them may be missing, or its
    /// answer may have been lost.
    fn begin_writes(&mut self);

    /// Remembers the result of this reconcile, and forgets the deleted JobSet that it has recreated.
    fn remember(&mut self, last: LastReconcile);

    /// Ends the registration of interests, and releases the memory that was reserved for large values.
    fn settle(&mut self, interests: KeptInterests);

    /// Forgets the result of the last reconcile.
    fn forget_last(&mut self);

    /// Notes that the JobSet ended without its end being observed.
    fn note_unseen_end(&mut self);

    /// Forgets the last state of a deleted JobSet, which is in the status.
    fn forget_deleted_job_set(&mut self);
}

/// Which of a TrainJob's interests in cluster objects are kept at the end of a reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeptInterests {
    /// Those that were registered in this reconcile.
    OfThisReconcile,
    /// None of them.
    None,
}

/// The TrainJob.
pub(crate) trait TrainJobs: Values {
    /// Returns the digest of the TrainJob's inputs.
    fn inputs(&self) -> Inputs;

    /// Reads and validates the TrainJob in the store.
    async fn train_job(&mut self) -> Result<Self::TrainJob>;

    /// Checks that the TrainJob in the store is current.
    async fn confirm_train_job(&mut self) -> Result<()>;

    /// Writes the status, if the TrainJob has not changed.
    async fn write_status(&mut self, status: &TrainJobStatus) -> Result<()>;

    /// Writes the annotation about the error; `None` removes it.
    async fn write_error(&mut self, error: Option<Arc<str>>) -> Result<()>;
}

/// The snapshot, a ConfigMap with everything that the JobSet is rendered from.
pub(crate) trait Snapshots: Values {
    /// Reads the snapshot; `None` if there is none.
    async fn snapshot(
        &mut self,
        job: &Self::TrainJob,
    ) -> Result<Option<WithFacts<SnapshotFacts, Self::Snapshot>>>;

    /// Reads only its marks.
    async fn snapshot_marks(&mut self) -> Result<FoundMarks>;

    /// Reads only its list of objects.
    async fn listed_objects(&mut self) -> Result<Arc<[AppliedObject]>>;

    /// Creates the snapshot of the rendering.
    async fn create_snapshot(&mut self, rendering: &mut Self::Rendering) -> Result<SnapshotFacts>;

    /// Replaces the existing snapshot, at that version, with it.
    async fn replace_snapshot(
        &mut self,
        rendering: &mut Self::Rendering,
        at: &ObjectVersion,
    ) -> Result<SnapshotFacts>;

    /// Marks the snapshot at that version, and returns its new version. One that is marked as started becomes immutable.
    async fn mark_snapshot(
        &mut self,
        to_set: MarksToSet,
        at: &ObjectVersion,
    ) -> Result<ObjectVersion>;
}

/// The runtime of the TrainJob.
pub(crate) trait Runtimes: Values {
    /// Reads the current runtime, as the snapshot that would pin it.
    async fn runtime(&mut self, job: &Self::TrainJob) -> Result<Self::Snapshot>;
}

/// The rendering of the TrainJob.
pub(crate) trait Renderings: Values {
    /// Renders the TrainJob, with the objects that plugins look up. `existing` is the snapshot in the cluster, if it was read: an equal one
    /// does not have to be written.
    async fn render(
        &mut self,
        job: &Self::TrainJob,
        basis: &Basis<Self::Snapshot>,
        existing: Option<&Self::Snapshot>,
    ) -> Result<WithFacts<RenderedFacts, Self::Rendering>>;
}

/// The objects beside the JobSet.
pub(crate) trait Objects {
    /// Reads the state of a rendered object. One that is being deleted cannot be used, because pods would wait for it.
    async fn object(&mut self, object: &ObjectRef) -> Result<ObjectState>;

    /// Reads the state of an object that the snapshot lists. The list may be forged, so only kinds that plugins emit are read.
    async fn listed_object(&mut self, object: &ObjectRef) -> Result<ObjectState>;

    /// Applies an object, and returns its version. With force only over the version that was read and that the TrainJob owns: an object of
    /// another owner may have replaced it, and a call that takes effect late must not bring an earlier state back.
    async fn apply_object(
        &mut self,
        object: &RenderedObject,
        over: Option<&ObjectVersion>,
    ) -> Result<Option<Box<str>>>;

    /// Creates an object, with its keys if it is a Secret.
    async fn create_object(&mut self, object: &RenderedObject) -> Result<()>;
}

/// The JobSet.
pub(crate) trait JobSets: Values {
    /// Reads the owner of the JobSet with the TrainJob's name.
    async fn job_set_owner(&mut self) -> Result<Owner>;

    /// Reads the suspended JobSet with that UID. The store may be outdated, and a running JobSet must not change.
    async fn suspended_job_set(
        &mut self,
        uid: &str,
    ) -> Result<WithFacts<SuspendedFacts, Self::JobSet>>;

    /// Checks that the TrainJob in the store is current, and that there is no JobSet, which the store may not show yet.
    async fn confirm_absence(&mut self) -> Result<()>;

    /// Applies the rendered JobSet.
    async fn apply_job_set(
        &mut self,
        rendering: &Self::Rendering,
        how: Apply<'_, Self::Placement>,
    ) -> Result<()>;

    /// Checks by a dry run whether the rendered JobSet could be created in place of the existing one.
    async fn check_creatable(
        &mut self,
        rendering: &Self::Rendering,
        how: Apply<'_, Self::Placement>,
    ) -> Result<()>;

    /// Suspends the running JobSet with that UID, and changes nothing else.
    async fn suspend(&mut self, uid: &str) -> Result<()>;

    /// Sets the wanted placement of a suspended JobSet, and notes the entries that its Jobs have to lose.
    async fn relocate(&mut self, at: &ObjectVersion, placement: &Self::Placement) -> Result<()>;

    /// Unsuspends a JobSet that has run, with the wanted placement. If its snapshot was written in this reconcile, the JobSet vouches for it.
    async fn resume(
        &mut self,
        at: &ObjectVersion,
        placement: &Self::Placement,
        rendering: Option<&Self::Rendering>,
    ) -> Result<()>;

    /// Deletes the JobSet with that UID, and no other JobSet of its name.
    async fn delete_job_set(&mut self, at: &ObjectVersion) -> Result<()>;
}

/// The placement of the JobSet's pods.
pub(crate) trait Placements: Values {
    /// Compares the JobSet with the wanted placement.
    async fn placement(
        &mut self,
        job: &Self::TrainJob,
        job_set: &Self::JobSet,
        wanted: WantedPlacement<'_, Self>,
    ) -> Result<WithFacts<PlacementFacts, Self::Placement>>;
}

/// The Jobs of a suspended JobSet.
pub(crate) trait Jobs: Values {
    /// Lists the Jobs of the suspended JobSet that have not ended, and still have entries which were removed from their placement.
    async fn old_jobs(&mut self, job_set: &Self::JobSet) -> Result<Vec<OldJob>>;

    /// Deletes a Job, which JobSet recreates from its template.
    async fn delete_job(&mut self, job: &OldJob) -> Result<()>;
}

/// What happens to a running JobSet.
pub(crate) trait Diagnosis {
    /// Checks that the Jobs of the running JobSet and their pods were created.
    async fn check_creation(&mut self) -> Result<()>;

    /// Returns what the first of these objects waits for, by the rules of the plugins that emitted them.
    async fn waiting_object(&mut self, objects: &[ObjectRef]) -> Result<Option<ReconcileError>>;
}

/// The runtime that a TrainJob is rendered from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuntimeSource {
    /// The runtime in its snapshot.
    Snapshot,
    /// The current runtime.
    Runtime,
}

/// What a TrainJob is rendered from.
#[derive(Clone, Debug)]
pub(crate) struct Basis<S> {
    pub(crate) source: RuntimeSource,
    pub(crate) snapshot: S,
    /// Whether its JobSet may have run, so that plan and lookups are pinned.
    pub(crate) started: bool,
}

/// The marks of a snapshot that are to be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MarksToSet {
    /// Its JobSet has run, and the snapshot is immutable.
    pub(crate) started: bool,
    /// Whether its JobSet was deleted and has to be recreated; `Some(false)` removes the mark.
    pub(crate) recreate: Option<bool>,
}

impl MarksToSet {
    /// The JobSet has run.
    pub(crate) const STARTED: Self = Self {
        started: true,
        recreate: None,
    };
    /// The JobSet was recreated, so it no longer has to be.
    pub(crate) const CLEAR_RECREATE: Self = Self {
        started: false,
        recreate: Some(false),
    };
}

/// How the rendered JobSet is applied.
#[derive(Debug)]
pub(crate) struct Apply<'a, P> {
    /// The suspended JobSet that it replaces, at this version; `None` if there is none.
    pub(crate) over: Option<&'a ObjectVersion>,
    /// Whether it stays suspended for now: then it notes the entries that its Jobs have to lose.
    pub(crate) held: Option<&'a P>,
    /// Whether it is marked as recreated.
    pub(crate) recreated: bool,
}

impl<P> Clone for Apply<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Apply<'_, P> {}

/// The wanted placement of a JobSet's pods.
pub(crate) enum WantedPlacement<'a, C: Values + ?Sized> {
    /// The placement of the rendering, with which the JobSet is applied as a whole.
    Applied(&'a C::Rendering),
    /// The placement of the rendering.
    Rendered(&'a C::Rendering),
    /// The placement by plugins as noted in the snapshot, with the current patches; if it was not noted, the live one.
    Noted(&'a C::Snapshot),
    /// The live placement, with the current patches.
    Live,
    /// The placement that was wanted in an earlier comparison of this reconcile.
    AsBefore(&'a C::Placement),
}
