//! The snapshot that a TrainJob is rendered from, and its marks.

use super::{Because as _, Decided, Pending, Report, Reports};
use crate::reconcile::{
    failure::{Class, Finding, ReconcileFailure},
    object_ref::ObjectRef,
    observed::{JobFacts, Observed, RenderedFacts, Rendering, SnapshotFacts},
    step::{Action, Basis, Observe, Reason, RuntimeSource, SnapshotMark, Step},
};

/// Chooses the basis for a TrainJob without a JobSet, and saves its snapshot. `None` if its JobSet has run and may have ended.
pub(super) fn choose_for_new(o: &Observed, job: &JobFacts) -> Decided<Option<Basis>> {
    if job.has_run() {
        match o.known(&o.observations.snapshot, || Observe::Snapshot)? {
            Some(snapshot) => return choose_existing_for_new(o, job, snapshot),
            None if may_have_ended(o, job, None) => return Ok(None),
            None => {}
        }
    }
    let basis = RuntimeSource::Runtime.basis(job.has_run());
    let failure = match rendered_now(o, basis)? {
        Ok(rendered) if rendered.saved => return Ok(Some(basis)),
        Ok(rendered) => {
            let failure = o.failure_of(Action::CreateSnapshot(basis))?;
            if !failure.is_conflict() {
                return Err(Pending::Failed(failure));
            }
            let existing = o.known(&o.observations.snapshot, || Observe::Snapshot)?;
            if existing.as_ref().is_some_and(|it| is_unused(o, job, it)) {
                save(o, basis, rendered)?;
                return Ok(Some(basis));
            }
            failure
        }
        // The snapshot was made from an earlier state of the runtime.
        Err(failure) if failure.is_of_input() => failure,
        Err(failure) => return Err(Pending::Failed(failure)),
    };
    match o.known(&o.observations.snapshot, || Observe::Snapshot)? {
        Some(snapshot) => choose_existing_for_new(o, job, snapshot),
        None => Err(Pending::Failed(failure)),
    }
}

/// Whether no JobSet was created from the snapshot, for example because the API server refuses the runtime's pods. A runtime that was
/// corrected since then is followed.
fn is_unused(o: &Observed, job: &JobFacts, snapshot: &SnapshotFacts) -> bool {
    let had_job_set = job.had_job_set() || job.has_run() || o.initial.was_deleted();
    !had_job_set && !snapshot.started && !snapshot.recreate
}

/// Chooses the existing snapshot for a JobSet that is created or recreated, or the current runtime if nothing vouches for the snapshot. If the
/// last JobSet has run, the snapshot is marked first, so that a controller that restarts before the JobSet is recreated knows.
fn choose_existing_for_new(
    o: &Observed,
    job: &JobFacts,
    snapshot: &SnapshotFacts,
) -> Decided<Option<Basis>> {
    if may_have_ended(o, job, Some(snapshot)) {
        return Ok(None);
    }
    let recreate = o.initial.was_deleted() && !snapshot.recreate;
    let has_run = job.has_run() || snapshot.started;
    let is_marked = snapshot.started && !recreate;
    if has_run && !is_marked && !o.effects.job_set_written {
        let mark = SnapshotMark {
            started: true,
            recreate: recreate.then_some(true),
        };
        let at = snapshot.at.clone();
        let marked = o.act(Action::MarkSnapshot { mark, at });
        return marked.because(Reason::JobSetDeleted);
    }
    let source = if snapshot.trusted {
        RuntimeSource::Snapshot
    } else {
        o.known(&o.observations.runtime, || Observe::Runtime)?;
        RuntimeSource::Runtime
    };
    let basis = source.basis(snapshot.started);
    let rendered = rendering(o, basis)?.map_err(Pending::Failed)?;
    if snapshot.started && !rendered.saved {
        let unproven = ReconcileFailure::Blocked(Finding::UnprovenSnapshot);
        return Err(Pending::Failed(unproven));
    }
    save(o, basis, rendered)?;
    Ok(Some(basis))
}

/// Whether the deleted JobSet has run and may have ended. It has not if it was suspended, or was seen to be deleted before its end.
fn may_have_ended(o: &Observed, job: &JobFacts, snapshot: Option<&SnapshotFacts>) -> bool {
    let has_run = job.has_run() || snapshot.is_some_and(|snapshot| snapshot.started);
    let has_not_ended = job.is_suspended()
        || o.initial.was_deleted()
        || snapshot.is_some_and(|snapshot| snapshot.recreate);
    has_run && !has_not_ended
}

/// The basis of a suspended JobSet.
pub(super) struct RenderingChoice {
    /// `None` if the JobSet continues without a snapshot and a runtime.
    pub(super) basis: Option<Basis>,
    /// Whether the JobSet may change as a whole.
    pub(super) is_new: bool,
    pub(super) reports: Reports,
}

/// Chooses the basis for a suspended JobSet. The current runtime replaces a missing or unusable snapshot.
///
/// A JobSet that has never run is not frozen, and waits for everything that its rendering needs. Any other continues even without a
/// snapshot and a runtime; an unusable snapshot is then left unchanged, with a warning.
pub(super) fn choose_for_suspended(
    o: &Observed,
    job: &JobFacts,
    never_run: bool,
) -> Decided<RenderingChoice> {
    let failure = match o.known_or_failure(&o.observations.snapshot, || Observe::Snapshot)? {
        Ok(Some(snapshot)) => return choose_existing_for_suspended(o, job, snapshot, never_run),
        Ok(None) if never_run => return choose_current_runtime(o, Reports::new()),
        Ok(None) => return create_missing(o, job),
        Err(failure) => failure,
    };
    let is_foreign = failure.is(Class::Foreign);
    if !(failure.is(Class::Snapshot) || is_foreign && !never_run) {
        return Err(Pending::Failed(failure));
    }
    if never_run {
        let marks = o.known(&o.observations.snapshot_marks, || Observe::SnapshotMarks)?;
        let marks = marks.as_ref();
        if marks.is_some_and(|marks| marks.foreign.is_none() && !marks.started) {
            return choose_current_runtime(o, vec![Report::Failure(failure)]);
        }
    }
    let mut reports = vec![Report::Failure(failure)];
    match o.known_or_failure(&o.observations.runtime, || Observe::Runtime)? {
        Ok(()) => Ok(RenderingChoice {
            basis: Some(RuntimeSource::Runtime.started()),
            is_new: false,
            reports,
        }),
        Err(failure) if failure.is_of_input() && !never_run => {
            reports.push(Report::Failure(failure));
            Ok(RenderingChoice::nothing(reports))
        }
        Err(failure) => Err(Pending::Failed(failure)),
    }
}

impl RenderingChoice {
    fn nothing(reports: Reports) -> Self {
        Self {
            basis: None,
            is_new: false,
            reports,
        }
    }
}

/// Chooses the existing snapshot. If only the TrainJob's status shows that its JobSet has run, the snapshot is marked, because the counts
/// of the next JobSet replace the status.
fn choose_existing_for_suspended(
    o: &Observed,
    job: &JobFacts,
    snapshot: &SnapshotFacts,
    never_run: bool,
) -> Decided<RenderingChoice> {
    if job.has_run() {
        mark_started(o)?;
    }
    let current = current(o).unwrap_or(snapshot);
    if current.recreate {
        let at = current.at.clone();
        let mark = SnapshotMark::RECREATED;
        let marked = o.act(Action::MarkSnapshot { mark, at });
        return marked.because(Reason::JobSetRecreated);
    }
    // It is not known whether a JobSet from before plans and digests has run.
    let is_new = !snapshot.was_started && !job.has_run() && (snapshot.has_plan || never_run);
    Ok(RenderingChoice {
        basis: Some(RuntimeSource::Snapshot.basis(snapshot.was_started || job.has_run())),
        is_new,
        reports: Reports::new(),
    })
}

/// Chooses the current runtime, for a JobSet that has never run.
fn choose_current_runtime(o: &Observed, reports: Reports) -> Decided<RenderingChoice> {
    o.known(&o.observations.runtime, || Observe::Runtime)?;
    Ok(RenderingChoice {
        basis: Some(RuntimeSource::Runtime.basis(false)),
        is_new: true,
        reports,
    })
}

/// Creates the missing snapshot of a suspended JobSet that may have run, from the current runtime.
fn create_missing(o: &Observed, job: &JobFacts) -> Decided<RenderingChoice> {
    let basis = RuntimeSource::Runtime.started();
    match rendered_now(o, basis)? {
        Ok(rendered) => {
            // Only the patch that resumes the JobSet can vouch for the snapshot.
            if !rendered.saved && !job.desired.suspend {
                let created = o.act(Action::CreateSnapshot(basis));
                return created.because(Reason::SnapshotOutdated);
            }
            Ok(RenderingChoice {
                basis: Some(basis),
                is_new: false,
                reports: Reports::new(),
            })
        }
        Err(failure) if failure.is_of_input() => {
            Ok(RenderingChoice::nothing(vec![Report::Failure(failure)]))
        }
        Err(failure) => Err(Pending::Failed(failure)),
    }
}

/// Returns the rendering from the current runtime.
fn rendered_now(o: &Observed, basis: Basis) -> Decided<Result<&RenderedFacts, ReconcileFailure>> {
    match o.known_or_failure(&o.observations.runtime, || Observe::Runtime)? {
        Ok(()) => rendering(o, basis),
        Err(failure) => Ok(Err(failure)),
    }
}

/// Returns the result of a rendering.
pub(super) fn rendering(
    o: &Observed,
    basis: Basis,
) -> Decided<Result<&RenderedFacts, ReconcileFailure>> {
    match o.observations.rendering(basis) {
        Some(Rendering::Rendered(rendered)) => Ok(Ok(rendered)),
        Some(Rendering::Needs) => o.failed(Step::Observe(Observe::Lookups(basis))).map(Err),
        Some(Rendering::LookedUp) | None => {
            o.failed(Step::Observe(Observe::Rendering(basis))).map(Err)
        }
    }
}

/// Saves the snapshot of the rendering, unless it is saved.
pub(super) fn save(o: &Observed, basis: Basis, rendered: &RenderedFacts) -> Decided<()> {
    if rendered.saved {
        return Ok(());
    }
    let at = current(o).map(|snapshot| &snapshot.at);
    let marks = o
        .observations
        .snapshot_marks
        .as_ref()
        .and_then(Option::as_ref);
    let at = at.or_else(|| marks.map(|marks| &marks.at)).cloned();
    let action = match at {
        Some(at) => Action::ReplaceSnapshot { basis, at },
        None => Action::CreateSnapshot(basis),
    };
    o.act(action).because(Reason::SnapshotOutdated)
}

/// Returns the snapshot in the cluster.
fn current(o: &Observed) -> Option<&SnapshotFacts> {
    let found = o.observations.snapshot.as_ref().and_then(Option::as_ref);
    o.effects.saved.as_ref().or(found)
}

/// Marks the snapshot as started.
pub(super) fn mark_started(o: &Observed) -> Decided<()> {
    // An unusable snapshot is marked too.
    let marks = o
        .observations
        .snapshot_marks
        .as_ref()
        .and_then(Option::as_ref);
    let marks = marks.filter(|marks| marks.foreign.is_none());
    let current = current(o).map(|it| (it.started, &it.at));
    match current.or(marks.map(|it| (it.started, &it.at))) {
        Some((false, at)) => o.act(Action::MarkSnapshot {
            mark: SnapshotMark::STARTED,
            at: at.clone(),
        }),
        _ => Ok(()),
    }
}

/// Whether the snapshot is marked because its JobSet was deleted.
pub(super) fn is_to_recreate(o: &Observed) -> bool {
    current(o).is_some_and(|snapshot| snapshot.recreate)
}

/// Whether the reference created the snapshot, which then has no plan and lists no objects.
pub(super) fn is_of_reference(o: &Observed) -> bool {
    current(o).is_some_and(|snapshot| !snapshot.has_plan)
}

/// Returns the objects that the snapshot lists.
pub(super) fn listed(o: &Observed) -> &[ObjectRef] {
    current(o).map_or(&[], |snapshot| &snapshot.objects)
}

/// Notes facts that a restarted controller could not observe: that a JobSet which will expire has run, and that a deleted JobSet was
/// recreated.
pub(super) fn note_applied(o: &Observed, job: &JobFacts, rendered: &RenderedFacts) -> Decided<()> {
    let Some(snapshot) = current(o) else {
        return Ok(());
    };
    // If it is deleted again, a restarted controller recreates it too.
    if snapshot.recreate && o.current.has_any_job_set() {
        let (mark, at) = (SnapshotMark::RECREATED, snapshot.at.clone());
        let marked = o.act(Action::MarkSnapshot { mark, at });
        return marked.because(Reason::JobSetRecreated);
    }
    if rendered.expires && !job.desired.suspend {
        mark_started(o)?;
    }
    Ok(())
}
