//! What stands beside a running JobSet: what is missing is created again, except for keys; what is live follows, and the rest is frozen.
//!
//! Nothing is watched and nothing is asked for at a fixed pace: the objects are looked at when the TrainJob or its JobSet has changed.
//! Which objects there are is known since they were created, or read from the snapshot once after a start; so a TrainJob without objects
//! costs nothing.

use std::sync::Arc;

use trainyard_model::object::ApplyMode;

use super::objects::{self, Stage};
use super::{Because as _, Decided, Pending, Report, Reports, snapshot};
use crate::reconcile::failure::{Cause, Class, Failure, Finding};
use crate::reconcile::object_ref::ObjectRef;
use crate::reconcile::observed::{AppliedObject, JobFacts, LastReconcile, Look, Observed};
use crate::reconcile::step::{Action, Mark, Observe, Reason, Source, Step};
use crate::watch::{JobSetState, State as _};

/// What an object needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Nothing,
    /// It is missing.
    Create,
    /// It is live, and may have to change; it has this version.
    Follow(Option<Box<str>>),
}

/// What an object needs of which this was found.
pub(super) fn need(last: &AppliedObject, look: &Look, job_changed: bool) -> Need {
    match look {
        Look::Missing => Need::Create,
        // All else that it is made of is pinned.
        Look::Ours(version)
            if last.object.apply == ApplyMode::Live
                && (job_changed || !last.is_at(version.as_deref())) =>
        {
            Need::Follow(version.clone())
        }
        // One that no loaded plugin emits can't be created again, and whoever wrote the list may have made its kind up.
        Look::Ours(_) | Look::Unusable(_) | Look::NotEmitted => Need::Nothing,
    }
}

/// Sees to the objects beside a running JobSet, if it or its TrainJob has changed since the last time.
pub(super) fn keep(o: &Observed, job: &JobFacts, found: &JobSetState) -> Decided<Reports> {
    let Some(last) = &o.last else {
        if found.recreated {
            // Whoever created it may not have come to say so.
            unmark(o).because(Reason::JobSetRecreated)?;
        }
        remember(o, job, found, None)?;
        return Ok(Reports::new());
    };
    let job_changed = last.fingerprint != job.fingerprint;
    if !job_changed && last.job_set == Some(found.version()) {
        return Ok(Reports::new());
    }
    let listed = match &last.objects {
        Some(listed) => listed,
        None => o.known(&o.asked.listed, || Observe::ListedObjects)?,
    };
    let (mut needs, mut foreign) = (Vec::with_capacity(listed.len()), None);
    for last in listed.iter() {
        let look = look(o, &last.object)?;
        if let Look::Unusable(failure) = look {
            foreign.get_or_insert(failure);
        }
        needs.push((last, need(last, look, job_changed)));
    }
    let (objects, reports) = repair(o, listed, &needs)?;
    if let Some(foreign) = foreign {
        return Err(Pending::Failed(foreign.clone()));
    }
    remember(o, job, found, Some(objects))?;
    Ok(reports)
}

fn look<'o>(o: &'o Observed, object: &ObjectRef) -> Decided<&'o Look> {
    let mut looks = o.asked.listed_objects.iter();
    match looks.find(|(of, _)| of == object) {
        Some((_, look)) => Ok(look),
        None => {
            let failed = o.failed(Step::Observe(Observe::ListedObject(object.clone())))?;
            Err(Pending::Failed(failed))
        }
    }
}

/// Removes from the snapshot that the JobSet was deleted: another one runs.
fn unmark(o: &Observed) -> Decided<()> {
    let marks = o.known(&o.asked.snapshot_marks, || Observe::SnapshotMarks)?;
    match marks {
        Some(marks) if marks.foreign.is_none() && marks.recreate => {
            let (mark, at) = (Mark::RECREATED, marks.at.clone());
            o.act(Action::MarkSnapshot { mark, at })
        }
        _ => Ok(()),
    }
}

/// Creates what is missing again, and has follow what is live, from the pinned plan.
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
        Err(Pending::Failed(Failure::Found(lost)))
    };
    if missing.is_some() {
        // Of a TrainJob that was deleted, the objects go before the watch says so.
        o.known(&o.asked.live_train_job, || Observe::LiveTrainJob)?;
    }
    o.known(&o.asked.train_job, || Observe::TrainJob)?;
    if o.known(&o.asked.snapshot, || Observe::Snapshot)?.is_none() {
        return match missing {
            Some(missing) => lost(missing, Cause::NoSnapshot),
            None => Ok((listed.clone(), Reports::new())),
        };
    }
    let rendered = match snapshot::rendering(o, Source::Snapshot.started())? {
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
            // It would be another one: that is reported once all else exists.
            (Need::Create, Some(object)) if object.has_keys => {
                keys_lost.get_or_insert(&object.object);
                (*last).clone()
            }
            (Need::Create, Some(object)) => objects::write(o, object, Stage::Running)?,
            (Need::Follow(version), Some(object))
                if !(last.has(object.content) && last.is_at(version.as_deref())) =>
            {
                objects::write(o, object, Stage::Running)?
            }
            _ => (*last).clone(),
        });
    }
    match keys_lost {
        None => Ok((next.into(), Reports::new())),
        Some(secret) => {
            let lost = Finding::KeysLost(secret.clone());
            Err(Pending::Failed(Failure::Found(lost)))
        }
    }
}

/// Keeps in mind that all is as the TrainJob wants it, as of the version of the JobSet under which the objects were looked at.
fn remember(
    o: &Observed,
    job: &JobFacts,
    found: &JobSetState,
    objects: Option<Arc<[AppliedObject]>>,
) -> Decided<()> {
    if o.done.remembered {
        return Ok(());
    }
    o.act(Action::Remember(LastReconcile {
        uid: job.uid.clone(),
        fingerprint: job.fingerprint,
        job_set: Some(found.version()),
        objects,
    }))
}
