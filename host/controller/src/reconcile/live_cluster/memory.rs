//! What the controller keeps of TrainJobs in memory.

use std::sync::Arc;

use super::LiveCluster;
use crate::{
    reconcile::{
        cluster::{KeptInterests, Memory},
        last_reconcile::LastReconcile,
        start::KnownJobSet,
        status,
    },
    watch::JobSetState,
};

impl Memory for LiveCluster<'_> {
    fn job_set_now(&self) -> KnownJobSet {
        KnownJobSet::of(self.reconciler, self.key, &self.job.uid)
    }

    fn begin(&mut self) {
        self.reconciler.interests.begin(self.key);
        let mut last = self.reconciler.last();
        if last.get(self.key).is_some_and(Option::is_some) {
            last.remove(self.key);
        }
    }

    fn begin_writes(&mut self) {
        self.reconciler.last().insert(self.key.clone(), None);
    }

    fn remember(&mut self, last: LastReconcile) {
        if let Some(deleted) = &self.deleted_job_set {
            let all = &self.reconciler.deleted_job_sets;
            all.forget_recreated(self.key, deleted);
        }
        self.reconciler.last().insert(self.key.clone(), Some(last));
    }

    fn settle(&mut self, interests: KeptInterests) {
        self.runtime_memory = None;
        match interests {
            KeptInterests::OfThisReconcile => self.reconciler.interests.settle(self.key),
            KeptInterests::None => self.reconciler.interests.forget(self.key),
        }
    }

    fn forget_last(&mut self) {
        self.reconciler.last().remove(self.key);
    }

    fn note_unseen_end(&mut self) {
        let job = &self.job;
        let end = status::unseen_end(&job.status, self.now);
        // As assumed from its last counts.
        let deleted = JobSetState::of_deleted(job.uid.clone(), end, &job.status.jobs_status);
        let all = &self.reconciler.deleted_job_sets;
        all.note(self.key, Arc::new(deleted), true);
    }

    fn forget_deleted_job_set(&mut self) {
        self.reconciler.deleted_job_sets.forget(self.key);
    }
}
