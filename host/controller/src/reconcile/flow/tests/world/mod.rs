//! A simulated cluster with one TrainJob. It answers the calls of a reconcile, and fails the test if one is forbidden. Each call may fail, and
//! the process may be killed before each.

mod inputs;
mod job_set;

use std::{
    collections::{BTreeMap, HashMap},
    future::pending,
    sync::Arc,
};

use futures_util::FutureExt as _;
use trainyard_model::object::ApplyMode;

use super::{Fault, counts, error, now};
use crate::{
    generation::CommonInputs,
    reconcile::{
        cluster::KeptInterests,
        error::ReconcileError,
        facts::{OldJob, SnapshotFacts, SnapshotMarks},
        flow::Flow,
        inputs::have_same_rendering,
        last_reconcile::{AnnotationWrite, LastReconcile},
        object_ref::ObjectRef,
        object_version::ObjectVersion,
        outcome::ReconcileOutcome,
        start::{JobFacts, KnownJobSet, Start, StoredJobSet},
        status,
        vouch::Trust,
    },
    watch::{JobCounts, JobSetState},
};

/// The first number of plugins with another rendering.
const OTHER_RENDERING: u8 = 4;

/// The most calls of a reconcile.
const MOST_CALLS: usize = 100;

/// A cluster with one TrainJob.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) job: JobFacts,
    /// Whether the TrainJob in the store is outdated.
    pub(super) stale: bool,
    pub(super) job_set: Option<SimJobSet>,
    /// The JobSet in the store, if the watch is behind.
    pub(super) behind: Option<Option<SimJobSet>>,
    /// Whether the answer to the next apply of the JobSet is lost.
    pub(super) lost: bool,
    pub(super) snapshot: Option<SimSnapshot>,
    /// Whether the runtime exists.
    pub(super) runtime: bool,
    /// How a rendering fails.
    pub(super) rendering: Option<Fault>,
    /// The number of the loaded plugins. The TrainJob has one plan with the even ones, and another with the odd ones. From [`OTHER_RENDERING`] on,
    /// they render it in another way.
    pub(super) plugins: u8,
    /// The warnings of a rendering.
    pub(super) warnings: Vec<String>,
    /// The number of rounds of lookups of a rendering.
    pub(super) needs: usize,
    /// Whether JobSets expire after their end.
    pub(super) expires: bool,
    /// The wanted placement of the pods.
    pub(super) placement: u8,
    /// The objects that are rendered beside the JobSet.
    pub(super) rendered: Vec<ObjectRef>,
    /// The objects in the cluster.
    pub(super) objects: BTreeMap<ObjectRef, SimObject>,
    /// The Jobs with an earlier placement.
    pub(super) jobs: Vec<OldJob>,
    /// Whether JobSet lets all fields of a suspended JobSet change.
    pub(super) mutable: bool,
    /// The calls of the next reconcile that fail, by their number.
    pub(super) faults: BTreeMap<usize, Fault>,
    /// The calls that fail, by their name.
    fails: HashMap<&'static str, Fault>,
    /// Whether another client creates an object of the TrainJob just before the controller does.
    pub(super) created_by_another: bool,
    /// Whether the JobSet of another owner is gone once it is read.
    pub(super) owner_is_gone: bool,
    /// The number of the call of the next reconcile before which the process is killed.
    pub(super) killed_at: Option<usize>,
    /// What the controller keeps in memory.
    pub(super) last: Option<LastReconcile>,
    pub(super) unfinished: bool,
    /// Whether a process ended while it wrote, and nothing shows it.
    pub(super) hidden: bool,
    pub(super) deleted_job_set: Option<Arc<JobSetState>>,
    pub(super) outdated: bool,
    pub(super) interests: Option<KeptInterests>,
    pub(super) annotated: Option<AnnotationWrite>,
    /// Whether reconciles have failed for long.
    pub(super) persists: bool,
    /// Whether the last JobSet had ended when it was deleted.
    pub(super) has_ended: bool,
    /// The time since all reconciles begin.
    pub(super) second: i64,
    /// What the last reconcile did, in order.
    pub(super) done: Vec<String>,
    calls: usize,
    began_without_job_set: bool,
    /// Whether the Jobs were listed in this reconcile.
    listed_jobs: bool,
    /// The annotation with which the JobSet vouched for the snapshot when this reconcile began.
    vouches_for: Option<Box<str>>,
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
    /// The content of the snapshot that it was applied with; `None` if it vouches for any.
    pub(super) vouches_for: Option<Box<str>>,
    pub(super) active: bool,
    pub(super) completed: bool,
    pub(super) placement: u8,
    /// Whether it notes entries that its Jobs have to lose.
    pub(super) removed: bool,
    /// Its finalizers, if it is being deleted.
    pub(super) deleting: Option<&'static str>,
    /// Its counts, if they are not those of its pods.
    pub(super) counts: Option<Box<[JobCounts]>>,
}

impl Default for SimJobSet {
    fn default() -> Self {
        Self {
            ours: true,
            uid: "job set".into(),
            version: 1,
            suspended: false,
            has_run: false,
            started: false,
            inputs: None,
            recreated: false,
            vouches_for: None,
            active: false,
            completed: false,
            placement: 0,
            removed: false,
            deleting: None,
            counts: None,
        }
    }
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
    /// Whether its plan is that of odd plugins.
    pub(super) odd_plan: bool,
    pub(super) objects: Arc<[ObjectRef]>,
}

impl Default for SimSnapshot {
    fn default() -> Self {
        Self {
            ours: true,
            broken: false,
            version: 1,
            started: false,
            recreate: false,
            fingerprint: 1,
            odd_plan: false,
            objects: Arc::default(),
        }
    }
}

impl SimSnapshot {
    /// Whether it pins what the TrainJob is rendered from now.
    pub(super) fn is_of(&self, world: &World) -> bool {
        let now = (world.job.fingerprint, world.has_odd_plan());
        (self.fingerprint, self.odd_plan) == now
    }
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
            behind: None,
            lost: false,
            snapshot: None,
            runtime: true,
            rendering: None,
            plugins: 0,
            warnings: Vec::new(),
            needs: 0,
            expires: false,
            placement: 0,
            rendered: Vec::new(),
            objects: BTreeMap::new(),
            jobs: Vec::new(),
            mutable: true,
            faults: BTreeMap::new(),
            fails: HashMap::new(),
            created_by_another: false,
            owner_is_gone: false,
            killed_at: None,
            last: None,
            unfinished: false,
            hidden: false,
            deleted_job_set: None,
            outdated: false,
            interests: None,
            annotated: None,
            persists: false,
            has_ended: false,
            second: now().as_second(),
            done: Vec::new(),
            calls: 0,
            began_without_job_set: true,
            listed_jobs: false,
            vouches_for: None,
            version: 1,
        }
    }

    /// Calls of that name fail.
    pub(super) fn fail(&mut self, call: &'static str, fault: Fault) {
        self.fails.insert(call, fault);
    }

    /// No call fails.
    pub(super) fn succeed(&mut self) {
        self.fails.clear();
    }

    /// Whether the JobSet that has never run, its snapshot and the objects beside it are as they are rendered now. If another client unsuspends it,
    /// they have to match.
    pub(super) fn is_as_rendered(&self) -> bool {
        let Some(found) = &self.job_set else {
            return false;
        };
        let content = self.snapshot.as_ref().map(SimSnapshot::content);
        let noted = found.inputs.as_deref();
        noted.is_some_and(|noted| have_same_rendering(noted, &self.inputs_text()))
            && (found.vouches_for.is_none() || found.vouches_for == content)
            && self
                .objects
                .iter()
                .all(|(object, it)| object.apply == ApplyMode::Once || it.content == self.content())
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
    pub(super) fn state(&self) -> Option<JobSetState> {
        self.job_set
            .as_ref()
            .map(|found| self.state_of_job_set(found))
    }

    /// The state of the JobSet in the store.
    fn stored(&self) -> Option<JobSetState> {
        let stored = self.behind.as_ref().unwrap_or(&self.job_set);
        stored.as_ref().map(|found| self.state_of_job_set(found))
    }

    fn state_of_job_set(&self, found: &SimJobSet) -> JobSetState {
        let active = if found.active { 1 } else { 0 };
        let counts = match &found.counts {
            Some(counts) => counts.clone(),
            None if found.has_run => counts(active),
            None => Box::default(),
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
        state.deleting = found.deleting.is_some();
        state.finalizers = found.deleting.unwrap_or_default().into();
        state.snapshot = found.vouches_for.clone();
        state
    }

    fn known_job_set(&self) -> KnownJobSet {
        let stored = match self.stored() {
            None => StoredJobSet::Missing,
            Some(state) if state.owner.is_none() => StoredJobSet::NotOurs,
            Some(state) => StoredJobSet::Ours(Arc::new(state)),
        };
        KnownJobSet {
            stored,
            deleted: self.deleted_job_set.clone(),
        }
    }

    /// A Job of the suspended JobSet has an earlier placement.
    pub(super) fn add_old_job(&mut self, deleting: bool) {
        self.job_set.as_mut().unwrap().removed = true;
        self.jobs = vec![OldJob {
            name: "node-0".into(),
            uid: Some("uid".into()),
            deleting,
        }];
    }

    /// Deletes the JobSet; with `seen`, the controller observes the deletion.
    pub(super) fn delete_job_set_now(&mut self, seen: bool) {
        self.behind = None;
        let Some(last) = self.state() else {
            return;
        };
        self.next_version();
        self.has_ended = last.end.is_some();
        self.deleted_job_set = seen.then(|| Arc::new(last));
        self.job_set = None;
    }

    /// The controller restarts.
    pub(super) fn restart(&mut self) {
        (self.last, self.deleted_job_set, self.behind) = (None, None, None);
        self.hidden |= self.unfinished && self.job.error.is_none();
        self.unfinished = false;
        // Its end is no longer known.
        self.has_ended &= status::has_run(&self.job.status);
    }

    fn begin_reconcile(&mut self) -> Start {
        (self.calls, self.done, self.listed_jobs) = (0, Vec::new(), false);
        let known = self.known_job_set();
        self.began_without_job_set = known.ours().is_none();
        let voucher = known.ours().or(known.deleted.as_deref());
        self.vouches_for = voucher.and_then(|found| found.snapshot.clone());
        Start {
            now: k8s_openapi::jiff::Timestamp::from_second(self.second).unwrap(),
            job: self.job.clone(),
            job_set: known,
            last: self.last.clone(),
            unfinished: self.unfinished,
            common: CommonInputs::for_tests(self.plugins),
            outdated: self.outdated,
            persists: self.persists,
            annotated: self.annotated.clone(),
        }
    }

    /// Reconciles once; `None` if the process is killed.
    pub(super) fn reconcile(&mut self) -> Option<ReconcileOutcome> {
        let start = self.begin_reconcile();
        let end = Flow::new(self, &start).run().now_or_never();
        self.faults.clear();
        (self.killed_at, self.lost) = (None, false);
        if end.is_none() {
            self.restart();
        }
        end
    }

    /// Refuses to change anything, because of this error.
    pub(super) fn refuse(&mut self, error: ReconcileError) -> ReconcileOutcome {
        let start = self.begin_reconcile();
        let flow = Flow::new(self, &start);
        flow.refuse(error).now_or_never().unwrap()
    }

    /// Notes a call, which may fail, and before which the process may be killed.
    async fn call(&mut self, name: impl Into<String>) -> Result<(), ReconcileError> {
        let name = name.into();
        let fault = self.fails.get(&*name).copied();
        self.done.push(name);
        let number = self.calls;
        self.calls += 1;
        assert!(number < MOST_CALLS, "no end: {:#?}", self.done);
        if self.killed_at == Some(number) {
            return pending().await;
        }
        match fault.or(self.faults.remove(&number)) {
            Some(fault) => Err(error(fault)),
            None => Ok(()),
        }
    }
}

impl SimSnapshot {
    fn marks(&self) -> SnapshotMarks {
        SnapshotMarks {
            at: version("snapshot", self.version),
            started: self.started,
            recreate: self.recreate,
        }
    }

    /// What a JobSet that is applied with it notes.
    pub(super) fn content(&self) -> Box<str> {
        format!("snapshot of {}, {}", self.fingerprint, self.odd_plan).into()
    }

    fn facts(&self) -> SnapshotFacts {
        SnapshotFacts {
            marks: self.marks(),
            trust: Trust::Nothing,
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
