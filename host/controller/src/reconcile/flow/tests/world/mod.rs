//! A simulated cluster with one TrainJob, and the controllers that reconcile it. It answers the calls of a reconcile, and notes the first that
//! breaks a guarantee. What happens at each call is decided by a [`Schedule`].
//!
//! A world can be compared: [`World::key`] is the same for two worlds in which the same can happen.

mod client;
mod environment;
mod inputs;
mod job_set;
mod key;
mod memory;
mod objects;
mod run;
mod state;
mod watches;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use trainyard_model::object::ApplyMode;

pub(super) use self::{
    client::{CallKind, Sabotage},
    environment::Event,
    run::{Answer, Choice, Choices, Schedule, Waiting},
    state::{SimJobSet, SimObject, SimSnapshot},
    watches::Behind,
};
use super::{Fault, counts, error, now};
use crate::{
    generation::CommonInputs,
    reconcile::{
        cluster::KeptInterests,
        error::ReconcileError,
        facts::{OldJob, SnapshotFacts, SnapshotMarks},
        inputs::have_same_rendering,
        last_reconcile::{AnnotationWrite, AppliedObject, LastReconcile},
        object_ref::ObjectRef,
        object_version::ObjectVersion,
        outcome::ReconcileOutcome,
        start::{JobFacts, KnownJobSet, Start, StoredJobSet},
        status,
        vouch::Trust,
    },
    watch::{JobCounts, JobSetState, TrainJobStatus},
};

/// The first number of plugins with another rendering.
pub(super) const OTHER_RENDERING: u8 = 4;

/// What these add to a content.
pub(super) const OTHER_CONTENT: u64 = 1_000;

/// What the fingerprint of a TrainJob that is to run has more. It is rendered as one that is to be suspended.
const RESUMED: u64 = 1_000_000;

/// A cluster with one TrainJob.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) job: JobFacts,
    pub(super) job_version: u64,
    /// Whether the TrainJob was deleted.
    pub(super) gone: bool,
    /// What its author chose, from which it is rendered.
    pub(super) edit: u64,
    pub(super) job_set: Option<SimJobSet>,
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
    pub(super) rendered: Arc<[ObjectRef]>,
    /// The objects in the cluster.
    pub(super) objects: BTreeMap<ObjectRef, SimObject>,
    /// The Jobs of the JobSet, and their placement.
    pub(super) jobs: Vec<OldJob>,
    pub(super) jobs_placement: u8,
    /// Whether JobSet lets all fields of a suspended JobSet change.
    pub(super) mutable: bool,
    /// Whether the API server serves the kinds of the objects.
    pub(super) served: bool,
    /// Whether an admission webhook refuses JobSets.
    pub(super) refuses: bool,
    /// Whether another client creates an object of the TrainJob just before the controller does.
    pub(super) created_by_another: bool,
    /// Whether the JobSet of another owner is gone once it is read.
    pub(super) owner_is_gone: bool,
    /// Whether both controllers reconcile it: one leads, and the other has not noticed yet that it does not.
    pub(super) two: bool,
    /// The controllers.
    pub(super) controllers: [Controller; 2],
    /// Whether a process ended while it wrote, and nothing shows it.
    pub(super) hidden: bool,
    /// Whether reconciles have failed for long.
    pub(super) persists: bool,
    /// Whether a JobSet of the TrainJob has ended.
    pub(super) ended: bool,
    /// Whether other clients changed the snapshot or the objects during the reconcile.
    pub(super) meddled: bool,
    /// Whether a controller was not allowed to list Jobs.
    pub(super) unlisted: bool,
    /// Whether a reconcile has succeeded since the JobSet was created or resumed.
    pub(super) reconciled: bool,
    /// Whether the JobSet was started for an admission that was no longer the last one.
    pub(super) placed_late: bool,
    /// Whether a controller that stalled wrote over the JobSet that another had created meanwhile. Nothing can prevent that.
    pub(super) overwritten: bool,
    /// The time at which reconciles begin.
    pub(super) second: i64,
    /// The number of JobSets that were created.
    made: u64,
    version: u64,
    // What follows is not part of its state.
    /// What the last reconcile did, in order.
    pub(super) done: Vec<String>,
    /// The guarantee that was broken first.
    pub(super) broken: Option<String>,
    /// The calls that fail, by their name.
    pub(super) fails: HashMap<&'static str, Fault>,
    /// Whether the answer to the next apply of the JobSet is lost, and the watch is late.
    pub(super) lost: bool,
    waiting: [Option<Waiting>; 2],
    answer: Answer,
}

/// What a controller keeps in memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Controller {
    /// What it knows of the TrainJob and of the JobSet, if the watch is behind.
    pub(super) job: Option<Behind<KnownJob>>,
    pub(super) job_sets: Option<Behind<Option<SimJobSet>>>,
    pub(super) last: Option<LastReconcile>,
    pub(super) unfinished: bool,
    pub(super) deleted: Option<Arc<JobSetState>>,
    pub(super) outdated: bool,
    pub(super) interests: Option<KeptInterests>,
    pub(super) annotated: Option<AnnotationWrite>,
}

/// The TrainJob as a controller knows it.
#[derive(Clone, Debug)]
pub(super) struct KnownJob {
    pub(super) facts: JobFacts,
    pub(super) version: u64,
    pub(super) placement: u8,
    pub(super) gone: bool,
}

impl World {
    /// Returns a cluster with a new TrainJob.
    pub(super) fn new(job: JobFacts) -> Self {
        Self {
            job,
            job_version: 1,
            gone: false,
            edit: 0,
            job_set: None,
            snapshot: None,
            runtime: true,
            rendering: None,
            plugins: 0,
            warnings: Vec::new(),
            needs: 0,
            expires: false,
            placement: 0,
            rendered: Arc::default(),
            objects: BTreeMap::new(),
            jobs: Vec::new(),
            jobs_placement: 0,
            mutable: true,
            served: true,
            refuses: false,
            created_by_another: false,
            owner_is_gone: false,
            two: false,
            controllers: Default::default(),
            hidden: false,
            persists: false,
            ended: false,
            meddled: false,
            unlisted: false,
            reconciled: false,
            placed_late: false,
            overwritten: false,
            second: now().as_second(),
            made: 0,
            version: 1,
            done: Vec::new(),
            broken: None,
            fails: HashMap::new(),
            lost: false,
            waiting: [None, None],
            answer: Answer::Given,
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
        let (noted, now) = (found.inputs.as_deref(), content_of(&self.job, self.plugins));
        noted.is_some_and(|noted| have_same_rendering(noted, &inputs_text(&self.job, self.plugins)))
            && (found.vouches_for.is_none() || found.vouches_for == content)
            && self
                .objects
                .iter()
                .all(|(object, it)| object.apply == ApplyMode::Once || it.content == now)
    }

    pub(super) fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// The state of the JobSet as a watch shows it.
    pub(super) fn state(&self) -> Option<JobSetState> {
        self.job_set.as_ref().map(SimJobSet::state)
    }

    /// A Job of the suspended JobSet has an earlier placement.
    pub(super) fn add_old_job(&mut self, deleting: bool) {
        self.job_set.as_mut().unwrap().removed = true;
        self.jobs_placement = u8::MAX;
        self.jobs = vec![OldJob {
            name: "node-0".into(),
            uid: Some("uid".into()),
            deleting,
        }];
    }

    /// Notes a guarantee that was broken.
    fn breaks(&mut self, guarantee: impl Into<String>) {
        self.broken.get_or_insert(guarantee.into());
    }

    fn start(&self, who: usize, job: &KnownJob) -> Start {
        let Controller {
            last,
            unfinished,
            outdated,
            annotated,
            ..
        } = &self.controllers[who];
        Start {
            now: k8s_openapi::jiff::Timestamp::from_second(self.second).unwrap(),
            job: job.facts.clone(),
            job_set: self.known_job_set(who),
            last: last.clone(),
            unfinished: *unfinished,
            common: CommonInputs::for_tests(self.plugins),
            outdated: *outdated,
            persists: self.persists,
            annotated: annotated.clone(),
        }
    }
}

fn version(uid: &str, version: u64) -> ObjectVersion {
    ObjectVersion {
        uid: Some(uid.into()),
        version: Some(version.to_string().into()),
    }
}

/// Returns a number for what this TrainJob is rendered as with these plugins.
pub(super) fn content_of(job: &JobFacts, plugins: u8) -> u64 {
    let other = match plugins {
        ..OTHER_RENDERING => 0,
        _ => OTHER_CONTENT,
    };
    job.fingerprint % RESUMED + other
}

/// Returns the digest of its inputs, as its JobSet notes it.
fn inputs_text(job: &JobFacts, plugins: u8) -> String {
    let (fingerprint, content) = (job.fingerprint, content_of(job, plugins));
    let plugins = match plugins {
        0 => String::new(),
        other => format!(" with {other}"),
    };
    format!("inputs of {fingerprint}{plugins}#rendering of {content}")
}
