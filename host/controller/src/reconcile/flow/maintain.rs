//! A running JobSet: whether its Jobs and pods were created, and the objects beside it. Missing objects are recreated, except for Secrets
//! with keys; live objects are updated, and the others are frozen.
//!
//! The objects are not watched: they are checked when the TrainJob or its JobSet has changed, and from time to time while pods wait
//! ([`next_check`]). The list of objects is known from their creation, or read from the snapshot once after a start.

use std::{sync::Arc, time::Duration};

use k8s_openapi::jiff::Timestamp;
use trainyard_model::object::ApplyMode;

use super::{Flow, Result, because, write::JobSetStage};
use crate::{
    reconcile::{
        cluster::{Basis, Cluster, MarksToSet, RuntimeSource},
        error::ReconcileError,
        facts::ObjectState,
        last_reconcile::AppliedObject,
        object_version::ObjectVersion,
        outcome::Report,
        start::JobFacts,
        status,
    },
    watch::{JobSetState, State as _},
};

/// Why an object cannot be recreated.
const NO_SNAPSHOT: &str = "the snapshot is missing too";
const NOT_RENDERED: &str = "the TrainJob has changed and no longer creates it";

/// What an object needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Nothing,
    /// It is missing.
    Create,
    /// It is live, has this version, and may need an update.
    Follow(ObjectVersion),
}

/// Returns what an object needs, given its state.
pub(super) fn need(last: &AppliedObject, state: &ObjectState, job_changed: bool) -> Need {
    match state {
        ObjectState::Missing => Need::Create,
        // All other inputs are pinned.
        ObjectState::Ours(version)
            if last.object.apply == ApplyMode::Live && (job_changed || !last.is_at(version)) =>
        {
            Need::Follow(version.clone())
        }
        // A kind that no loaded plugin emits cannot be recreated, and may be forged.
        ObjectState::Ours(_) | ObjectState::Unusable(_) | ObjectState::NotEmitted => Need::Nothing,
    }
}

/// The shortest and the longest time between two checks of a JobSet whose pods wait or are missing.
const CHECK_EVERY: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(600)];

/// Returns after how long a running JobSet is checked again although nothing changes; `None` if it has all its pods. Pods may wait for an
/// object that was deleted, such as a PodGroup or a ConfigMap, or may not be created because of a quota, and then the JobSet does not change
/// until the cause is removed. The time since the last check doubles, so that many TrainJobs that wait for room cost little.
pub(super) fn next_check(
    found: Option<&JobSetState>,
    job: &JobFacts,
    now: Timestamp,
) -> Option<Duration> {
    let waits = |found: &&JobSetState| !found.suspended && !found.deleting && found.may_lack_pods();
    found.filter(waits)?;
    let [shortest, longest] = CHECK_EVERY;
    Some(running_for(job, now)?.clamp(shortest, longest))
}

/// Returns how long ago the TrainJob was started; `None` if it was not.
fn running_for(job: &JobFacts, now: Timestamp) -> Option<Duration> {
    let started = status::started(job.created, &job.status)?;
    Some(Duration::try_from(now.duration_since(started)).unwrap_or_default())
}

impl<C: Cluster> Flow<'_, C> {
    /// Maintains a running JobSet: repairs the objects beside it, and fails if its Jobs or pods cannot be created.
    pub(super) async fn maintain(&mut self, found: &JobSetState) -> Result<()> {
        let objects = self.maintain_objects(found).await?;
        let [shortest, _] = CHECK_EVERY;
        let since = running_for(&self.start.job, self.start.now);
        let is_old = since.is_some_and(|since| since >= shortest);
        if is_old && found.end.is_none() && found.may_lack_pods() {
            because("pods of the running JobSet may not have been created");
            self.cluster.check_creation().await?;
            self.check_objects(objects, found).await?;
        }
        Ok(())
    }

    /// Reports an object for which the pods of a running JobSet wait.
    async fn check_objects(
        &mut self,
        objects: Option<Arc<[AppliedObject]>>,
        found: &JobSetState,
    ) -> Result<()> {
        let objects = match objects {
            Some(objects) => objects,
            // The controller was started while they wait.
            None if found.has_waiting_pods() => self.cluster.listed_objects().await?,
            None => return Ok(()),
        };
        let with_status = objects.iter().filter(|it| it.object.kind.has_status());
        let with_status: Vec<_> = with_status.map(|it| it.object.clone()).collect();
        if with_status.is_empty() {
            return Ok(());
        }
        because("pods of the running JobSet may wait for an object");
        let waiting = self.cluster.waiting_object(&with_status).await?;
        self.reports.extend(waiting.map(Report::Waits));
        Ok(())
    }

    /// Repairs the objects beside a running JobSet if it or its TrainJob has changed since they were last checked, or if its pods wait. Returns
    /// the objects, if they are known.
    async fn maintain_objects(
        &mut self,
        found: &JobSetState,
    ) -> Result<Option<Arc<[AppliedObject]>>> {
        let Some(last) = &self.start.last else {
            self.note_unnoted(found).await?;
            self.remember_at(Some(found), None);
            return Ok(None);
        };
        let job_changed = last.fingerprint != self.start.job.fingerprint;
        if !job_changed && last.job_set == Some(found.version()) && !found.has_waiting_pods() {
            return Ok(last.objects.clone());
        }
        because("the JobSet runs, and it or its TrainJob has changed");
        let listed = match &last.objects {
            Some(listed) => listed.clone(),
            None => self.cluster.listed_objects().await?,
        };
        let (mut needs, mut unusable) = (Vec::with_capacity(listed.len()), None);
        for last in listed.iter() {
            let state = self.cluster.listed_object(&last.object).await?;
            needs.push((last, need(last, &state, job_changed)));
            if let ObjectState::Unusable(error) = state {
                unusable.get_or_insert(error);
            }
        }
        let objects = self.repair(&listed, &needs).await?;
        if let Some(unusable) = unusable {
            return Err(unusable);
        }
        self.remember_at(Some(found), Some(objects.clone()));
        Ok(Some(objects))
    }

    /// Marks the snapshot as after the creation of the JobSet: the controller may have stopped before it did, or may not have got the answer.
    /// Once the status has counts, it shows that the JobSet has run.
    async fn note_unnoted(&mut self, found: &JobSetState) -> Result<()> {
        let expires = found.expires && !self.start.job.has_run();
        if !(found.recreated || expires) {
            return Ok(());
        }
        self.read_marks().await?;
        if found.recreated && self.snapshot.is_to_recreate() {
            because("the JobSet was recreated");
            self.mark(MarksToSet::CLEAR_RECREATE).await?;
        }
        if expires {
            self.mark_started().await?;
        }
        Ok(())
    }

    /// Recreates missing objects and updates live ones from the pinned plan.
    async fn repair(
        &mut self,
        listed: &Arc<[AppliedObject]>,
        needs: &[(&AppliedObject, Need)],
    ) -> Result<Arc<[AppliedObject]>> {
        if needs.iter().all(|(_, need)| *need == Need::Nothing) {
            return Ok(listed.clone());
        }
        let missing = needs.iter().find(|(_, need)| *need == Need::Create);
        let missing = missing.map(|(last, _)| &last.object);
        if missing.is_some() {
            // The objects of a deleted TrainJob may be gone before the watch shows its deletion.
            self.cluster.confirm_train_job().await?;
        }
        let train_job = self.cluster.train_job().await?;
        let Some(found) = self.read_snapshot(&train_job).await? else {
            return match missing {
                Some(missing) => Err(ReconcileError::lost(missing, NO_SNAPSHOT)),
                None => Ok(listed.clone()),
            };
        };
        let basis = Basis {
            source: RuntimeSource::Snapshot,
            snapshot: found.value,
            started: true,
        };
        let rendering = match self.render(&train_job, &basis).await {
            Ok(rendering) => rendering,
            Err(error) if error.is_pinned() && missing.is_none() => {
                self.reports.push(Report::NotFollowed(error));
                return Ok(listed.clone());
            }
            Err(error) => return Err(error),
        };
        let (mut next, mut keys_lost) = (Vec::with_capacity(listed.len()), None);
        for (last, need) in needs {
            let mut objects = rendering.facts.objects.iter();
            let object = objects.find(|it| it.object == last.object);
            next.push(match (need, object) {
                (Need::Create, None) => {
                    return Err(ReconcileError::lost(&last.object, NOT_RENDERED));
                }
                // New keys would differ: this is reported when all other objects exist.
                (Need::Create, Some(object)) if !object.rendered.material.is_empty() => {
                    keys_lost.get_or_insert(&object.object);
                    (*last).clone()
                }
                (Need::Create, Some(object)) => self.write(object, JobSetStage::Running).await?,
                (Need::Follow(version), Some(object))
                    if !(last.has(object.content) && last.is_at(version)) =>
                {
                    self.write(object, JobSetStage::Running).await?
                }
                _ => (*last).clone(),
            });
        }
        match keys_lost {
            None => Ok(next.into()),
            Some(secret) => Err(ReconcileError::KeysLost {
                name: secret.name.to_string(),
            }),
        }
    }
}
