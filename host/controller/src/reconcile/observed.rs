//! What is known of one TrainJob in the course of a reconcile. Plain facts: they can be copied, compared and hashed.
//!
//! A fact that was not asked for yet is `None`. Large values (the TrainJob, the snapshot, the rendered JobSet) are not in here: see
//! [`Bodies`](super::bodies::Bodies).

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use kube::api::ObjectMeta;

use super::failure::Failure;
use super::inputs::Inputs;
use super::object_ref::ObjectRef;
use super::status;
use super::step::{Action, Basis, Mark, Observe, Settle, Step};
use crate::watch::{JobSetState, TrainJobState, TrainJobStatus, Wishes};

/// What is known of one TrainJob.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Observed {
    /// The TrainJob when the reconcile began.
    pub(crate) job: StoredJob,
    /// Why the JobSet could not be decoded when the reconcile began.
    pub(crate) unreadable_job_set: Option<Failure>,
    /// What became of the TrainJob, as known when the reconcile began: it decides which way the reconcile takes.
    pub(crate) initial: Cached,
    /// The same as known now: the status says it, and marks that it makes untrue are removed.
    pub(crate) current: Cached,
    /// What the last reconcile left, if it was of the same TrainJob.
    pub(crate) last: Option<LastReconcile>,
    /// Whether something that the JobSet was rendered from has changed since.
    pub(crate) outdated: bool,
    /// What was asked for in this reconcile.
    pub(crate) asked: Asked,
    /// What was done in this reconcile.
    pub(crate) done: Done,
    /// What was tried in this reconcile and failed.
    pub(crate) failures: Vec<(Step, Failure)>,
}

/// A TrainJob as the store has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StoredJob {
    /// It does not exist.
    Missing,
    /// It can't be decoded.
    Unreadable(Failure),
    /// What it says of itself.
    Found(Arc<JobFacts>),
}

/// What a TrainJob says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct JobFacts {
    pub(crate) uid: Box<str>,
    pub(crate) created: Timestamp,
    pub(crate) deleting: bool,
    pub(crate) wishes: Wishes,
    pub(crate) status: TrainJobStatus,
    /// A number that differs if what the TrainJob is rendered from differs.
    pub(crate) fingerprint: u64,
}

impl JobFacts {
    /// The facts of a TrainJob as the store has it.
    pub(super) fn of(job: &TrainJobState) -> Self {
        Self {
            uid: job.uid.clone(),
            created: job.created,
            deleting: job.deleting,
            wishes: job.wishes.clone(),
            status: job.status.clone(),
            fingerprint: job.fingerprint(),
        }
    }

    /// Whether the status says that a JobSet of it has run.
    pub(crate) fn has_run(&self) -> bool {
        status::has_run(&self.status)
    }

    /// Whether the status says that it had a JobSet.
    pub(crate) fn had_job_set(&self) -> bool {
        !self.status.jobs_status.is_empty()
    }

    /// Whether the status says that it is suspended: then its JobSet has not ended.
    pub(crate) fn is_suspended(&self) -> bool {
        self.status.is_true(status::SUSPENDED).is_some()
    }
}

/// What is known without asking of what became of a TrainJob.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cached {
    /// The JobSet of its name.
    pub(crate) job_set: StoredJobSet,
    /// The last JobSet of the TrainJob that is gone, if it is known how it went.
    pub(crate) departed: Option<Arc<JobSetState>>,
}

impl Cached {
    /// The JobSet, if it is the TrainJob's own.
    pub(crate) fn job_set(&self) -> Option<&JobSetState> {
        match &self.job_set {
            StoredJobSet::Ours(job_set) => Some(job_set),
            _ => None,
        }
    }

    /// Whether there is a JobSet of its name, whoever owns it.
    pub(crate) fn has_any_job_set(&self) -> bool {
        !matches!(self.job_set, StoredJobSet::Missing)
    }

    /// Whether pods of its JobSet may run.
    pub(crate) fn may_run(&self) -> bool {
        let runs = |job_set: &JobSetState| !job_set.suspended && job_set.end.is_none();
        self.job_set().is_some_and(runs)
    }

    /// The JobSet that the status is written from: one that is gone counts if it ended.
    pub(crate) fn reported(&self) -> Option<&JobSetState> {
        let ended = self.departed.as_deref().filter(|last| last.end.is_some());
        self.job_set().or(ended)
    }

    /// Whether the JobSet was seen to be deleted before it ended.
    pub(crate) fn was_deleted(&self) -> bool {
        self.departed
            .as_ref()
            .is_some_and(|last| last.end.is_none())
    }
}

/// A JobSet as the store has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StoredJobSet {
    /// There is none of the TrainJob's name.
    Missing,
    /// It can't be decoded.
    Unreadable,
    /// It is not the TrainJob's.
    Foreign,
    /// It is the TrainJob's.
    Ours(Arc<JobSetState>),
}

/// What a reconcile left when all was as the TrainJob wants it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LastReconcile {
    /// The TrainJob's UID.
    pub(crate) uid: Box<str>,
    /// The TrainJob's fingerprint.
    pub(crate) fingerprint: u64,
    /// The version of its JobSet.
    pub(crate) job_set: Option<u64>,
    /// The objects beside the JobSet; `None` if they were not looked at since the start.
    pub(crate) objects: Option<Arc<[AppliedObject]>>,
}

/// An object beside a JobSet, with what was applied last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AppliedObject {
    pub(crate) object: ObjectRef,
    /// `None` if that is not known, or nothing was applied.
    pub(crate) applied: Option<Applied>,
}

impl AppliedObject {
    /// Objects of which only the references are known.
    pub(crate) fn unknown(objects: &[ObjectRef]) -> Arc<[Self]> {
        let unknown = |object: &ObjectRef| Self {
            object: object.clone(),
            applied: None,
        };
        objects.iter().map(unknown).collect()
    }

    /// Whether the object was applied last at that version.
    pub(crate) fn is_at(&self, version: Option<&str>) -> bool {
        let applied = self.applied.as_ref();
        applied.is_some_and(|applied| applied.version.as_deref() == version)
    }

    /// Whether this content was applied last.
    pub(crate) fn has(&self, content: u64) -> bool {
        let applied = self.applied.as_ref();
        applied.is_some_and(|applied| applied.content == content)
    }
}

/// What was applied of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Applied {
    /// A number that differs if the content does.
    pub(crate) content: u64,
    /// The version that the object had then.
    pub(crate) version: Option<Box<str>>,
}

/// What was asked for in this reconcile; `None` if it was not yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Asked {
    /// The digest of what the TrainJob is rendered from.
    pub(crate) inputs: Option<Inputs>,
    /// The TrainJob was read and is valid.
    pub(crate) train_job: Option<()>,
    /// The TrainJob is still what the store has.
    pub(crate) live_train_job: Option<()>,
    /// The TrainJob is still what the store has, and has no JobSet.
    pub(crate) absence: Option<()>,
    /// The snapshot; `Some(None)` if there is none.
    pub(crate) snapshot: Option<Option<SnapshotFacts>>,
    /// The marks of the snapshot, without what it holds.
    pub(crate) snapshot_marks: Option<Option<SnapshotMarks>>,
    /// The runtime as it is now was read.
    pub(crate) runtime: Option<()>,
    /// What the renderings came to.
    pub(crate) renderings: Vec<(Basis, Rendering)>,
    /// How often something was looked up for them; plugins may ask for a bounded number of objects.
    pub(crate) rounds: usize,
    /// The objects that the snapshot lists.
    pub(crate) listed: Option<Arc<[AppliedObject]>>,
    /// What was found of them.
    pub(crate) listed_objects: Vec<(ObjectRef, Look)>,
    /// Who owns the JobSet of the TrainJob's name.
    pub(crate) owner: Option<Owner>,
    /// The suspended JobSet as the API server has it.
    pub(crate) live: Option<LiveJobSet>,
    /// What the JobSet would have to change for its pods to be placed as wanted.
    pub(crate) placement: Option<Placement>,
    /// The Jobs of the JobSet that have what was removed from the placement of their pods.
    pub(crate) jobs: Option<Vec<OldJob>>,
    /// Another JobSet could be created in the place of the one that exists.
    pub(crate) creatable: Option<()>,
}

/// What was done in this reconcile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Done {
    /// What changes from then on makes the rendering outdated.
    pub(crate) begun: bool,
    /// The snapshot that was written in the place of a missing or unusable one.
    pub(crate) saved: Option<SnapshotFacts>,
    /// The JobSet was changed so that its Jobs lose what was removed from the placement of their pods.
    pub(crate) relocated: bool,
    /// The JobSet was applied, suspended or unsuspended.
    pub(crate) job_set_written: bool,
    /// The JobSet was deleted.
    pub(crate) job_set_deleted: bool,
    /// It was noted that the JobSet ended unseen.
    pub(crate) end_noted: bool,
    /// What was left is known to the next reconcile.
    pub(crate) remembered: bool,
    /// What is kept of the TrainJob in memory is up to date.
    pub(crate) settled: bool,
    /// The status was written.
    pub(crate) status_written: bool,
}

/// What decisions need of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SnapshotFacts {
    pub(crate) at: Version,
    /// Whether it said that its JobSet has run when it was read.
    pub(crate) was_started: bool,
    /// Whether it says so now.
    pub(crate) started: bool,
    /// Whether it says that its JobSet was deleted and is to be created again.
    pub(crate) recreate: bool,
    /// Whether it has a plan: one that the reference created has none.
    pub(crate) has_plan: bool,
    /// The objects beside the JobSet.
    pub(crate) objects: Arc<[ObjectRef]>,
}

/// The marks of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SnapshotMarks {
    pub(crate) at: Version,
    /// Why it is not the TrainJob's, if it is not.
    pub(crate) foreign: Option<Failure>,
    pub(crate) started: bool,
    pub(crate) recreate: bool,
}

/// Which version of which object something was decided for: a write that is preconditioned on it fails if the object has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Version {
    pub(crate) uid: Option<Box<str>>,
    pub(crate) version: Option<Box<str>>,
}

impl Version {
    /// That of an object.
    pub(crate) fn of(metadata: &ObjectMeta) -> Self {
        Self {
            uid: metadata.uid.as_deref().map(Into::into),
            version: metadata.resource_version.as_deref().map(Into::into),
        }
    }
}

/// What a rendering came to. One that failed is among the failures.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Rendering {
    /// Plugins ask for objects of the cluster.
    Needs,
    /// Those were looked up: it is rendered again.
    LookedUp,
    /// It has a result.
    Rendered(RenderedFacts),
}

/// What decisions need of a rendering.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RenderedFacts {
    /// Whether the snapshot in the cluster is the one that it was rendered from.
    pub(crate) saved: bool,
    /// What a JobSet says that waits and was rendered from the same.
    pub(crate) inputs: Box<str>,
    /// Whether the JobSet is deleted by itself when it has ended.
    pub(crate) expires: bool,
    /// The objects beside the JobSet, in their order.
    pub(crate) objects: Vec<RenderedObjectFacts>,
}

/// What decisions need of an object beside the JobSet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RenderedObjectFacts {
    pub(crate) object: ObjectRef,
    /// A number that differs if the content does.
    pub(crate) content: u64,
    /// Whether it holds keys that are made when it is created.
    pub(crate) has_keys: bool,
    /// What was found of it.
    pub(crate) look: Option<Look>,
    /// Whether it was written in this reconcile, and what is known of it then.
    pub(crate) written: Option<Option<Applied>>,
}

/// What was found of an object in the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Look {
    /// It does not exist.
    Missing,
    /// It is the TrainJob's, at this version.
    Ours(Option<Box<str>>),
    /// It is not the TrainJob's, or is being deleted.
    Unusable(Failure),
    /// No loaded plugin emits objects of its kind, so it was not asked for.
    NotEmitted,
}

/// Who owns the JobSet of a TrainJob's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// The TrainJob, or nobody, since it is gone.
    OursOrGone,
    /// Another owner.
    Foreign(Failure),
}

/// What decisions need of a suspended JobSet, as the API server has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LiveJobSet {
    pub(crate) at: Version,
    /// Whether it says that it was unsuspended before.
    pub(crate) started: bool,
    /// Whether pods of it run or are about to end.
    pub(crate) active: bool,
    /// What it was rendered from, if it says so.
    pub(crate) inputs: Option<Box<str>>,
    /// Whether entries were removed from the placement of its pods which its Jobs may still have.
    pub(crate) removed: bool,
}

/// What a JobSet would have to change for its pods to be placed as wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Placement {
    /// Whether its Jobs may have entries that are not wanted.
    pub(crate) loses: bool,
    /// Whether its pod templates change.
    pub(crate) moves: bool,
    /// Whether the JobSet notes already what its Jobs have to lose.
    pub(crate) noted: bool,
}

/// A Job that has what was removed from the placement of its pods.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OldJob {
    pub(crate) name: Box<str>,
    pub(crate) uid: Option<Box<str>>,
    pub(crate) deleting: bool,
}

/// What an observation found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fact {
    /// What was asked is so.
    Holds,
    Inputs(Inputs),
    Snapshot(Option<SnapshotFacts>),
    SnapshotMarks(Option<SnapshotMarks>),
    Rendering(Rendering),
    Listed(Arc<[AppliedObject]>),
    Object(Look),
    Owner(Owner),
    JobSet(LiveJobSet),
    Placement(Placement),
    Jobs(Vec<OldJob>),
}

/// What an action left.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Effect {
    /// It was done.
    Done,
    /// The snapshot was written.
    Snapshot(SnapshotFacts),
    /// The object has this version now.
    At(Version),
}

/// The most steps of a reconcile without objects and Jobs, and for each of them.
const MOST_STEPS: usize = 64;
const STEPS_FOR_EACH: usize = 4;

impl Observed {
    /// The most steps that a reconcile takes which knows this.
    pub(crate) fn most_steps(&self) -> usize {
        let Asked {
            renderings,
            listed_objects,
            jobs,
            rounds,
            ..
        } = &self.asked;
        let rendered = renderings.iter().map(|(_, rendering)| match rendering {
            Rendering::Rendered(rendered) => rendered.objects.len(),
            Rendering::Needs | Rendering::LookedUp => 0,
        });
        let jobs = jobs.as_ref().map_or(0, Vec::len);
        let each = rendered.sum::<usize>() + listed_objects.len() + jobs;
        MOST_STEPS + STEPS_FOR_EACH * each + 2 * rounds
    }

    /// Takes what a step found out or left. Nothing else changes what is known, but the stores.
    pub(crate) fn learn_fact(&mut self, what: &Observe, found: Result<Fact, Failure>) {
        match found {
            Ok(fact) => self.asked.learn(what, fact),
            Err(failure) => self.failures.push((Step::Observe(what.clone()), failure)),
        }
    }

    /// Takes what an action left.
    pub(crate) fn learn_effect(&mut self, action: &Action, left: Result<Effect, Failure>) {
        match left {
            Ok(effect) => self.succeeded(action, effect),
            Err(failure) => {
                // Something changed in between: it is looked at again before the next decision.
                match action {
                    Action::CreateSnapshot(_) if failure.is_conflict() => {
                        self.asked.snapshot = None;
                    }
                    Action::CreateObject(object) if failure.may_exist() => {
                        self.asked.object(object, |object| object.look = None);
                    }
                    _ => {}
                }
                self.failures.push((Step::Act(action.clone()), failure));
            }
        }
    }

    fn succeeded(&mut self, action: &Action, effect: Effect) {
        let Self { asked, done, .. } = self;
        match (action, effect) {
            (Action::Begin, _) => done.begun = true,
            (Action::CreateSnapshot(basis), Effect::Snapshot(saved)) => {
                asked.saved(*basis);
                done.saved = Some(saved);
            }
            (Action::ReplaceSnapshot { basis, .. }, Effect::Snapshot(saved)) => {
                asked.saved(*basis);
                // What else it is marked with stays.
                let replaced = asked.snapshot.as_ref().and_then(Option::as_ref);
                let recreate = replaced.is_some_and(|replaced| replaced.recreate);
                done.saved = Some(SnapshotFacts { recreate, ..saved });
            }
            (Action::MarkSnapshot { mark, .. }, Effect::At(at)) => {
                let snapshots = asked.snapshot.iter_mut().flatten().chain(&mut done.saved);
                for snapshot in snapshots {
                    snapshot.at = at.clone();
                    mark.set(&mut snapshot.started, &mut snapshot.recreate);
                }
                for marks in asked.snapshot_marks.iter_mut().flatten() {
                    marks.at = at.clone();
                    mark.set(&mut marks.started, &mut marks.recreate);
                }
            }
            (Action::ApplyObject { object, .. }, Effect::At(at)) => asked.object(object, |it| {
                it.written = Some(Some(Applied {
                    content: it.content,
                    version: at.version.clone(),
                }));
            }),
            (Action::CreateObject(object), _) => {
                asked.object(object, |it| it.written = Some(None));
            }
            (Action::ApplyJobSet { held: true, .. } | Action::Relocate(_), _) => {
                done.relocated = true;
                (asked.live, asked.placement, asked.jobs) = (None, None, None);
            }
            (Action::ApplyJobSet { .. } | Action::Suspend { .. } | Action::Resume(_), _) => {
                done.job_set_written = true;
            }
            (Action::DeleteJobSet(_), _) => done.job_set_deleted = true,
            (Action::DeleteJob { name, .. }, _) => {
                let jobs = asked.jobs.iter_mut().flatten();
                jobs.filter(|job| job.name == *name)
                    .for_each(|job| job.deleting = true);
            }
            (Action::NoteUnseenEnd, _) => done.end_noted = true,
            (Action::Remember(_), _) => done.remembered = true,
            (Action::Settle(Settle { .. }), _) => done.settled = true,
            (Action::WriteStatus(_), _) => done.status_written = true,
            (Action::ForgetDeparted, _) => self.current.departed = None,
            // No action of those leaves anything else.
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

impl Asked {
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
            (Observe::ListedObject(object), Fact::Object(look)) => {
                self.listed_objects.push((object.clone(), look));
            }
            (Observe::Object(object), Fact::Object(look)) => {
                self.object(object, |it| it.look = Some(look));
            }
            (Observe::JobSetOwner, Fact::Owner(owner)) => self.owner = Some(owner),
            (Observe::LiveJobSet { .. }, Fact::JobSet(live)) => {
                (self.live, self.placement) = (Some(live), None);
            }
            (Observe::Placement(_), Fact::Placement(placement)) => {
                self.placement = Some(placement);
            }
            (Observe::Jobs, Fact::Jobs(jobs)) => self.jobs = Some(jobs),
            (Observe::Creatable { .. }, _) => self.creatable = Some(()),
            // Each observation finds its own fact.
            _ => {}
        }
    }

    /// The rendering on that basis.
    pub(crate) fn rendering(&self, basis: Basis) -> Option<&Rendering> {
        let mut renderings = self.renderings.iter();
        renderings.find_map(|(of, rendering)| (*of == basis).then_some(rendering))
    }

    fn saved(&mut self, basis: Basis) {
        for (of, rendering) in &mut self.renderings {
            if let (true, Rendering::Rendered(rendered)) = (*of == basis, rendering) {
                rendered.saved = true;
            }
        }
    }

    /// Changes what is known of an object of the latest rendering: the one that is written.
    fn object(&mut self, object: &ObjectRef, change: impl FnOnce(&mut RenderedObjectFacts)) {
        if let Some((_, Rendering::Rendered(rendered))) = self.renderings.last_mut() {
            let mut objects = rendered.objects.iter_mut();
            if let Some(found) = objects.find(|it| it.object == *object) {
                change(found);
            }
        }
    }
}

impl Mark {
    fn set(self, started: &mut bool, recreate: &mut bool) {
        *started |= self.started;
        *recreate = self.recreate.unwrap_or(*recreate);
    }
}
