//! A running JobSet: whether its Jobs and pods were created, and the objects beside it. Missing objects are recreated, except for Secrets
//! with keys; live objects are updated, and the others are frozen.
//!
//! The objects are not watched: they are checked when the TrainJob or its JobSet has changed, and from time to time while pods wait
//! ([`next_check`]). The list of objects is known from their creation, or read from the snapshot once after a start.

use std::{sync::Arc, time::Duration};

use k8s_openapi::jiff::Timestamp;
use trainyard_model::object::ApplyMode;

use super::{
    Because as _, Decided, Pending, Report, Reports,
    objects::{self, JobSetStage},
    remember::remember_at,
    snapshot,
};
use crate::{
    reconcile::{
        failure::{Cause, Class, Finding, ReconcileFailure},
        last_reconcile::AppliedObject,
        object_ref::ObjectRef,
        observed::{JobFacts, ObjectState, Observed},
        status,
        step::{Action, Observe, Reason, RuntimeSource, SnapshotMark, Step},
    },
    watch::{JobSetState, State as _},
};

/// What an object needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Nothing,
    /// It is missing.
    Create,
    /// It is live, has this version, and may need an update.
    Follow(Option<Box<str>>),
}

/// Returns what an object needs, given its state.
pub(super) fn need(last: &AppliedObject, state: &ObjectState, job_changed: bool) -> Need {
    match state {
        ObjectState::Missing => Need::Create,
        // All other inputs are pinned.
        ObjectState::Ours(version)
            if last.object.apply == ApplyMode::Live
                && (job_changed || !last.is_at(version.as_deref())) =>
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
pub(super) fn next_check(o: &Observed, job: &JobFacts, now: Timestamp) -> Option<Duration> {
    let waits = |found: &&JobSetState| !found.suspended && !found.deleting && found.may_lack_pods();
    o.current.job_set().filter(waits)?;
    let [shortest, longest] = CHECK_EVERY;
    Some(running_for(job, now)?.clamp(shortest, longest))
}

/// Returns how long ago the TrainJob was started; `None` if it was not.
fn running_for(job: &JobFacts, now: Timestamp) -> Option<Duration> {
    let started = status::started(job.created, &job.status)?;
    Some(Duration::try_from(now.duration_since(started)).unwrap_or_default())
}

/// Maintains a running JobSet: repairs the objects beside it, and fails if its Jobs or pods cannot be created.
pub(super) fn maintain(
    o: &Observed,
    job: &JobFacts,
    found: &JobSetState,
    now: Timestamp,
) -> Decided<Reports> {
    let reports = maintain_objects(o, job, found)?;
    let [shortest, _] = CHECK_EVERY;
    let is_old = running_for(job, now).is_some_and(|since| since >= shortest);
    if !is_old || found.end.is_some() || !found.may_lack_pods() {
        return Ok(reports);
    }
    let creation = o
        .known(&o.observations.creation, || Observe::Creation)
        .because(Reason::PodsMissing)?;
    match creation {
        None => Ok(reports),
        Some(failure) => Err(Pending::Failed(failure.clone())),
    }
}

/// Repairs the objects beside a running JobSet if it or its TrainJob has changed since they were last checked, or if its pods wait.
fn maintain_objects(o: &Observed, job: &JobFacts, found: &JobSetState) -> Decided<Reports> {
    let Some(last) = &o.last else {
        if found.recreated {
            // The controller that recreated it may have stopped before it updated the snapshot.
            unmark(o).because(Reason::JobSetRecreated)?;
        }
        remember_at(o, job, Some(found), None)?;
        return Ok(Reports::new());
    };
    let job_changed = last.fingerprint != job.fingerprint;
    if !job_changed && last.job_set == Some(found.version()) && !found.has_waiting_pods() {
        return Ok(Reports::new());
    }
    let listed = match &last.objects {
        Some(listed) => listed,
        None => o.known(&o.observations.listed, || Observe::ListedObjects)?,
    };
    let (mut needs, mut foreign) = (Vec::with_capacity(listed.len()), None);
    for last in listed.iter() {
        let state = state_of(o, &last.object)?;
        if let ObjectState::Unusable(failure) = state {
            foreign.get_or_insert(failure);
        }
        needs.push((last, need(last, state, job_changed)));
    }
    let (objects, reports) = repair(o, listed, &needs)?;
    if let Some(foreign) = foreign {
        return Err(Pending::Failed(foreign.clone()));
    }
    remember_at(o, job, Some(found), Some(objects))?;
    Ok(reports)
}

fn state_of<'o>(o: &'o Observed, object: &ObjectRef) -> Decided<&'o ObjectState> {
    let mut states = o.observations.listed_objects.iter();
    match states.find(|(of, _)| of == object) {
        Some((_, state)) => Ok(state),
        None => {
            let failed = o.failed(Step::Observe(Observe::ListedObject(object.clone())))?;
            Err(Pending::Failed(failed))
        }
    }
}

/// Removes the mark of a deleted JobSet from the snapshot.
fn unmark(o: &Observed) -> Decided<()> {
    let marks = o.known(&o.observations.snapshot_marks, || Observe::SnapshotMarks)?;
    match marks {
        Some(marks) if marks.foreign.is_none() && marks.recreate => {
            let (mark, at) = (SnapshotMark::RECREATED, marks.at.clone());
            o.act(Action::MarkSnapshot { mark, at })
        }
        _ => Ok(()),
    }
}

/// Recreates missing objects and updates live ones from the pinned plan.
fn repair(
    o: &Observed,
    listed: &Arc<[AppliedObject]>,
    needs: &[(&AppliedObject, Need)],
) -> Decided<(Arc<[AppliedObject]>, Reports)> {
    if needs.iter().all(|(_, need)| *need == Need::Nothing) {
        return Ok((listed.clone(), Reports::new()));
    }
    let missing = needs.iter().find(|(_, need)| *need == Need::Create);
    let missing = missing.map(|(last, _)| &last.object);
    let lost = |object: &ObjectRef, cause| {
        let lost = Finding::Lost(object.clone(), cause);
        Err(Pending::Failed(ReconcileFailure::Blocked(lost)))
    };
    if missing.is_some() {
        // The objects of a deleted TrainJob may be gone before the watch shows its deletion.
        o.known(&o.observations.live_train_job, || Observe::LiveTrainJob)?;
    }
    o.known(&o.observations.train_job, || Observe::TrainJob)?;
    if o.known(&o.observations.snapshot, || Observe::Snapshot)?
        .is_none()
    {
        return match missing {
            Some(missing) => lost(missing, Cause::NoSnapshot),
            None => Ok((listed.clone(), Reports::new())),
        };
    }
    let rendered = match snapshot::rendering(o, RuntimeSource::Snapshot.started())? {
        Ok(rendered) => rendered,
        Err(failure) if failure.is(Class::PlanIsPinned) && missing.is_none() => {
            return Ok((listed.clone(), vec![Report::NotFollowed(failure)]));
        }
        Err(failure) => return Err(Pending::Failed(failure)),
    };
    let (mut next, mut keys_lost) = (Vec::with_capacity(listed.len()), None);
    for (last, need) in needs {
        let mut objects = rendered.objects.iter();
        let object = objects.find(|it| it.object == last.object);
        next.push(match (need, object) {
            (Need::Create, None) => return lost(&last.object, Cause::NotRendered),
            // New keys would differ: this is reported when all other objects exist.
            (Need::Create, Some(object)) if object.has_keys => {
                keys_lost.get_or_insert(&object.object);
                (*last).clone()
            }
            (Need::Create, Some(object)) => objects::write(o, object, JobSetStage::Running)?,
            (Need::Follow(version), Some(object))
                if !(last.has(object.content) && last.is_at(version.as_deref())) =>
            {
                objects::write(o, object, JobSetStage::Running)?
            }
            _ => (*last).clone(),
        });
    }
    match keys_lost {
        None => Ok((next.into(), Reports::new())),
        Some(secret) => {
            let lost = Finding::KeysLost(secret.clone());
            Err(Pending::Failed(ReconcileFailure::Blocked(lost)))
        }
    }
}
