//! A simulated cluster with one TrainJob. It answers observations, carries out actions, and fails the test if an action is forbidden.

mod act;
mod observe;

use std::{collections::BTreeMap, sync::Arc};

use trainyard_model::object::ApplyMode;

use super::{counts, failure, now};
use crate::{
    reconcile::{
        decide::{Decision, End, decide},
        failure::{Class, ReconcileFailure},
        inputs::Inputs,
        last_reconcile::{AppliedObject, LastReconcile},
        object_ref::ObjectRef,
        object_version::ObjectVersion,
        observed::{
            CachedJobSet, Effect, Effects, Fact, JobFacts, LiveJobSet, ObjectState, Observations,
            Observed, OldJob, Owner, Placement, RenderedFacts, RenderedObjectFacts, Rendering,
            SnapshotFacts, SnapshotMarks, StoredJob, StoredJobSet,
        },
        status,
        step::{Action, Basis, InterestChange, Observe, PlacementSource, RuntimeSource, Step},
    },
    watch::JobSetState,
};

/// A cluster with one TrainJob.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) job: JobFacts,
    /// Whether the TrainJob in the store is outdated.
    pub(super) stale: bool,
    pub(super) job_set: Option<SimJobSet>,
    pub(super) snapshot: Option<SimSnapshot>,
    /// Whether the runtime exists.
    pub(super) runtime: bool,
    /// How a rendering fails.
    pub(super) rendering: Option<Class>,
    /// The number of rounds of lookups of a rendering.
    pub(super) needs: usize,
    /// Whether JobSets expire after their end.
    pub(super) expires: bool,
    /// The wanted placement of the pods.
    pub(super) placement: u8,
    /// The objects that are rendered.
    pub(super) rendered: Vec<ObjectRef>,
    /// The objects that exist.
    pub(super) objects: BTreeMap<ObjectRef, SimObject>,
    /// The Jobs with an earlier placement.
    pub(super) jobs: Vec<OldJob>,
    /// Whether JobSet lets all fields of a suspended JobSet change.
    pub(super) mutable: bool,
    /// The steps of the next reconcile that fail, with the class of the error.
    pub(super) faults: BTreeMap<usize, Class>,
    /// What the controller keeps in memory.
    pub(super) last: Option<LastReconcile>,
    pub(super) deleted_job_set: Option<Arc<JobSetState>>,
    pub(super) outdated: bool,
    /// Whether the last JobSet had ended when it was deleted.
    pub(super) has_ended: bool,
    version: u64,
}

#[derive(Clone, Debug)]
pub(super) struct SimJobSet {
    pub(super) ours: bool,
    pub(super) uid: Box<str>,
    pub(super) version: u64,
    pub(super) suspended: bool,
    /// Whether it was ever unsuspended.
    pub(super) has_run: bool,
    /// Whether it is marked as started.
    pub(super) started: bool,
    pub(super) inputs: Option<Box<str>>,
    pub(super) recreated: bool,
    pub(super) active: bool,
    pub(super) completed: bool,
    pub(super) placement: u8,
    /// Whether it notes entries that its Jobs have to lose.
    pub(super) removed: bool,
}

#[derive(Clone, Debug)]
pub(super) struct SimSnapshot {
    pub(super) ours: bool,
    pub(super) broken: bool,
    pub(super) version: u64,
    pub(super) started: bool,
    pub(super) recreate: bool,
    /// The fingerprint of the TrainJob that was rendered last.
    pub(super) fingerprint: u64,
    pub(super) objects: Arc<[ObjectRef]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SimObject {
    pub(super) ours: bool,
    pub(super) version: u64,
    /// The fingerprint of the TrainJob that it was rendered from.
    pub(super) content: u64,
}

impl World {
    /// Returns a cluster with a new TrainJob.
    pub(super) fn new(job: JobFacts) -> Self {
        Self {
            job,
            stale: false,
            job_set: None,
            snapshot: None,
            runtime: true,
            rendering: None,
            needs: 0,
            expires: false,
            placement: 0,
            rendered: Vec::new(),
            objects: BTreeMap::new(),
            jobs: Vec::new(),
            mutable: true,
            faults: BTreeMap::new(),
            last: None,
            deleted_job_set: None,
            outdated: false,
            has_ended: false,
            version: 1,
        }
    }

    /// The version of the last change.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// The state of the JobSet as a watch shows it.
    fn state(&self) -> Option<JobSetState> {
        let found = self.job_set.as_ref()?;
        let active = if found.active { 1 } else { 0 };
        let counts = if found.has_run {
            counts(active)
        } else {
            Box::default()
        };
        let end = found.completed.then(|| {
            let end = status::unseen_end(&self.job.status, now());
            Box::new(end)
        });
        let mut state = JobSetState::for_tests(end, counts).at(found.version);
        state.uid = found.uid.clone();
        state.owner = found.ours.then(|| self.job.uid.clone());
        state.suspended = found.suspended;
        state.inputs = found.inputs.clone();
        state.recreated = found.recreated;
        Some(state)
    }

    fn cached(&self) -> CachedJobSet {
        let job_set = match self.state() {
            None => StoredJobSet::Missing,
            Some(state) if state.owner.is_none() => StoredJobSet::Foreign,
            Some(state) => StoredJobSet::Ours(Arc::new(state)),
        };
        let deleted_job_set = self.deleted_job_set.clone();
        CachedJobSet {
            job_set,
            deleted_job_set,
        }
    }

    /// Deletes the JobSet; with `seen`, the controller observes the deletion.
    pub(super) fn delete_job_set(&mut self, seen: bool) {
        let Some(last) = self.state() else {
            return;
        };
        self.next_version();
        self.has_ended = last.end.is_some();
        self.deleted_job_set = seen.then(|| Arc::new(last));
        self.job_set = None;
    }

    /// Reconciles once.
    pub(super) fn reconcile(&mut self) -> End {
        let initial = self.cached();
        let mut o = Observed {
            job: StoredJob::Found(Arc::new(self.job.clone())),
            unreadable_job_set: None,
            current: initial.clone(),
            initial,
            last: self.last.clone(),
            outdated: self.outdated,
            persists: false,
            annotated: None,
            observations: Observations::default(),
            effects: Effects::default(),
            failures: Vec::new(),
        };
        let mut taken = 0;
        loop {
            let (step, _) = match decide(&o, now()) {
                Decision::Done(end) => {
                    self.faults.clear();
                    return end;
                }
                Decision::Next(step, reason) => (step, reason),
            };
            assert!(taken <= o.most_steps(), "no end: {step:?} after {o:#?}");
            let failed = o.failures.iter().any(|(of, _)| *of == step);
            assert!(!failed, "tried again: {step:?} after {o:#?}");
            let fault = self.faults.get(&taken).copied();
            let fault = fault.filter(|_| may_fail(&step));
            match &step {
                Step::Observe(what) => {
                    assert!(!is_known(&o, what), "known: {what:?} in {o:#?}");
                    let found = match fault {
                        Some(class) => Err(failure(class)),
                        None => self.observe(what, &o),
                    };
                    o.learn_fact(what, found);
                }
                Step::Act(action) => {
                    let left = match fault {
                        Some(class) => Err(failure(class)),
                        None => self.act(action, &o),
                    };
                    o.learn_effect(action, left);
                }
            }
            o.current = self.cached();
            taken += 1;
        }
    }
}

impl SimSnapshot {
    fn facts(&self) -> SnapshotFacts {
        SnapshotFacts {
            at: version("snapshot", self.version),
            was_started: self.started,
            started: self.started,
            recreate: self.recreate,
            trusted: true,
            has_plan: true,
            objects: self.objects.clone(),
        }
    }
}

fn version(uid: &str, version: u64) -> ObjectVersion {
    ObjectVersion {
        uid: Some(uid.into()),
        version: Some(version.to_string().into()),
    }
}

/// Whether a step may fail. Steps in memory cannot.
fn may_fail(step: &Step) -> bool {
    match step {
        Step::Observe(what) => *what != Observe::Inputs,
        Step::Act(action) => is_write(action),
    }
}

/// Whether an action writes to the cluster.
fn is_write(action: &Action) -> bool {
    !matches!(
        action,
        Action::Begin
            | Action::NoteUnseenEnd
            | Action::Remember(_)
            | Action::UpdateMemory(_)
            | Action::ForgetDeletedJobSet
    )
}

/// Whether the observation was made already.
fn is_known(o: &Observed, what: &Observe) -> bool {
    let observations = &o.observations;
    let looked = |object: &ObjectRef| {
        let Some((_, Rendering::Rendered(rendered))) = observations.renderings.last() else {
            return false;
        };
        let mut objects = rendered.objects.iter();
        objects.any(|it| it.object == *object && it.state.is_some())
    };
    match what {
        Observe::Inputs => observations.inputs.is_some(),
        Observe::TrainJob => observations.train_job.is_some(),
        Observe::LiveTrainJob => observations.live_train_job.is_some(),
        Observe::Absence => observations.absence.is_some(),
        Observe::Snapshot => observations.snapshot.is_some(),
        Observe::SnapshotMarks => observations.snapshot_marks.is_some(),
        Observe::Runtime => observations.runtime.is_some(),
        Observe::Rendering(basis) => {
            matches!(
                observations.rendering(*basis),
                Some(Rendering::Rendered(_) | Rendering::Needs)
            )
        }
        Observe::Lookups(basis) => observations.rendering(*basis) != Some(&Rendering::Needs),
        Observe::ListedObjects => observations.listed.is_some(),
        Observe::ListedObject(object) => observations
            .listed_objects
            .iter()
            .any(|(of, _)| of == object),
        Observe::Object(object) => looked(object),
        Observe::JobSetOwner => observations.owner.is_some(),
        Observe::LiveJobSet { .. } => observations.live.is_some(),
        Observe::Placement(_) => observations.placement.is_some(),
        Observe::Jobs => observations.jobs.is_some(),
        Observe::Creation => observations.creation.is_some(),
        Observe::Creatable { .. } => observations.creatable.is_some(),
    }
}
