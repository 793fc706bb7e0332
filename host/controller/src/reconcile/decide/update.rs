//! Updates a suspended JobSet that has never run, and resumes any other.

use super::{
    Because as _, Decided, Pending, Report, Reports,
    objects::{self, JobSetStage},
    placement,
    remember::remember,
    resume,
    snapshot::{self, RenderingChoice, choose_for_suspended},
};
use crate::{
    reconcile::{
        failure::Class,
        last_reconcile::AppliedObject,
        object_ref::ObjectRef,
        observed::{JobFacts, LiveJobSet, Observed},
        step::{Action, Basis, Observe, PlacementSource, Reason, RuntimeSource},
    },
    watch::JobSetState,
};

/// Updates or resumes a suspended JobSet.
pub(super) fn update_or_resume(
    o: &Observed,
    job: &JobFacts,
    found: &JobSetState,
) -> Decided<Reports> {
    // A JobSet that has never run has the digest of its inputs.
    let never_run = !job.has_run() && found.inputs.is_some();
    let reason = if never_run {
        Reason::NeverRun
    } else {
        Reason::HasRun
    };
    // If the TrainJob is not suspended, its JobSet is unsuspended, even if another client suspended it.
    if job.desired.suspend && !o.effects.begun && is_up_to_date(o, job, found).because(reason)? {
        if o.last.is_none() {
            remember(o, job, None).because(reason)?;
        }
        return Ok(Reports::new());
    }
    bring_up_to_date(o, job, found, never_run).because(reason)
}

/// Whether a suspended JobSet is up to date, by the last reconcile or by its own digest.
fn is_up_to_date(o: &Observed, job: &JobFacts, found: &JobSetState) -> Decided<bool> {
    if o.outdated {
        return Ok(false);
    }
    if let Some(last) = &o.last {
        return Ok(last.fingerprint == job.fingerprint);
    }
    let Some(noted) = found.inputs.as_deref().filter(|_| !found.recreated) else {
        // The snapshot of a recreated JobSet may not be updated yet.
        return Ok(false);
    };
    let inputs = o.known(&o.observations.inputs, || Observe::Inputs)?;
    Ok(inputs.are_all_of(Some(noted)))
}

/// Reads the TrainJob, and updates the JobSet if its rendering may still change. Otherwise resumes it, or leaves it suspended.
fn bring_up_to_date(
    o: &Observed,
    job: &JobFacts,
    found: &JobSetState,
    never_run: bool,
) -> Decided<Reports> {
    o.begin()?;
    o.known(&o.observations.train_job, || Observe::TrainJob)?;
    let RenderingChoice {
        basis,
        is_new,
        mut reports,
    } = choose_for_suspended(o, job, never_run)?;
    if let Some(basis) = basis.filter(|_| is_new) {
        let live = live(o, found)?;
        if !live.started {
            reports.splice(0..0, update_never_run(o, job, basis, live)?);
            return Ok(reports);
        }
        // Another client suspended it, and its start was not noted.
        if live.inputs.is_some() {
            reports.push(Report::BothMarks);
        }
        snapshot::mark_started(o)?;
        let basis = Some(basis.source.started());
        reports.splice(0..0, resume::resume(o, job, live, basis)?);
        return Ok(reports);
    }
    let follows = |object: &ObjectRef| JobSetStage::Suspended.lets_change(object.apply);
    let listed = basis.map_or(&[][..], |_| snapshot::listed(o));
    if job.desired.suspend && !listed.iter().any(follows) {
        remember(o, job, Some(AppliedObject::unknown(listed)))?;
        return Ok(reports);
    }
    let live = live(o, found)?;
    reports.splice(0..0, resume::resume(o, job, live, basis)?);
    Ok(reports)
}

/// Reads the JobSet if it is still suspended. The store may be outdated, and a running JobSet must not change.
fn live<'o>(o: &'o Observed, found: &JobSetState) -> Decided<&'o LiveJobSet> {
    let uid = || found.uid.clone();
    o.known(&o.observations.live, || Observe::LiveJobSet { uid: uid() })
}

/// Updates a JobSet that has never run: writes the snapshot, the objects beside it and then the JobSet.
fn update_never_run(
    o: &Observed,
    job: &JobFacts,
    basis: Basis,
    live: &LiveJobSet,
) -> Decided<Reports> {
    let rendered = snapshot::rendering(o, basis)?.map_err(Pending::Failed)?;
    snapshot::save(o, basis, rendered)?;
    let mut reports = vec![Report::Rendering];
    // The JobSet does not vouch for a snapshot of the current runtime yet.
    let is_known = basis.source == RuntimeSource::Snapshot;
    if job.desired.suspend && is_known && live.inputs.as_deref() == Some(&*rendered.inputs) {
        let objects = rendered.objects.iter().map(|it| it.object.clone());
        let objects: Vec<_> = objects.collect();
        remember(o, job, Some(AppliedObject::unknown(&objects)))?;
        return Ok(reports);
    }
    let objects = objects::write_all(o, &rendered.objects, JobSetStage::Fresh)?;
    if !o.effects.relocated {
        let wanted = || Observe::Placement(PlacementSource::Applied);
        if o.known(&o.observations.placement, wanted)?.loses && !apply_or_delete(o, live, true)? {
            remember(o, job, Some(objects))?;
            return Ok(reports);
        }
    } else {
        reports.extend(placement::delete_old_jobs(o, live)?);
    }
    if !apply_or_delete(o, live, false)? {
        // Its deletion triggers another reconcile.
        remember(o, job, Some(objects))?;
        return Ok(reports);
    }
    snapshot::note_applied(o, job, rendered)?;
    remember(o, job, Some(objects))?;
    Ok(reports)
}

/// Applies the JobSet over the suspended one. If immutable fields would change, deletes the existing JobSet, provided that another could be
/// created. Returns whether it still exists.
fn apply_or_delete(o: &Observed, live: &LiveJobSet, held: bool) -> Decided<bool> {
    if o.effects.job_set_deleted {
        return Ok(false);
    }
    if o.effects.job_set_written {
        return Ok(true);
    }
    let failure = o.failure_of(Action::ApplyJobSet {
        over: Some(live.at.clone()),
        held,
        recreated: snapshot::is_to_recreate(o),
    })?;
    if !failure.is(Class::Immutable) || live.active {
        return Err(Pending::Failed(failure));
    }
    let creatable = o.known(&o.observations.creatable, || Observe::Creatable { held });
    creatable.because(Reason::Immutable)?;
    o.act(Action::DeleteJobSet(live.at.clone()))
        .because(Reason::Immutable)
}
