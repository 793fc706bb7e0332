//! A simulated cluster with one TrainJob. It answers observations and carries out actions, and fails the test if an action does what must
//! never be done.

use std::collections::BTreeMap;
use std::sync::Arc;

use trainyard_model::object::ApplyMode;

use super::{counts, failure, now};
use crate::reconcile::decide::{Decision, End, decide};
use crate::reconcile::failure::{Class, Failure};
use crate::reconcile::inputs::Inputs;
use crate::reconcile::object_ref::ObjectRef;
use crate::reconcile::observed::{
    AppliedObject, Asked, Cached, Done, Effect, Fact, JobFacts, LastReconcile, LiveJobSet, Look,
    Observed, OldJob, Owner, Placement, RenderedFacts, RenderedObjectFacts, Rendering,
    SnapshotFacts, SnapshotMarks, StoredJob, StoredJobSet, Version,
};
use crate::reconcile::status;
use crate::reconcile::step::{Action, Basis, Interests, Observe, Source, Step, Wanted};
use crate::watch::JobSetState;

/// A cluster with one TrainJob.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) job: JobFacts,
    /// Whether the TrainJob of the store is not what the API server has any more.
    pub(super) stale: bool,
    pub(super) job_set: Option<SimJobSet>,
    pub(super) snapshot: Option<SimSnapshot>,
    /// Whether there is a runtime.
    pub(super) runtime: bool,
    /// How a rendering fails.
    pub(super) rendering: Option<Class>,
    /// How often a rendering asks for more objects.
    pub(super) needs: usize,
    /// Whether JobSets are deleted by themselves once they have ended.
    pub(super) expires: bool,
    /// Where the pods are wanted.
    pub(super) placement: u8,
    /// The objects that are rendered.
    pub(super) rendered: Vec<ObjectRef>,
    /// The objects that exist.
    pub(super) objects: BTreeMap<ObjectRef, SimObject>,
    /// The Jobs with an earlier placement.
    pub(super) jobs: Vec<OldJob>,
    /// Whether JobSet lets all fields of a suspended JobSet change.
    pub(super) mutable: bool,
    /// Which steps of the next reconcile fail, and how.
    pub(super) faults: BTreeMap<usize, Class>,
    /// What the controller keeps in memory.
    pub(super) last: Option<LastReconcile>,
    pub(super) departed: Option<Arc<JobSetState>>,
    pub(super) outdated: bool,
    /// Whether the last JobSet had ended when it went.
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
    /// Whether it says so.
    pub(super) started: bool,
    pub(super) inputs: Option<Box<str>>,
    pub(super) recreated: bool,
    pub(super) active: bool,
    pub(super) completed: bool,
    pub(super) placement: u8,
    /// Whether it notes what its Jobs have to lose.
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
    /// The fingerprint of the TrainJob that it was made from.
    pub(super) content: u64,
}

impl World {
    /// A cluster with a TrainJob that just came.
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
            departed: None,
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

    fn cached(&self) -> Cached {
        let job_set = match self.state() {
            None => StoredJobSet::Missing,
            Some(state) if state.owner.is_none() => StoredJobSet::Foreign,
            Some(state) => StoredJobSet::Ours(Arc::new(state)),
        };
        let departed = self.departed.clone();
        Cached { job_set, departed }
    }

    /// The JobSet goes; with `seen`, the controller sees it.
    pub(super) fn delete_job_set(&mut self, seen: bool) {
        let Some(last) = self.state() else {
            return;
        };
        self.next_version();
        self.has_ended = last.end.is_some();
        self.departed = seen.then(|| Arc::new(last));
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
            asked: Asked::default(),
            done: Done::default(),
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

    fn observe(&mut self, what: &Observe, o: &Observed) -> Result<Fact, Failure> {
        let none = || failure(Class::Conflict);
        match what {
            Observe::Inputs => Ok(Fact::Inputs(Inputs::for_tests(&self.inputs()))),
            Observe::TrainJob => Ok(Fact::Holds),
            Observe::LiveTrainJob => self.is_current().map(|()| Fact::Holds),
            Observe::Absence => {
                self.is_current()?;
                if self.job_set.is_none() {
                    Ok(Fact::Holds)
                } else {
                    Err(none())
                }
            }
            Observe::Snapshot => match &self.snapshot {
                Some(snapshot) if !snapshot.ours => Err(failure(Class::Foreign)),
                Some(snapshot) if snapshot.broken => Err(failure(Class::Snapshot)),
                snapshot => Ok(Fact::Snapshot(snapshot.as_ref().map(SimSnapshot::facts))),
            },
            Observe::SnapshotMarks => {
                let marks = self.snapshot.as_ref().map(|snapshot| SnapshotMarks {
                    at: version("snapshot", snapshot.version),
                    foreign: (!snapshot.ours).then(|| failure(Class::Foreign)),
                    started: snapshot.started,
                    recreate: snapshot.recreate,
                });
                Ok(Fact::SnapshotMarks(marks))
            }
            Observe::Runtime if self.runtime => Ok(Fact::Holds),
            Observe::Runtime => Err(failure(Class::Input)),
            Observe::Rendering(basis) => self.render(*basis, o),
            Observe::Lookups(_) => Ok(Fact::Rendering(Rendering::LookedUp)),
            Observe::ListedObjects => {
                let snapshot = self.snapshot.as_ref().filter(|snapshot| snapshot.ours);
                let listed = snapshot.map_or(&[][..], |snapshot| &snapshot.objects);
                Ok(Fact::Listed(AppliedObject::unknown(listed)))
            }
            Observe::ListedObject(object) | Observe::Object(object) => {
                Ok(Fact::Object(match self.objects.get(object) {
                    None => Look::Missing,
                    Some(it) if it.ours => Look::Ours(Some(it.version.to_string().into())),
                    Some(_) => Look::Unusable(failure(Class::Foreign)),
                }))
            }
            Observe::JobSetOwner => Ok(Fact::Owner(match &self.job_set {
                Some(found) if !found.ours => Owner::Foreign(failure(Class::Foreign)),
                _ => Owner::OursOrGone,
            })),
            Observe::LiveJobSet { uid } => match &self.job_set {
                Some(found) if found.suspended && found.uid == *uid => {
                    Ok(Fact::JobSet(LiveJobSet {
                        at: version(&found.uid, found.version),
                        started: found.started,
                        active: found.active,
                        inputs: found.inputs.clone(),
                        removed: found.removed,
                    }))
                }
                _ => Err(none()),
            },
            Observe::Placement(wanted) => {
                let found = self.job_set.as_ref().unwrap();
                let moves = found.placement != self.placement;
                Ok(Fact::Placement(Placement {
                    loses: moves || found.removed,
                    moves: moves && *wanted != Wanted::Applied,
                    noted: found.removed,
                }))
            }
            Observe::Jobs => Ok(Fact::Jobs(self.jobs.clone())),
            Observe::Creatable { .. } => Ok(Fact::Holds),
        }
    }

    fn is_current(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.stale) {
            return Err(failure(Class::Conflict));
        }
        Ok(())
    }

    fn inputs(&self) -> String {
        format!("inputs of {}", self.job.fingerprint)
    }

    fn render(&self, basis: Basis, o: &Observed) -> Result<Fact, Failure> {
        match self.rendering {
            Some(Class::PlanIsPinned) if !basis.started => {}
            None => {}
            Some(class) => return Err(failure(class)),
        }
        if o.asked.rounds < self.needs {
            return Ok(Fact::Rendering(Rendering::Needs));
        }
        let snapshot = self.snapshot.as_ref();
        let is_same =
            |snapshot: &SimSnapshot| basis.started || snapshot.fingerprint == self.job.fingerprint;
        let objects = self.rendered.iter().map(|object| RenderedObjectFacts {
            object: object.clone(),
            content: self.job.fingerprint,
            has_keys: object.apply == ApplyMode::Once,
            look: None,
            written: None,
        });
        Ok(Fact::Rendering(Rendering::Rendered(RenderedFacts {
            saved: basis.source == Source::Snapshot && snapshot.is_some_and(is_same),
            inputs: self.inputs().into(),
            expires: self.expires,
            objects: objects.collect(),
        })))
    }

    fn act(&mut self, action: &Action, o: &Observed) -> Result<Effect, Failure> {
        match action {
            Action::Begin => (self.last, self.outdated) = (None, false),
            Action::CreateSnapshot(basis) => return self.create_snapshot(*basis),
            Action::ReplaceSnapshot { at, .. } => return self.replace_snapshot(at),
            Action::MarkSnapshot { mark, at } => {
                let next = self.next_version();
                let snapshot = self.snapshot.as_mut().ok_or(failure(Class::Other))?;
                assert!(snapshot.ours, "another owner's snapshot is marked");
                if *at != version("snapshot", snapshot.version) {
                    return Err(failure(Class::Conflict));
                }
                snapshot.version = next;
                snapshot.started |= mark.started;
                snapshot.recreate = mark.recreate.unwrap_or(snapshot.recreate);
                return Ok(Effect::At(version("snapshot", next)));
            }
            Action::ApplyObject { object, force } => return self.apply_object(object, *force),
            Action::CreateObject(object) => {
                if self.objects.contains_key(object) {
                    return Err(failure(Class::Conflict));
                }
                let it = SimObject {
                    ours: true,
                    version: self.next_version(),
                    content: self.job.fingerprint,
                };
                self.objects.insert(object.clone(), it);
            }
            Action::ApplyJobSet {
                over,
                held,
                recreated,
            } => {
                return self.apply_job_set(over.as_ref(), *held, *recreated, o);
            }
            Action::Suspend { .. } => {
                let next = self.next_version();
                let found = self.job_set.as_mut().unwrap();
                assert!(found.ours && !found.suspended && self.job.wishes.suspend);
                (found.suspended, found.started, found.inputs) = (true, true, None);
                found.active = false;
                found.version = next;
            }
            Action::Relocate(at) => {
                let wanted = self.placement;
                let found = self.current_job_set(at)?;
                (found.placement, found.removed) = (wanted, true);
            }
            Action::Resume(at) => {
                self.has_no_old_jobs(o);
                let (wanted, suspend) = (self.placement, self.job.wishes.suspend);
                let found = self.current_job_set(at)?;
                assert!(
                    !suspend,
                    "a TrainJob that is to be suspended is unsuspended"
                );
                (found.placement, found.removed) = (wanted, false);
                (found.suspended, found.has_run) = (false, true);
            }
            Action::DeleteJobSet(_) => {
                let found = self.job_set.as_ref().unwrap();
                let is_overdue = status::end(&self.job.status)
                    .is_some_and(|end| end.reason == status::DEADLINE_EXCEEDED);
                assert!(found.ours, "another owner's JobSet is deleted");
                assert!(is_overdue || found.suspended && !found.has_run, "{found:?}");
                self.delete_job_set(true);
            }
            Action::DeleteJob { name, .. } => self.jobs.retain(|job| job.name != *name),
            Action::NoteUnseenEnd => {
                let end = status::unseen_end(&self.job.status, now());
                let uid = self.job.uid.clone();
                self.departed = Some(Arc::new(JobSetState::departed(uid, end, &[])));
            }
            Action::Remember(last) => {
                self.last = Some(last.clone());
                if o.initial.job_set().is_none() {
                    self.departed = None;
                }
            }
            Action::Settle(settle) => {
                if settle.interests == Interests::Forget {
                    self.outdated = false;
                }
                if settle.forget_last {
                    self.last = None;
                }
            }
            Action::WriteStatus(status) => self.job.status = (**status).clone(),
            Action::ForgetDeparted => self.departed = None,
        }
        Ok(Effect::Done)
    }

    fn create_snapshot(&mut self, basis: Basis) -> Result<Effect, Failure> {
        if self.snapshot.is_some() {
            return Err(failure(Class::Conflict));
        }
        let version = self.next_version();
        self.snapshot = Some(SimSnapshot {
            ours: true,
            broken: false,
            version,
            started: basis.started,
            recreate: false,
            fingerprint: self.job.fingerprint,
            objects: self.rendered.as_slice().into(),
        });
        Ok(Effect::Snapshot(self.snapshot.as_ref().unwrap().facts()))
    }

    fn replace_snapshot(&mut self, at: &Version) -> Result<Effect, Failure> {
        let next = self.next_version();
        let objects = self.rendered.as_slice().into();
        let snapshot = self.snapshot.as_mut().ok_or(failure(Class::Other))?;
        assert!(snapshot.ours, "another owner's snapshot is replaced");
        assert!(!snapshot.started, "a pinned snapshot is replaced");
        if *at != version("snapshot", snapshot.version) {
            return Err(failure(Class::Conflict));
        }
        (snapshot.version, snapshot.broken) = (next, false);
        (snapshot.fingerprint, snapshot.objects) = (self.job.fingerprint, objects);
        Ok(Effect::Snapshot(snapshot.facts()))
    }

    fn apply_object(&mut self, object: &ObjectRef, force: bool) -> Result<Effect, Failure> {
        let mode = object.apply;
        assert_ne!(
            mode,
            ApplyMode::Once,
            "an object that is made once is applied"
        );
        if let Some(it) = self.objects.get(object) {
            assert!(!force || it.ours, "another owner's object is changed");
            if !it.ours {
                return Err(failure(Class::Conflict));
            }
            let runs = self.job_set.as_ref().is_some_and(|found| !found.suspended);
            assert!(
                !runs || mode == ApplyMode::Live,
                "changed beside running pods"
            );
        }
        let content = self.job.fingerprint;
        let known = self.objects.get(object);
        let same = known
            .filter(|it| it.content == content)
            .map(|it| it.version);
        let next = same.unwrap_or_else(|| self.next_version());
        let it = SimObject {
            ours: true,
            version: next,
            content,
        };
        self.objects.insert(object.clone(), it);
        Ok(Effect::At(version("object", next)))
    }

    fn apply_job_set(
        &mut self,
        over: Option<&Version>,
        held: bool,
        recreated: bool,
        o: &Observed,
    ) -> Result<Effect, Failure> {
        let snapshot = self.snapshot.as_ref().unwrap();
        assert!(snapshot.ours && !snapshot.broken, "without its snapshot");
        for object in &self.rendered {
            assert!(self.objects[object].ours, "before its objects");
        }
        assert!(!self.has_ended, "a JobSet that ended is created again");
        if !held && !self.job.wishes.suspend {
            self.has_no_old_jobs(o);
        }
        let suspended = held || self.job.wishes.suspend;
        match (&self.job_set, over) {
            (None, None) => {}
            (None, Some(_)) => return Err(failure(Class::Conflict)),
            (Some(found), None) => {
                assert!(!found.ours, "applied over a JobSet that it does not know");
                return Err(failure(Class::Conflict));
            }
            (Some(found), Some(over)) => {
                if *over != version(&found.uid, found.version) {
                    return Err(failure(Class::Conflict));
                }
                assert!(found.ours && found.suspended && !found.has_run, "{found:?}");
                if !self.mutable {
                    return Err(failure(Class::Immutable));
                }
            }
        }
        let version = self.next_version();
        let known = self.job_set.take();
        self.job_set = Some(SimJobSet {
            ours: true,
            uid: known.map_or_else(|| format!("job set {version}").into(), |known| known.uid),
            version,
            suspended,
            has_run: !suspended,
            started: !suspended,
            inputs: (suspended && !held).then(|| self.inputs().into()),
            recreated,
            active: false,
            completed: false,
            placement: self.placement,
            removed: held,
        });
        (self.mutable, self.departed) = (true, self.departed.take());
        Ok(Effect::Done)
    }

    /// The suspended JobSet of that version, which gets another one.
    fn current_job_set(&mut self, at: &Version) -> Result<&mut SimJobSet, Failure> {
        let next = self.next_version();
        let found = self.job_set.as_mut().unwrap();
        if *at != version(&found.uid, found.version) {
            return Err(failure(Class::Conflict));
        }
        assert!(found.ours && found.suspended, "{found:?}");
        found.version = next;
        Ok(found)
    }

    /// Fails if there are Jobs with an earlier placement that could have been seen.
    fn has_no_old_jobs(&self, o: &Observed) {
        let found = self.job_set.as_ref();
        let removed = found.is_some_and(|found| found.removed);
        let refused = o
            .failures
            .iter()
            .any(|(step, _)| *step == Step::Observe(Observe::Jobs));
        assert!(!removed || refused || self.jobs.is_empty(), "with old Jobs");
    }
}

impl SimSnapshot {
    fn facts(&self) -> SnapshotFacts {
        SnapshotFacts {
            at: version("snapshot", self.version),
            was_started: self.started,
            started: self.started,
            recreate: self.recreate,
            has_plan: true,
            objects: self.objects.clone(),
        }
    }
}

fn version(uid: &str, version: u64) -> Version {
    Version {
        uid: Some(uid.into()),
        version: Some(version.to_string().into()),
    }
}

/// Whether a step may fail: what is in memory does not.
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
            | Action::Settle(_)
            | Action::ForgetDeparted
    )
}

/// Whether something is known already.
fn is_known(o: &Observed, what: &Observe) -> bool {
    let asked = &o.asked;
    let looked = |object: &ObjectRef| {
        let Some((_, Rendering::Rendered(rendered))) = asked.renderings.last() else {
            return false;
        };
        let mut objects = rendered.objects.iter();
        objects.any(|it| it.object == *object && it.look.is_some())
    };
    match what {
        Observe::Inputs => asked.inputs.is_some(),
        Observe::TrainJob => asked.train_job.is_some(),
        Observe::LiveTrainJob => asked.live_train_job.is_some(),
        Observe::Absence => asked.absence.is_some(),
        Observe::Snapshot => asked.snapshot.is_some(),
        Observe::SnapshotMarks => asked.snapshot_marks.is_some(),
        Observe::Runtime => asked.runtime.is_some(),
        Observe::Rendering(basis) => {
            matches!(
                asked.rendering(*basis),
                Some(Rendering::Rendered(_) | Rendering::Needs)
            )
        }
        Observe::Lookups(basis) => asked.rendering(*basis) != Some(&Rendering::Needs),
        Observe::ListedObjects => asked.listed.is_some(),
        Observe::ListedObject(object) => asked.listed_objects.iter().any(|(of, _)| of == object),
        Observe::Object(object) => looked(object),
        Observe::JobSetOwner => asked.owner.is_some(),
        Observe::LiveJobSet { .. } => asked.live.is_some(),
        Observe::Placement(_) => asked.placement.is_some(),
        Observe::Jobs => asked.jobs.is_some(),
        Observe::Creatable { .. } => asked.creatable.is_some(),
    }
}
