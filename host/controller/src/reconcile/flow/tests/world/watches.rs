//! What the controllers know of the TrainJob and its JobSet: the newest state, or an older one if their watch is behind. The two watches are
//! independent of each other, so their events come in any order between them, and in the order of the changes within each.

use std::collections::VecDeque;

use super::*;

/// What a controller knows whose watch is behind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Behind<T> {
    pub(super) seen: T,
    /// The later states, of which the watch will tell.
    pub(super) later: VecDeque<T>,
}

impl<T> Behind<T> {
    pub(in super::super) fn at(seen: T) -> Self {
        let later = VecDeque::new();
        Self { seen, later }
    }

    pub(super) fn each(&mut self) -> impl Iterator<Item = &mut T> {
        std::iter::once(&mut self.seen).chain(&mut self.later)
    }
}

impl World {
    /// Returns the TrainJob as it is.
    pub(super) fn job_now(&self) -> KnownJob {
        KnownJob {
            facts: self.job.clone(),
            version: self.job_version,
            placement: self.placement,
            gone: self.gone,
        }
    }

    /// Returns the TrainJob as a controller knows it.
    pub(super) fn known_job(&self, who: usize) -> KnownJob {
        let behind = self.controllers[who].job.as_ref();
        behind.map_or_else(|| self.job_now(), |behind| behind.seen.clone())
    }

    /// Returns what a controller knows of the JobSet.
    pub(super) fn known_job_set(&self, who: usize) -> KnownJobSet {
        let controller = &self.controllers[who];
        let behind = controller.job_sets.as_ref();
        let stored = behind.map_or(&self.job_set, |behind| &behind.seen);
        let stored = match stored {
            None => StoredJobSet::Missing,
            Some(found) if !found.ours => StoredJobSet::NotOurs,
            Some(found) => StoredJobSet::Ours(Arc::new(found.state())),
        };
        KnownJobSet {
            stored,
            deleted: controller.deleted.clone(),
        }
    }

    /// Changes the cluster, and has the watches tell of it.
    pub(super) fn change<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> T {
        let (job_version, job_set) = (self.job_version, self.job_set.clone());
        let changed = change(self);
        if self.job_version != job_version {
            let now = self.job_now();
            for controller in &mut self.controllers {
                if let Some(behind) = &mut controller.job {
                    behind.later.push_back(now.clone());
                }
            }
            (0..2).for_each(|who| self.forget_deleted_of_ended(who));
        }
        if self.job_set != job_set {
            for who in 0..2 {
                match &mut self.controllers[who].job_sets {
                    Some(behind) => behind.later.push_back(self.job_set.clone()),
                    None => self.note_deletion(who, job_set.as_ref(), true),
                }
            }
        }
        changed
    }

    /// Lets a watch of a controller fall behind.
    pub(super) fn falls_behind(&mut self, who: usize, of_job_sets: bool) {
        if of_job_sets {
            let now = self.job_set.clone();
            let known = &mut self.controllers[who].job_sets;
            known.get_or_insert_with(|| Behind::at(now));
        } else {
            let now = self.job_now();
            let known = &mut self.controllers[who].job;
            known.get_or_insert_with(|| Behind::at(now));
        }
    }

    /// A watch that is behind tells of the next change. Without a further one, it is no longer behind.
    pub(super) fn tells(&mut self, who: usize, of_job_sets: bool) {
        let controller = &mut self.controllers[who];
        if of_job_sets {
            let Some(mut behind) = controller.job_sets.take() else {
                return;
            };
            if let Some(next) = behind.later.pop_front() {
                let before = std::mem::replace(&mut behind.seen, next);
                let is_gone = behind.seen.is_none();
                controller.job_sets = Some(behind).filter(|behind| !behind.later.is_empty());
                if is_gone {
                    self.note_deletion_of(who, before.as_ref(), true);
                }
            }
        } else if let Some(mut behind) = controller.job.take() {
            if let Some(next) = behind.later.pop_front() {
                behind.seen = next;
            }
            controller.job = Some(behind).filter(|behind| !behind.later.is_empty());
            self.forget_deleted_of_ended(who);
        }
    }

    /// A controller lists the TrainJob and the JobSet again, and misses what happened in between.
    pub(super) fn lists(&mut self, who: usize) {
        let controller = &mut self.controllers[who];
        controller.job = None;
        if let Some(behind) = controller.job_sets.take() {
            self.note_deletion(who, behind.seen.as_ref(), false);
        }
        self.forget_deleted_of_ended(who);
    }

    /// A controller notes that the JobSet that it knew is gone. One that was replaced is not missing from a list.
    fn note_deletion(&mut self, who: usize, known: Option<&SimJobSet>, seen: bool) {
        let is_replaced = |now: &SimJobSet| known.is_some_and(|known| known.uid != now.uid);
        if self.job_set.is_none() || seen && self.job_set.as_ref().is_some_and(is_replaced) {
            self.note_deletion_of(who, known, seen);
        }
    }

    fn note_deletion_of(&mut self, who: usize, last: Option<&SimJobSet>, seen: bool) {
        let job = self.known_job(who);
        let Some(last) = last.filter(|_| status::end(&job.facts.status).is_none()) else {
            return;
        };
        let last = last.state().at(0);
        let is_noted = (seen || last.end.is_some()) && last.owner.is_some();
        self.controllers[who].deleted = is_noted.then(|| Arc::new(last));
    }

    fn forget_deleted_of_ended(&mut self, who: usize) {
        let job = self.known_job(who);
        if job.gone || status::end(&job.facts.status).is_some() {
            self.controllers[who].deleted = None;
        }
    }

    /// The TrainJob has changed, and no watch has told of it.
    pub(in super::super) fn job_is_newer(&mut self) {
        self.falls_behind(0, false);
        self.job_version = self.next_version();
    }

    /// A controller restarts.
    pub(in super::super) fn restart(&mut self, who: usize) {
        self.hidden |= self.controllers[who].unfinished && self.job.error.is_none();
        self.controllers[who] = Controller::default();
    }
}
