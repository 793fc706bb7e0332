//! Creates the JobSet of a TrainJob that has none. If a deleted JobSet may have ended, the TrainJob ends instead, because its training
//! would run again.

use super::{
    Because as _, Decided, Pending, Report, Reports,
    objects::{self, JobSetStage},
    remember::remember,
    snapshot::{self, choose_for_new},
};
use crate::reconcile::{
    failure::{Finding, ReconcileFailure},
    observed::{JobFacts, Observed, Owner},
    step::{Action, Observe, Reason},
};

/// Creates the snapshot, the objects and the JobSet.
pub(super) fn create(o: &Observed, job: &JobFacts) -> Decided<Reports> {
    o.begin()?;
    o.known(&o.observations.train_job, || Observe::TrainJob)?;
    if job.had_job_set() {
        // An outdated store would recreate the JobSet of a TrainJob that was deleted or has ended.
        o.known(&o.observations.live_train_job, || Observe::LiveTrainJob)?;
    }
    let Some(basis) = choose_for_new(o, job)? else {
        return end_unseen(o).because(Reason::EndUnknown);
    };
    let rendered = snapshot::rendering(o, basis)?.map_err(Pending::Failed)?;
    let objects = objects::write_all(o, &rendered.objects, JobSetStage::Fresh)?;
    apply(o)?;
    snapshot::note_applied(o, job, rendered)?;
    remember(o, job, Some(objects))?;
    Ok(vec![Report::Rendering])
}

/// Applies the JobSet without force.
fn apply(o: &Observed) -> Decided<()> {
    if o.effects.job_set_written {
        return Ok(());
    }
    let failure = o.failure_of(Action::ApplyJobSet {
        over: None,
        held: false,
        recreated: snapshot::is_to_recreate(o),
    })?;
    if failure.is_contested() {
        // Fields of another manager, or another controller's owner reference: another client created a JobSet of this name.
        let owner = o.known_or_failure(&o.observations.owner, || Observe::JobSetOwner);
        if let Ok(Owner::Foreign(foreign)) = owner.because(Reason::ForeignJobSet)? {
            return Err(Pending::Failed(foreign.clone()));
        }
    }
    Err(Pending::Failed(failure))
}

/// Ends a TrainJob whose JobSet ran and was deleted, without its end being observed.
fn end_unseen(o: &Observed) -> Decided<Reports> {
    if !o.effects.end_noted {
        o.known(&o.observations.absence, || Observe::Absence)?;
        return o.act(Action::NoteUnseenEnd);
    }
    let unknown = ReconcileFailure::Blocked(Finding::EndIsUnknown);
    Ok(vec![Report::Failure(unknown)])
}
