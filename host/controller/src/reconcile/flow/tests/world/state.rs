//! The objects of the simulated cluster.

use super::*;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct SimJobSet {
    pub(in super::super) ours: bool,
    pub(in super::super) uid: Box<str>,
    pub(in super::super) version: u64,
    pub(in super::super) suspended: bool,
    /// Whether it is deleted some time after its end.
    pub(in super::super) expires: bool,
    /// Whether it was ever unsuspended.
    pub(in super::super) has_run: bool,
    /// Whether it is marked as started.
    pub(in super::super) started: bool,
    pub(in super::super) inputs: Option<Box<str>>,
    pub(in super::super) recreated: bool,
    /// The content of the snapshot that it was applied with; `None` if it vouches for any.
    pub(in super::super) vouches_for: Option<Box<str>>,
    /// What it was rendered as.
    pub(in super::super) content: u64,
    /// Whether JobSet has created its Jobs once, so that it has counts.
    pub(in super::super) counted: bool,
    pub(in super::super) active: bool,
    pub(in super::super) completed: bool,
    pub(in super::super) failed: bool,
    pub(in super::super) placement: u8,
    /// Whether it notes entries that its Jobs have to lose.
    pub(in super::super) removed: bool,
    /// Its finalizers, if it is being deleted.
    pub(in super::super) deleting: Option<&'static str>,
    /// Its counts, if they are not those of its pods.
    pub(in super::super) counts: Option<Box<[JobCounts]>>,
}

impl Default for SimJobSet {
    fn default() -> Self {
        Self {
            ours: true,
            uid: "job set".into(),
            version: 1,
            suspended: false,
            expires: false,
            has_run: false,
            started: false,
            inputs: None,
            recreated: false,
            vouches_for: None,
            content: 1,
            counted: true,
            active: false,
            completed: false,
            failed: false,
            placement: 0,
            removed: false,
            deleting: None,
            counts: None,
        }
    }
}

impl SimJobSet {
    /// Whether it has reached its end.
    pub(in super::super) fn has_ended(&self) -> bool {
        self.completed || self.failed
    }

    /// Whether it may have pods.
    pub(in super::super) fn runs(&self) -> bool {
        !self.suspended && !self.has_ended()
    }

    /// Returns its state as a watch shows it.
    pub(super) fn state(&self) -> JobSetState {
        let counts = match &self.counts {
            Some(counts) => counts.clone(),
            None if self.has_run && self.counted => {
                let mut counts = counts(i64::from(self.active));
                if let Some(count) = counts.first_mut() {
                    count.succeeded = i64::from(self.completed);
                    count.failed = i64::from(self.failed);
                }
                counts
            }
            None => Box::default(),
        };
        let end = self.has_ended().then(|| {
            // It has the type that JobSet would give it.
            let last = TrainJobStatus {
                jobs_status: counts.to_vec(),
                ..TrainJobStatus::default()
            };
            let mut end = status::unseen_end(&last, now());
            (end.reason, end.message) = ("JobSetEnded".to_owned(), String::new());
            Box::new(end)
        });
        let mut state = JobSetState::for_tests(end, counts).at(self.version);
        state.uid = self.uid.clone();
        state.owner = self.ours.then(|| "job".into());
        state.suspended = self.suspended;
        state.expires = self.expires;
        state.inputs = self.inputs.clone();
        state.recreated = self.recreated;
        state.deleting = self.deleting.is_some();
        state.finalizers = self.deleting.unwrap_or_default().into();
        state.snapshot = self.vouches_for.clone();
        state
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct SimSnapshot {
    pub(in super::super) ours: bool,
    pub(in super::super) broken: bool,
    pub(in super::super) version: u64,
    pub(in super::super) started: bool,
    pub(in super::super) recreate: bool,
    /// What was rendered last.
    pub(in super::super) fingerprint: u64,
    /// Whether its plan is that of odd plugins.
    pub(in super::super) odd_plan: bool,
    pub(in super::super) objects: Arc<[ObjectRef]>,
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
    /// Whether it pins what the TrainJob is rendered from with these plugins.
    pub(super) fn is_of(&self, job: &JobFacts, plugins: u8) -> bool {
        (self.fingerprint, self.odd_plan) == (job.fingerprint % RESUMED, plugins % 2 == 1)
    }

    pub(super) fn marks(&self) -> SnapshotMarks {
        SnapshotMarks {
            at: version("snapshot", self.version),
            started: self.started,
            recreate: self.recreate,
        }
    }

    /// What a JobSet that is applied with it notes.
    pub(in super::super) fn content(&self) -> Box<str> {
        format!("snapshot of {}, {}", self.fingerprint, self.odd_plan).into()
    }

    pub(super) fn facts(&self) -> SnapshotFacts {
        SnapshotFacts {
            marks: self.marks(),
            trust: Trust::Nothing,
            has_plan: true,
            objects: self.objects.clone(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct SimObject {
    pub(in super::super) ours: bool,
    pub(in super::super) version: u64,
    /// What it was rendered as.
    pub(in super::super) content: u64,
}
