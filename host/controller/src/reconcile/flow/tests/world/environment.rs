//! What happens in the cluster besides reconciles.

use std::fmt;

use super::*;

/// Something that happens in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum Event {
    /// The user, or Kueue that evicts it.
    Suspends,
    /// The user.
    Resumes,
    /// Kueue resumes it with this placement of its pods.
    Admits(u8),
    /// The user changes something that it is rendered from, or changes it back.
    Edits(u64),
    /// The same, and JobSet does not allow that for one that exists.
    EditsForNewJobSets(u64),
    /// The user deletes it; a finalizer keeps it for now.
    IsDeleted,
    /// The last finalizer is removed.
    IsGone,
    /// The garbage collector deletes what belonged to it.
    IsCollected,
    /// So much time passes that what runs is overdue.
    TimePasses,
    /// JobSet does the next of what it has to do: Jobs that are missing are created, pods start, or pods end.
    JobSetActs,
    /// The pods reach their end.
    Completes,
    Fails,
    /// JobSet recreates all Jobs because a pod failed.
    JobSetRestarts,
    /// JobSet deletes it some time after its end.
    JobSetExpires,
    /// Another client.
    JobSetIsDeleted,
    JobSetBeginsToBeDeleted,
    JobSetIsUnsuspended,
    JobSetOfAnotherOwner,
    SnapshotIsDeleted,
    SnapshotBreaks,
    SnapshotIsTaken,
    ObjectIsDeleted(usize),
    ObjectIsTaken(usize),
    /// The administrator.
    RuntimeIsDeleted,
    RuntimeIsCreated,
    RenderingIsRefused,
    RenderingIsPossible,
    PluginsAreReplaced(u8),
    KindsAreRemoved,
    KindsAreServed,
    AdmissionRefuses,
    AdmissionAllows,
    /// An object that plugins looked up changes.
    LookupsChange,
    /// A controller.
    Restarts(usize),
    Lists(usize),
    WatchOfJobFallsBehind(usize),
    WatchOfJobTells(usize),
    WatchOfJobSetFallsBehind(usize),
    WatchOfJobSetTells(usize),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = |who: &usize| ["the controller", "the second controller"][*who];
        match self {
            Self::Suspends => f.write_str("the TrainJob is suspended"),
            Self::Resumes => f.write_str("the TrainJob is resumed"),
            Self::Admits(placement) => write!(f, "Kueue admits it with placement {placement}"),
            Self::Edits(edit) => write!(f, "the user edits it ({edit})"),
            Self::EditsForNewJobSets(edit) => {
                write!(
                    f,
                    "the user edits fields that are immutable in a JobSet ({edit})"
                )
            }
            Self::IsDeleted => f.write_str("the TrainJob is deleted, and kept by a finalizer"),
            Self::IsGone => f.write_str("the TrainJob is gone"),
            Self::IsCollected => f.write_str("garbage is collected"),
            Self::TimePasses => f.write_str("time passes"),
            Self::JobSetActs => f.write_str("JobSet's controller acts"),
            Self::Completes => f.write_str("the JobSet completes"),
            Self::Fails => f.write_str("the JobSet fails"),
            Self::JobSetRestarts => f.write_str("the JobSet restarts"),
            Self::JobSetExpires => f.write_str("the JobSet expires"),
            Self::JobSetIsDeleted => f.write_str("another client deletes the JobSet"),
            Self::JobSetBeginsToBeDeleted => {
                f.write_str("another client deletes the JobSet, and a finalizer keeps it")
            }
            Self::JobSetIsUnsuspended => f.write_str("another client unsuspends the JobSet"),
            Self::JobSetOfAnotherOwner => {
                f.write_str("another client creates a JobSet of this name")
            }
            Self::SnapshotIsDeleted => f.write_str("another client deletes the snapshot"),
            Self::SnapshotBreaks => f.write_str("another client breaks the snapshot"),
            Self::SnapshotIsTaken => f.write_str("another owner takes the snapshot"),
            Self::ObjectIsDeleted(at) => write!(f, "another client deletes object {at}"),
            Self::ObjectIsTaken(at) => write!(f, "another owner takes object {at}"),
            Self::RuntimeIsDeleted => f.write_str("the runtime is deleted"),
            Self::RuntimeIsCreated => f.write_str("the runtime is created"),
            Self::RenderingIsRefused => f.write_str("plugins refuse the TrainJob from now on"),
            Self::RenderingIsPossible => f.write_str("plugins accept the TrainJob again"),
            Self::PluginsAreReplaced(number) => write!(f, "plugins {number} are loaded"),
            Self::KindsAreRemoved => f.write_str("the CRD of the objects is deleted"),
            Self::KindsAreServed => f.write_str("the CRD of the objects is created"),
            Self::AdmissionRefuses => f.write_str("admission refuses JobSets from now on"),
            Self::AdmissionAllows => f.write_str("admission allows JobSets again"),
            Self::LookupsChange => f.write_str("an object that was looked up changes"),
            Self::Restarts(at) => write!(f, "{} restarts", who(at)),
            Self::Lists(at) => write!(f, "{} lists anew", who(at)),
            Self::WatchOfJobFallsBehind(at) => {
                write!(f, "{}'s watch of TrainJobs falls behind", who(at))
            }
            Self::WatchOfJobTells(at) => {
                write!(f, "{}'s watch of TrainJobs tells of a change", who(at))
            }
            Self::WatchOfJobSetFallsBehind(at) => {
                write!(f, "{}'s watch of JobSets falls behind", who(at))
            }
            Self::WatchOfJobSetTells(at) => {
                write!(f, "{}'s watch of JobSets tells of a change", who(at))
            }
        }
    }
}

impl World {
    /// Whether an event is possible now, and changes something.
    pub(in super::super) fn can(&self, event: Event) -> bool {
        let found = self.job_set.as_ref();
        let ours = found.filter(|found| found.ours);
        let is_new = found.is_none_or(|found| !found.has_run);
        match event {
            Event::Suspends => !self.gone && !self.job.desired.suspend,
            Event::Resumes => !self.gone && self.job.desired.suspend,
            // Kueue admits only what is suspended, and whose pods have ended.
            Event::Admits(_) => {
                let has_no_pods = ours.is_none_or(|found| found.suspended && !found.active);
                !self.gone && self.job.desired.suspend && has_no_pods
            }
            // The API server lets it change only before it has started.
            Event::Edits(edit) | Event::EditsForNewJobSets(edit) => {
                !self.gone && edit != self.edit && is_new && self.job.desired.suspend
            }
            Event::IsDeleted => !self.gone && !self.job.deleting,
            Event::IsGone => !self.gone && self.job.deleting,
            Event::IsCollected => {
                let has_any = ours.is_some() || self.snapshot.as_ref().is_some_and(|it| it.ours);
                self.gone && (has_any || self.objects.values().any(|it| it.ours))
            }
            Event::TimePasses => self.second < now().as_second() + 30_000,
            Event::JobSetActs => self.can_act(),
            Event::Completes | Event::Fails | Event::JobSetRestarts => {
                ours.is_some_and(|found| found.runs() && found.active)
            }
            Event::JobSetExpires => self.expires && ours.is_some_and(SimJobSet::has_ended),
            Event::JobSetIsDeleted => found.is_some(),
            Event::JobSetBeginsToBeDeleted => ours.is_some_and(|found| found.deleting.is_none()),
            Event::JobSetIsUnsuspended => ours.is_some_and(|found| found.suspended),
            Event::JobSetOfAnotherOwner => found.is_none(),
            Event::SnapshotIsDeleted => self.snapshot.is_some(),
            Event::SnapshotBreaks => self
                .snapshot
                .as_ref()
                .is_some_and(|it| it.ours && !it.broken),
            Event::SnapshotIsTaken => self.snapshot.as_ref().is_some_and(|it| it.ours),
            Event::ObjectIsDeleted(at) => self.object(at).is_some(),
            Event::ObjectIsTaken(at) => self.object(at).is_some_and(|it| it.ours),
            Event::RuntimeIsDeleted => self.runtime,
            Event::RuntimeIsCreated => !self.runtime,
            Event::RenderingIsRefused => self.rendering.is_none(),
            Event::RenderingIsPossible => self.rendering.is_some(),
            Event::PluginsAreReplaced(number) => self.plugins != number,
            Event::KindsAreRemoved => self.served && !self.rendered.is_empty(),
            Event::KindsAreServed => !self.served,
            Event::AdmissionRefuses => !self.refuses,
            Event::AdmissionAllows => self.refuses,
            Event::LookupsChange => !self.controllers[0].outdated,
            Event::Restarts(_) => true,
            Event::Lists(who) => {
                let Controller { job, job_sets, .. } = &self.controllers[who];
                job.is_some() || job_sets.is_some()
            }
            Event::WatchOfJobFallsBehind(who) => self.controllers[who].job.is_none(),
            Event::WatchOfJobTells(who) => self.controllers[who].job.is_some(),
            Event::WatchOfJobSetFallsBehind(who) => self.controllers[who].job_sets.is_none(),
            Event::WatchOfJobSetTells(who) => self.controllers[who].job_sets.is_some(),
        }
    }

    fn object(&self, at: usize) -> Option<&SimObject> {
        self.objects.get(self.rendered.get(at)?)
    }

    /// Lets an event happen.
    pub(in super::super) fn happens(&mut self, event: Event) {
        match event {
            Event::Restarts(who) => self.restart(who),
            Event::Lists(who) => self.lists(who),
            Event::WatchOfJobFallsBehind(who) => self.falls_behind(who, false),
            Event::WatchOfJobTells(who) => self.tells(who, false),
            Event::WatchOfJobSetFallsBehind(who) => self.falls_behind(who, true),
            Event::WatchOfJobSetTells(who) => self.tells(who, true),
            event => self.change(|world| world.changes(event)),
        }
    }

    fn changes(&mut self, event: Event) {
        let next = self.next_version();
        match event {
            Event::Suspends => self.edits(|job| job.desired.suspend = true),
            Event::Resumes => self.edits(|job| job.desired.suspend = false),
            Event::Admits(placement) => {
                self.placement = placement;
                self.edits(|job| job.desired.suspend = false);
            }
            Event::Edits(edit) => {
                self.edit = edit;
                self.edits(|_| {});
            }
            Event::EditsForNewJobSets(edit) => {
                self.edit = edit;
                self.mutable &= self.job_set.is_none();
                self.edits(|_| {});
            }
            Event::IsDeleted => self.edits(|job| job.deleting = true),
            Event::IsGone => (self.gone, self.job_version) = (true, next),
            Event::IsCollected => self.collects(),
            Event::TimePasses => self.second += 10_000,
            Event::JobSetActs => self.acts(),
            Event::Completes | Event::Fails => {
                self.ended = true;
                let found = self.job_set.as_mut().unwrap();
                (found.active, found.version) = (false, next);
                found.completed = event == Event::Completes;
                found.failed = event == Event::Fails;
                self.jobs.clear();
            }
            Event::JobSetRestarts => {
                let found = self.job_set.as_mut().unwrap();
                (found.active, found.version) = (false, next);
                self.jobs.clear();
            }
            Event::JobSetExpires | Event::JobSetIsDeleted => self.loses_job_set(),
            Event::JobSetBeginsToBeDeleted => {
                let found = self.job_set.as_mut().unwrap();
                (found.deleting, found.version) = (Some("example.com/keep"), next);
            }
            Event::JobSetIsUnsuspended => {
                let found = self.job_set.as_mut().unwrap();
                (found.suspended, found.has_run, found.version) = (false, true, next);
            }
            Event::JobSetOfAnotherOwner => {
                self.job_set = Some(SimJobSet {
                    ours: false,
                    uid: "another's".into(),
                    version: next,
                    ..SimJobSet::default()
                });
            }
            event => self.meddles(event, next),
        }
    }

    /// What other clients and administrators do to what a TrainJob is rendered from and to what it needs.
    fn meddles(&mut self, event: Event, next: u64) {
        match event {
            Event::SnapshotIsDeleted => (self.snapshot, self.meddled) = (None, true),
            Event::SnapshotBreaks | Event::SnapshotIsTaken => {
                self.meddled = true;
                let snapshot = self.snapshot.as_mut().unwrap();
                snapshot.version = next;
                snapshot.broken |= event == Event::SnapshotBreaks;
                snapshot.ours &= event == Event::SnapshotBreaks;
            }
            Event::ObjectIsDeleted(at) | Event::ObjectIsTaken(at) => {
                self.meddled = true;
                let object = self.rendered[at].clone();
                self.objects.remove(&object);
                if matches!(event, Event::ObjectIsTaken(_)) {
                    let it = SimObject {
                        ours: false,
                        version: next,
                        content: 0,
                    };
                    self.objects.insert(object, it);
                }
            }
            Event::RuntimeIsDeleted => self.runtime = false,
            Event::RuntimeIsCreated => self.runtime = true,
            Event::RenderingIsRefused => self.rendering = Some(Fault::Input),
            Event::RenderingIsPossible => self.rendering = None,
            Event::PluginsAreReplaced(number) => self.plugins = number,
            Event::KindsAreRemoved => {
                self.objects.clear();
                (self.served, self.meddled) = (false, true);
            }
            Event::KindsAreServed => self.served = true,
            Event::AdmissionRefuses => self.refuses = true,
            Event::AdmissionAllows => self.refuses = false,
            Event::LookupsChange => self.controllers[0].outdated = true,
            other => panic!("{other:?}"),
        }
    }

    /// Changes the TrainJob.
    pub(in super::super) fn edits(&mut self, change: impl FnOnce(&mut JobFacts)) {
        change(&mut self.job);
        let resumed = if self.job.desired.suspend { 0 } else { RESUMED };
        self.job.fingerprint = 1 + self.edit * 10 + u64::from(self.placement) + resumed;
        self.job_version = self.next_version();
    }

    fn collects(&mut self) {
        self.job_set.take_if(|found| found.ours);
        self.snapshot.take_if(|snapshot| snapshot.ours);
        self.objects.retain(|_, it| !it.ours);
        self.jobs.clear();
        self.meddled = true;
    }

    /// Deletes the JobSet.
    pub(in super::super) fn delete_job_set_now(&mut self) {
        self.change(Self::loses_job_set);
    }

    pub(super) fn loses_job_set(&mut self) {
        self.next_version();
        (self.job_set, self.jobs) = (None, Vec::new());
    }

    fn can_act(&self) -> bool {
        self.job_set.as_ref().is_some_and(|found| {
            let lacks_jobs = self.jobs.is_empty() && !found.has_ended();
            let waits = found.deleting.is_none() && (lacks_jobs || found.runs() && !found.active);
            found.ours && (waits || found.suspended && found.active)
        })
    }

    /// JobSet's controller does the next of what it has to do.
    fn acts(&mut self) {
        let next = self.next_version();
        let Some(found) = &mut self.job_set else {
            return;
        };
        found.version = next;
        if found.suspended && found.active {
            found.active = false;
            return;
        }
        if self.jobs.is_empty() {
            self.jobs_placement = found.placement;
            self.jobs = vec![OldJob {
                name: "node-0".into(),
                uid: Some(next.to_string().into()),
                deleting: false,
            }];
        }
        found.counted = true;
        found.active = found.runs();
        let is_placed = self.jobs_placement == found.placement || self.unlisted;
        if found.active && !is_placed {
            self.breaks(
                "pods have only their current placement: Jobs of an earlier one were resumed",
            );
        }
        if self.job_set.as_ref().is_some_and(|found| found.active) && self.ended {
            self.breaks("what ended never runs again: pods were started");
        }
    }
}
