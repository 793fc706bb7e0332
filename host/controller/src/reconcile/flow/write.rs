//! The objects beside a JobSet. Each is created if it is missing, and changed as its mode allows. An object of another owner is an error.

use std::sync::Arc;

use trainyard_model::object::ApplyMode;

use super::{Flow, Result};
use crate::reconcile::{
    cluster::Cluster,
    facts::{ObjectState, ObjectToWrite},
    last_reconcile::{Applied, AppliedObject},
    object_version::ObjectVersion,
};

/// The stage of a JobSet, which decides what may change beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobSetStage {
    /// It is to be created, or has never run.
    Fresh,
    /// It has run, and is suspended.
    Suspended,
    /// It runs.
    Running,
}

impl JobSetStage {
    /// Whether an object that exists may be changed.
    pub(super) fn lets_change(self, mode: ApplyMode) -> bool {
        match mode {
            ApplyMode::Once => false,
            ApplyMode::WithJobSet => self == Self::Fresh,
            ApplyMode::WhileSuspended => self != Self::Running,
            ApplyMode::Live => true,
        }
    }
}

impl<C: Cluster> Flow<'_, C> {
    /// Writes the objects beside a JobSet in order.
    pub(super) async fn write_all<'o>(
        &mut self,
        objects: impl IntoIterator<Item = &'o ObjectToWrite>,
        stage: JobSetStage,
    ) -> Result<Arc<[AppliedObject]>> {
        let mut written = Vec::new();
        for object in objects {
            written.push(self.write(object, stage).await?);
        }
        Ok(written.into())
    }

    /// Writes an object, unless it exists and may not change.
    pub(super) async fn write(
        &mut self,
        it: &ObjectToWrite,
        stage: JobSetStage,
    ) -> Result<AppliedObject> {
        let mode = it.object.apply;
        // Read before it is created, whatever its mode, because quotas are charged before the API server checks whether the object exists.
        let applied = match self.cluster.object(&it.object).await? {
            ObjectState::Unusable(error) => return Err(error),
            ObjectState::Ours(version) if stage.lets_change(mode) => {
                self.apply_over_read(it, &version).await?
            }
            // Another controller may have created it, and a Secret keeps its keys.
            ObjectState::Ours(_) | ObjectState::NotEmitted => None,
            // Applied rather than created, so that later changes can remove fields.
            ObjectState::Missing
                if stage.lets_change(mode) || mode == ApplyMode::WhileSuspended =>
            {
                self.apply(it, None).await?
            }
            ObjectState::Missing => {
                self.create_object(it).await?;
                None
            }
        };
        Ok(AppliedObject {
            object: it.object.clone(),
            applied: applied.filter(|_| mode == ApplyMode::Live),
        })
    }

    /// Applies an object over the version that was read. If another client has written it meanwhile, such as a scheduler the status of a
    /// PodGroup, it is read once more, because a reconcile that fails would delay its JobSet.
    async fn apply_over_read(
        &mut self,
        it: &ObjectToWrite,
        read: &ObjectVersion,
    ) -> Result<Option<Applied>> {
        let conflict = match self.apply(it, Some(read)).await {
            Err(error) if error.is_conflict() => error,
            applied => return applied,
        };
        match self.cluster.object(&it.object).await? {
            ObjectState::Ours(read) => self.apply(it, Some(&read)).await,
            ObjectState::Unusable(unusable) => Err(unusable),
            ObjectState::Missing | ObjectState::NotEmitted => Err(conflict),
        }
    }

    async fn apply(
        &mut self,
        it: &ObjectToWrite,
        over: Option<&ObjectVersion>,
    ) -> Result<Option<Applied>> {
        let version = self.cluster.apply_object(&it.rendered, over).await?;
        Ok(Some(Applied {
            content: it.content,
            version,
        }))
    }

    /// Creates an object, unless another client has created it in the meantime.
    async fn create_object(&mut self, it: &ObjectToWrite) -> Result<()> {
        let Err(error) = self.cluster.create_object(&it.rendered).await else {
            return Ok(());
        };
        if !error.may_exist() {
            return Err(error);
        }
        match self.cluster.object(&it.object).await? {
            ObjectState::Missing => Err(error),
            ObjectState::Unusable(unusable) => Err(unusable),
            ObjectState::Ours(_) | ObjectState::NotEmitted => Ok(()),
        }
    }
}
