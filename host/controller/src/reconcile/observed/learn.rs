//! Updates of the known state after each step, for the controller and for simulated clusters.

use std::sync::Arc;

use super::{
    LiveJobSet, ObjectState, Observations, Observed, OldJob, Owner, Placement, RenderedObjectFacts,
    Rendering, SnapshotFacts, SnapshotMarks,
};
use crate::reconcile::{
    failure::ReconcileFailure,
    inputs::Inputs,
    last_reconcile::{Applied, AppliedObject},
    object_ref::ObjectRef,
    object_version::ObjectVersion,
    step::{Action, Basis, Observe, SnapshotMark, Step},
};

/// The result of an observation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fact {
    /// The observed condition holds.
    Holds,
    Inputs(Inputs),
    Snapshot(Option<SnapshotFacts>),
    SnapshotMarks(Option<SnapshotMarks>),
    Rendering(Rendering),
    Listed(Arc<[AppliedObject]>),
    Object(ObjectState),
    Owner(Owner),
    JobSet(LiveJobSet),
    Placement(Placement),
    Jobs(Vec<OldJob>),
    Creation(Option<ReconcileFailure>),
}

/// The result of an action.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Effect {
    /// It was done.
    Done,
    /// The snapshot was written.
    Snapshot(SnapshotFacts),
    /// The object has this version now.
    At(ObjectVersion),
}

/// The most steps of a reconcile without objects and Jobs, and for each of them.
const MOST_STEPS: usize = 64;
const STEPS_FOR_EACH: usize = 4;

impl Observed {
    /// Returns the most steps that a reconcile in this state takes.
    pub(crate) fn most_steps(&self) -> usize {
        let Observations {
            renderings,
            listed_objects,
            jobs,
            rounds,
            ..
        } = &self.observations;
        let rendered = renderings.iter().map(|(_, rendering)| match rendering {
            Rendering::Rendered(rendered) => rendered.objects.len(),
            Rendering::Needs | Rendering::LookedUp => 0,
        });
        let jobs = jobs.as_ref().map_or(0, Vec::len);
        let each = rendered.sum::<usize>() + listed_objects.len() + jobs;
        MOST_STEPS + STEPS_FOR_EACH * each + 2 * rounds
    }

    /// Adds the result of an observation. Apart from this and [`Self::learn_effect`], only the stores change the known state.
    pub(crate) fn learn_fact(&mut self, what: &Observe, found: Result<Fact, ReconcileFailure>) {
        match found {
            Ok(fact) => self.observations.learn(what, fact),
            Err(failure) => self.failures.push((Step::Observe(what.clone()), failure)),
        }
    }

    /// Adds the result of an action.
    pub(crate) fn learn_effect(&mut self, action: &Action, left: Result<Effect, ReconcileFailure>) {
        match left {
            Ok(effect) => self.succeeded(action, effect),
            Err(failure) => {
                // The object changed concurrently, and is read again before the next decision.
                match action {
                    Action::CreateSnapshot(_) if failure.is_conflict() => {
                        self.observations.snapshot = None;
                    }
                    Action::CreateObject(object) if failure.may_exist() => {
                        self.observations
                            .update_object(object, |object| object.state = None);
                    }
                    _ => {}
                }
                self.failures.push((Step::Act(action.clone()), failure));
            }
        }
    }

    fn succeeded(&mut self, action: &Action, effect: Effect) {
        let Self {
            observations,
            effects,
            ..
        } = self;
        match (action, effect) {
            (Action::Begin, _) => effects.begun = true,
            (Action::CreateSnapshot(basis), Effect::Snapshot(saved)) => {
                observations.note_saved(*basis);
                effects.saved = Some(saved);
            }
            (Action::ReplaceSnapshot { basis, .. }, Effect::Snapshot(saved)) => {
                observations.note_saved(*basis);
                // Its other marks stay.
                let replaced = observations.snapshot.as_ref().and_then(Option::as_ref);
                let recreate = replaced.is_some_and(|replaced| replaced.recreate);
                effects.saved = Some(SnapshotFacts { recreate, ..saved });
            }
            (Action::MarkSnapshot { mark, .. }, Effect::At(at)) => {
                let snapshots = observations
                    .snapshot
                    .iter_mut()
                    .flatten()
                    .chain(&mut effects.saved);
                for snapshot in snapshots {
                    snapshot.at = at.clone();
                    mark.set(&mut snapshot.started, &mut snapshot.recreate);
                }
                for marks in observations.snapshot_marks.iter_mut().flatten() {
                    marks.at = at.clone();
                    mark.set(&mut marks.started, &mut marks.recreate);
                }
            }
            (Action::ApplyObject { object, .. }, Effect::At(at)) => {
                observations.update_object(object, |it| {
                    it.written = Some(Some(Applied {
                        content: it.content,
                        version: at.version.clone(),
                    }));
                })
            }
            (Action::CreateObject(object), _) => {
                observations.update_object(object, |it| it.written = Some(None));
            }
            (Action::ApplyJobSet { held: true, .. } | Action::Relocate(_), _) => {
                effects.relocated = true;
                (observations.live, observations.placement, observations.jobs) = (None, None, None);
            }
            (Action::ApplyJobSet { .. } | Action::Suspend { .. } | Action::Resume(_), _) => {
                effects.job_set_written = true;
            }
            (Action::DeleteJobSet(_), _) => effects.job_set_deleted = true,
            (Action::DeleteJob { name, .. }, _) => {
                let jobs = observations.jobs.iter_mut().flatten();
                jobs.filter(|job| job.name == *name)
                    .for_each(|job| job.deleting = true);
            }
            (Action::NoteUnseenEnd, _) => effects.end_noted = true,
            (Action::Remember(_), _) => effects.remembered = true,
            (Action::UpdateMemory(_), _) => effects.memory_updated = true,
            (Action::WriteStatus(_), _) => effects.status_written = true,
            (Action::WriteError(_), _) => effects.error_written = true,
            (Action::ForgetDeletedJobSet, _) => self.current.deleted_job_set = None,
            // These actions have no other effects.
            (
                Action::CreateSnapshot(_)
                | Action::ReplaceSnapshot { .. }
                | Action::MarkSnapshot { .. }
                | Action::ApplyObject { .. },
                _,
            ) => {}
        }
    }
}

impl Observations {
    fn learn(&mut self, what: &Observe, fact: Fact) {
        match (what, fact) {
            (Observe::Inputs, Fact::Inputs(inputs)) => self.inputs = Some(inputs),
            (Observe::TrainJob, _) => self.train_job = Some(()),
            (Observe::LiveTrainJob, _) => self.live_train_job = Some(()),
            (Observe::Absence, _) => self.absence = Some(()),
            (Observe::Snapshot, Fact::Snapshot(found)) => self.snapshot = Some(found),
            (Observe::SnapshotMarks, Fact::SnapshotMarks(found)) => {
                self.snapshot_marks = Some(found);
            }
            (Observe::Runtime, _) => self.runtime = Some(()),
            (Observe::Rendering(basis) | Observe::Lookups(basis), Fact::Rendering(rendering)) => {
                self.rounds += usize::from(rendering == Rendering::LookedUp);
                self.renderings.retain(|(of, _)| of != basis);
                self.renderings.push((*basis, rendering));
            }
            (Observe::ListedObjects, Fact::Listed(listed)) => self.listed = Some(listed),
            (Observe::ListedObject(object), Fact::Object(state)) => {
                self.listed_objects.push((object.clone(), state));
            }
            (Observe::Object(object), Fact::Object(state)) => {
                self.update_object(object, |it| it.state = Some(state));
            }
            (Observe::JobSetOwner, Fact::Owner(owner)) => self.owner = Some(owner),
            (Observe::LiveJobSet { .. }, Fact::JobSet(live)) => {
                (self.live, self.placement) = (Some(live), None);
            }
            (Observe::Placement(_), Fact::Placement(placement)) => {
                self.placement = Some(placement);
            }
            (Observe::Jobs, Fact::Jobs(jobs)) => self.jobs = Some(jobs),
            (Observe::Creation, Fact::Creation(failure)) => self.creation = Some(failure),
            (Observe::Creatable { .. }, _) => self.creatable = Some(()),
            // Each observation has its own kind of fact.
            (
                Observe::Inputs
                | Observe::Snapshot
                | Observe::SnapshotMarks
                | Observe::Rendering(_)
                | Observe::Lookups(_)
                | Observe::ListedObjects
                | Observe::ListedObject(_)
                | Observe::Object(_)
                | Observe::JobSetOwner
                | Observe::LiveJobSet { .. }
                | Observe::Placement(_)
                | Observe::Jobs
                | Observe::Creation,
                _,
            ) => {}
        }
    }

    /// Returns the rendering on that basis.
    pub(crate) fn rendering(&self, basis: Basis) -> Option<&Rendering> {
        let mut renderings = self.renderings.iter();
        renderings.find_map(|(of, rendering)| (*of == basis).then_some(rendering))
    }

    /// Notes that the snapshot of the rendering on that basis was saved.
    fn note_saved(&mut self, basis: Basis) {
        for (of, rendering) in &mut self.renderings {
            if let (true, Rendering::Rendered(rendered)) = (*of == basis, rendering) {
                rendered.saved = true;
            }
        }
    }

    /// Changes the facts of an object of the latest rendering, which is the one that is written.
    fn update_object(&mut self, object: &ObjectRef, change: impl FnOnce(&mut RenderedObjectFacts)) {
        if let Some((_, Rendering::Rendered(rendered))) = self.renderings.last_mut() {
            let mut objects = rendered.objects.iter_mut();
            if let Some(found) = objects.find(|it| it.object == *object) {
                change(found);
            }
        }
    }
}

impl SnapshotMark {
    fn set(self, started: &mut bool, recreate: &mut bool) {
        *started |= self.started;
        *recreate = self.recreate.unwrap_or(*recreate);
    }
}
