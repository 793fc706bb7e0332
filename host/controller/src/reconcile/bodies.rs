//! The large values of a reconcile, of which decisions know the facts alone.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use trainyard_api::TrainJob;
use trainyard_model::lookup::Lookups;
use trainyard_render::{PendingLookup, RenderedObject};

use super::error::ReconcileError;
use super::error_summary::ErrorSummary;
use super::failure::{Class, ErrorId, Failure};
use super::inputs::Inputs;
use super::job_set::Suspended;
use super::object_ref::ObjectRef;
use super::placement::Entries;
use super::snapshot::Snapshot;
use super::step::{Basis, Source, Wanted};

/// The large values of a reconcile.
#[derive(Default)]
pub(super) struct Bodies {
    /// What it was read into.
    large: Large,
    /// The warnings of what was rendered last.
    pub(super) warnings: Vec<String>,
    /// The errors that steps met, by their ids.
    errors: Vec<Option<ReconcileError>>,
}

/// What takes room in memory.
#[derive(Default)]
pub(super) struct Large {
    pub(super) job: Option<Arc<TrainJob>>,
    /// The digest of what it is rendered from.
    pub(super) inputs: Option<Inputs>,
    /// The snapshot in the cluster.
    pub(super) snapshot: Option<Snapshot>,
    /// A snapshot of the runtime as it is now.
    pub(super) fresh: Option<Snapshot>,
    /// What was looked up for a rendering so far.
    pub(super) lookups: Option<(Basis, Arc<Lookups>)>,
    /// The lookups that the last rendering waits for.
    pub(super) pending: Vec<PendingLookup>,
    /// What was rendered last.
    pub(super) rendered: Option<RenderedPlan>,
    /// The suspended JobSet.
    pub(super) live: Option<Arc<Suspended>>,
    /// A JobSet whose pods are placed as wanted.
    pub(super) wanted: Option<(Wanted, Arc<Value>)>,
    /// What the live one has to change.
    pub(super) changes: Option<PlacementChanges>,
    /// The room for a large TrainJob.
    pub(super) room: Option<OwnedSemaphorePermit>,
    /// The same for its runtime; `Some(None)` if it needs none.
    pub(super) runtime_room: Option<Option<OwnedSemaphorePermit>>,
}

/// What a TrainJob becomes, with the snapshot that it was made of.
pub(super) struct RenderedPlan {
    pub(super) objects: Vec<RenderedObject>,
    pub(super) job_set: Arc<Value>,
    /// What the JobSet says that it was rendered from, if it waits.
    pub(super) inputs: Box<str>,
    pub(super) snapshot: Snapshot,
}

/// What a JobSet has to change for its pods to be placed as wanted.
pub(super) struct PlacementChanges {
    /// Its replicated jobs, if they are placed otherwise.
    pub(super) jobs: Option<Value>,
    /// What its Jobs have to lose.
    pub(super) removed: Entries,
}

impl Bodies {
    /// What takes room in memory.
    pub(super) fn large(&mut self) -> &mut Large {
        &mut self.large
    }

    /// Gives back the room in memory: nothing more is made of the TrainJob.
    pub(super) fn release(&mut self) {
        self.large = Large::default();
    }

    /// Keeps an error, and says what of it decisions depend on.
    pub(super) fn failure(&mut self, error: ReconcileError) -> Failure {
        let (class, summary) = (Class::of(&error), ErrorSummary::of(&error));
        self.errors.push(Some(error));
        let error = ErrorId(self.errors.len() - 1);
        Failure::Met {
            error,
            class,
            summary,
        }
    }

    /// The error of that id; `None` if it was taken before.
    pub(super) fn take_error(&mut self, id: ErrorId) -> Option<ReconcileError> {
        self.errors.get_mut(id.0).and_then(Option::take)
    }

    /// The TrainJob.
    pub(super) fn job(&self) -> Result<&Arc<TrainJob>, ReconcileError> {
        let job = self.large.job.as_ref();
        job.ok_or_else(|| ReconcileError::out_of_order("the TrainJob"))
    }

    /// The snapshot that a TrainJob is rendered on.
    pub(super) fn snapshot(&self, basis: Basis) -> Result<Snapshot, ReconcileError> {
        let snapshot = match basis.source {
            Source::Snapshot => self.large.snapshot.clone(),
            Source::Runtime => self.large.fresh.clone(),
        };
        let mut snapshot = snapshot.ok_or_else(|| ReconcileError::out_of_order("the snapshot"))?;
        snapshot.started = basis.started;
        Ok(snapshot)
    }

    /// What was rendered last.
    pub(super) fn rendered(&self) -> Result<&RenderedPlan, ReconcileError> {
        let rendered = self.large.rendered.as_ref();
        rendered.ok_or_else(|| ReconcileError::out_of_order("the rendering"))
    }

    /// An object that was rendered.
    pub(super) fn object(&self, object: &ObjectRef) -> Result<&RenderedObject, ReconcileError> {
        let mut objects = self.rendered()?.objects.iter();
        let found = objects.find(|it| ObjectRef::of(it) == *object);
        found.ok_or_else(|| ReconcileError::out_of_order("the object"))
    }

    /// The suspended JobSet.
    pub(super) fn live(&self) -> Result<&Arc<Suspended>, ReconcileError> {
        let live = self.large.live.as_ref();
        live.ok_or_else(|| ReconcileError::out_of_order("the JobSet"))
    }

    /// What the suspended JobSet has to change.
    pub(super) fn changes(&self) -> Result<&PlacementChanges, ReconcileError> {
        let changes = self.large.changes.as_ref();
        changes.ok_or_else(|| ReconcileError::out_of_order("the placement of the pods"))
    }

    /// The digest of what the TrainJob is rendered from.
    pub(super) fn inputs(&self) -> Result<&Inputs, ReconcileError> {
        let inputs = self.large.inputs.as_ref();
        inputs.ok_or_else(|| ReconcileError::out_of_order("the inputs of the rendering"))
    }
}
