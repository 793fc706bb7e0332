//! The large values of a reconcile. Decisions only know the facts about them.

use std::sync::Arc;

use serde_json::Value;
use trainyard_api::TrainJob;
use trainyard_model::lookup::Lookups;
use trainyard_render::{PendingLookup, RenderedObject};

use super::{
    error::ErrorSummary,
    error::ReconcileError,
    failure::{Class, ErrorId, ReconcileFailure},
    inputs::Inputs,
    job_set::{self, SuspendedJobSet},
    object_ref::ObjectRef,
    placement::Entries,
    snapshot::Snapshot,
    step::{Basis, PlacementSource, RuntimeSource},
    vouch::Digests,
};
use crate::fair::Permit;

/// The large values of a reconcile.
#[derive(Default)]
pub(super) struct Artifacts {
    /// The parsed and rendered values.
    large: LargeArtifacts,
    /// The warnings of the last rendering.
    pub(super) warnings: Vec<String>,
    /// The errors that steps returned, by their ids.
    errors: Vec<Option<ReconcileError>>,
}

/// The values that count against the memory budget.
#[derive(Default)]
pub(super) struct LargeArtifacts {
    pub(super) job: Option<Arc<TrainJob>>,
    /// The digest of its inputs.
    pub(super) inputs: Option<Inputs>,
    /// The snapshot in the cluster.
    pub(super) snapshot: Option<Snapshot>,
    /// A snapshot of the current runtime.
    pub(super) fresh: Option<Snapshot>,
    /// The lookups for a rendering so far.
    pub(super) lookups: Option<(Basis, Arc<Lookups>)>,
    /// The lookups that the last rendering waits for.
    pub(super) pending: Vec<PendingLookup>,
    /// The last rendering.
    pub(super) rendered: Option<RenderedObjects>,
    /// The suspended JobSet.
    pub(super) live: Option<Arc<SuspendedJobSet>>,
    /// A JobSet with the wanted placement.
    pub(super) wanted: Option<(PlacementSource, Arc<Value>)>,
    /// The changes that the live JobSet needs.
    pub(super) changes: Option<PlacementChanges>,
    /// The memory reserved for a large TrainJob.
    pub(super) budget: Option<Permit>,
    /// The number of values for which memory is reserved for its runtime, with the reservation.
    pub(super) runtime_budget: Option<(usize, Option<Permit>)>,
}

/// A rendering with its snapshot.
pub(super) struct RenderedObjects {
    pub(super) objects: Vec<RenderedObject>,
    pub(super) job_set: Arc<Value>,
    /// The digest of the inputs, for a suspended JobSet.
    pub(super) inputs: Box<str>,
    pub(super) snapshot: Snapshot,
    /// Whether the snapshot was written in this reconcile.
    pub(super) snapshot_written: bool,
}

/// The changes that a JobSet needs for the wanted placement.
pub(super) struct PlacementChanges {
    /// Its replicated jobs, if their placement changes.
    pub(super) jobs: Option<Value>,
    /// The entries that its Jobs have to lose.
    pub(super) removed: Entries,
}

impl Artifacts {
    /// Returns the values that count against the memory budget.
    pub(super) fn large(&mut self) -> &mut LargeArtifacts {
        &mut self.large
    }

    /// Drops these values and releases their memory budget.
    pub(super) fn release(&mut self) {
        self.large = LargeArtifacts::default();
    }

    /// Keeps an error, and returns the failure for decisions.
    pub(super) fn failure(&mut self, error: ReconcileError) -> ReconcileFailure {
        let (class, summary) = (Class::of(&error), ErrorSummary::of(&error));
        self.errors.push(Some(error));
        let error = ErrorId(self.errors.len() - 1);
        ReconcileFailure::Failed {
            error,
            class,
            summary,
        }
    }

    /// Takes the error with that id; `None` if it was taken before.
    pub(super) fn take_error(&mut self, id: ErrorId) -> Option<ReconcileError> {
        self.errors.get_mut(id.0).and_then(Option::take)
    }

    /// Returns the TrainJob.
    pub(super) fn job(&self) -> Result<&Arc<TrainJob>, ReconcileError> {
        let job = self.large.job.as_ref();
        job.ok_or_else(|| ReconcileError::out_of_order("the TrainJob"))
    }

    /// Returns the snapshot that the TrainJob is rendered from.
    pub(super) fn snapshot(&self, basis: Basis) -> Result<Snapshot, ReconcileError> {
        let snapshot = match basis.source {
            RuntimeSource::Snapshot => self.large.snapshot.clone(),
            RuntimeSource::Runtime => self.large.fresh.clone(),
        };
        let mut snapshot = snapshot.ok_or_else(|| ReconcileError::out_of_order("the snapshot"))?;
        snapshot.started = basis.started;
        Ok(snapshot)
    }

    /// Returns the last rendering.
    pub(super) fn rendered(&self) -> Result<&RenderedObjects, ReconcileError> {
        let rendered = self.large.rendered.as_ref();
        rendered.ok_or_else(|| ReconcileError::out_of_order("the rendering"))
    }

    /// Notes that the snapshot of the rendering was written, and returns it.
    pub(super) fn note_written(
        &mut self,
        digests: Option<Digests>,
    ) -> Result<&Snapshot, ReconcileError> {
        let rendered = self.large.rendered.as_mut();
        let rendered = rendered.ok_or_else(|| ReconcileError::out_of_order("the rendering"))?;
        (rendered.snapshot.stored, rendered.snapshot_written) = (digests, true);
        Ok(&rendered.snapshot)
    }

    /// Returns the digests of the snapshot if it was written in this reconcile.
    pub(super) fn written_snapshot(&self) -> Option<&Digests> {
        let rendered = self.large.rendered.as_ref();
        let rendered = rendered.filter(|rendered| rendered.snapshot_written)?;
        rendered.snapshot.stored.as_ref()
    }

    /// Returns the rendered JobSet as it is applied ([`job_set::to_apply`]).
    pub(super) fn job_set_to_apply(
        &self,
        held: bool,
        recreated: bool,
    ) -> Result<Value, ReconcileError> {
        let rendered = self.rendered()?;
        let changes = held.then(|| self.changes()).transpose()?;
        let removed = changes.map(|changes| &changes.removed);
        let job = self.job()?;
        let snapshot = rendered.snapshot.stored.as_ref();
        let snapshot = snapshot.ok_or_else(|| ReconcileError::out_of_order("its snapshot"))?;
        let (job_set, inputs) = (&rendered.job_set, &rendered.inputs);
        Ok(job_set::to_apply(
            job_set, inputs, snapshot, job, removed, recreated,
        ))
    }

    /// Returns a rendered object.
    pub(super) fn object(&self, object: &ObjectRef) -> Result<&RenderedObject, ReconcileError> {
        let mut objects = self.rendered()?.objects.iter();
        let found = objects.find(|it| ObjectRef::of(it) == *object);
        found.ok_or_else(|| ReconcileError::out_of_order("the object"))
    }

    /// Returns the suspended JobSet.
    pub(super) fn live(&self) -> Result<&Arc<SuspendedJobSet>, ReconcileError> {
        let live = self.large.live.as_ref();
        live.ok_or_else(|| ReconcileError::out_of_order("the JobSet"))
    }

    /// Returns the changes that the suspended JobSet needs.
    pub(super) fn changes(&self) -> Result<&PlacementChanges, ReconcileError> {
        let changes = self.large.changes.as_ref();
        changes.ok_or_else(|| ReconcileError::out_of_order("the placement of the pods"))
    }

    /// Returns the digest of the TrainJob's inputs.
    pub(super) fn inputs(&self) -> Result<&Inputs, ReconcileError> {
        let inputs = self.large.inputs.as_ref();
        inputs.ok_or_else(|| ReconcileError::out_of_order("the inputs of the rendering"))
    }
}
