//! What a reconcile knows of the snapshot in the cluster: it is read, saved and marked here, and nowhere else.

use std::sync::Arc;

use super::{Flow, Rendering, Result, Snapshot, because};
use crate::reconcile::{
    cluster::{Cluster, MarksToSet},
    error::ReconcileError,
    facts::{FoundMarks, RenderedFacts, SnapshotFacts, SnapshotMarks, WithFacts},
    object_ref::ObjectRef,
    vouch::Trust,
};

/// What is known of the snapshot in the cluster.
#[derive(Debug)]
pub(super) enum KnownSnapshot<S> {
    /// It was not read, does not exist, or belongs to another owner.
    Nothing,
    /// Only its marks were read.
    Marks(SnapshotMarks),
    /// It was written in this reconcile.
    Written(SnapshotFacts),
    /// It was read with this content.
    Read(SnapshotFacts, S),
}

impl<S> KnownSnapshot<S> {
    pub(super) fn marks(&self) -> Option<&SnapshotMarks> {
        match self {
            Self::Nothing => None,
            Self::Marks(marks) => Some(marks),
            Self::Written(facts) | Self::Read(facts, _) => Some(&facts.marks),
        }
    }

    fn marks_mut(&mut self) -> Option<&mut SnapshotMarks> {
        match self {
            Self::Nothing => None,
            Self::Marks(marks) => Some(marks),
            Self::Written(facts) | Self::Read(facts, _) => Some(&mut facts.marks),
        }
    }

    fn facts(&self) -> Option<&SnapshotFacts> {
        match self {
            Self::Nothing | Self::Marks(_) => None,
            Self::Written(facts) | Self::Read(facts, _) => Some(facts),
        }
    }

    pub(super) fn content(&self) -> Option<&S> {
        match self {
            Self::Read(_, content) => Some(content),
            _ => None,
        }
    }

    /// Whether it is marked because its JobSet was deleted.
    pub(super) fn is_to_recreate(&self) -> bool {
        self.marks().is_some_and(|marks| marks.recreate)
    }

    /// Whether it is the one that the JobSet was applied with.
    pub(super) fn is_vouched(&self) -> bool {
        self.facts()
            .is_some_and(|facts| facts.trust == Trust::Whole)
    }

    /// Whether the reference created it, so that it has no plan and lists no objects.
    pub(super) fn is_of_reference(&self) -> bool {
        self.facts().is_some_and(|facts| !facts.has_plan)
    }

    /// Returns the objects that it lists.
    pub(super) fn listed(&self) -> Arc<[ObjectRef]> {
        let objects = self.facts().map(|facts| facts.objects.clone());
        objects.unwrap_or_default()
    }
}

impl<C: Cluster> Flow<'_, C> {
    /// Reads the snapshot.
    pub(super) async fn read_snapshot(
        &mut self,
        train_job: &C::TrainJob,
    ) -> Result<Option<Snapshot<C>>> {
        let found = self.cluster.snapshot(train_job).await?;
        self.snapshot = match found.clone() {
            Some(WithFacts { facts, value }) => KnownSnapshot::Read(facts, value),
            None => KnownSnapshot::Nothing,
        };
        Ok(found)
    }

    /// Reads the marks of the snapshot. Returns an error about a snapshot of another owner, whose marks do not count.
    pub(super) async fn read_marks(&mut self) -> Result<Option<ReconcileError>> {
        let (known, foreign) = match self.cluster.snapshot_marks().await? {
            FoundMarks::Missing => (KnownSnapshot::Nothing, None),
            FoundMarks::Ours(marks) => (KnownSnapshot::Marks(marks), None),
            FoundMarks::Foreign(error) => (KnownSnapshot::Nothing, Some(error)),
        };
        self.snapshot = known;
        Ok(foreign)
    }

    /// Saves the snapshot of the rendering, unless it is saved. It is the first of all writes of a reconcile that creates or updates a JobSet.
    pub(super) async fn save(&mut self, rendering: &mut Rendering<C>) -> Result<()> {
        self.cluster.begin_writes();
        let WithFacts { facts, value } = rendering;
        if facts.saved {
            return Ok(());
        }
        let mut saved = match self.snapshot.marks() {
            Some(marks) => {
                because("the snapshot is outdated or cannot be used");
                self.cluster.replace_snapshot(value, &marks.at).await?
            }
            None => self.cluster.create_snapshot(value).await?,
        };
        // Its other marks stay.
        saved.marks.recreate = self.snapshot.is_to_recreate();
        (self.snapshot, facts.saved) = (KnownSnapshot::Written(saved), true);
        Ok(())
    }

    /// Marks the snapshot as started, also one that cannot be read.
    pub(super) async fn mark_started(&mut self) -> Result<()> {
        match self.snapshot.marks() {
            Some(marks) if !marks.started => self.mark(MarksToSet::STARTED).await,
            _ => Ok(()),
        }
    }

    /// Sets marks of the snapshot.
    pub(super) async fn mark(&mut self, to_set: MarksToSet) -> Result<()> {
        let Some(marks) = self.snapshot.marks_mut() else {
            return Ok(());
        };
        marks.at = self.cluster.mark_snapshot(to_set, &marks.at).await?;
        marks.started |= to_set.started;
        marks.recreate = to_set.recreate.unwrap_or(marks.recreate);
        Ok(())
    }

    /// Notes facts that a restarted controller could not observe: that a JobSet which will expire has run, and that a deleted JobSet was
    /// recreated.
    pub(super) async fn note_applied(&mut self, rendered: &RenderedFacts) -> Result<()> {
        // If it is deleted again, a restarted controller recreates it too.
        if self.snapshot.is_to_recreate() && self.cluster.job_set_now().exists() {
            because("the JobSet was recreated");
            self.mark(MarksToSet::CLEAR_RECREATE).await?;
        }
        if rendered.expires && !self.start.job.desired.suspend {
            self.mark_started().await?;
        }
        Ok(())
    }
}
