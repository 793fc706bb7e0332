//! The last states of deleted JobSets. If a JobSet expires, its deletion may be the only sign that it has ended.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{queue::NamespacedName, watch::JobSetState};

/// The last states of JobSets whose TrainJobs have no end in their status yet.
#[derive(Debug, Default)]
pub(crate) struct DeletedJobSets(Mutex<HashMap<NamespacedName, Arc<JobSetState>>>);

impl DeletedJobSets {
    /// Notes the last state of a deleted JobSet. If its deletion was not observed, it may have ended after that state.
    pub(crate) fn note(&self, key: &NamespacedName, last: Arc<JobSetState>, seen: bool) {
        if seen || last.end.is_some() {
            self.all().insert(key.clone(), last);
        } else {
            self.forget(key);
        }
    }

    /// Forgets a JobSet whose TrainJob has ended or was deleted.
    pub(super) fn forget(&self, key: &NamespacedName) {
        self.all().remove(key);
    }

    /// Returns the JobSet that was deleted last.
    pub(super) fn last(&self, key: &NamespacedName) -> Option<Arc<JobSetState>> {
        self.all().get(key).cloned()
    }

    /// Forgets a JobSet that was recreated, unless another one was deleted since.
    pub(super) fn forget_recreated(&self, key: &NamespacedName, last: &Arc<JobSetState>) {
        let mut all = self.all();
        if all.get(key).is_some_and(|known| Arc::ptr_eq(known, last)) {
            all.remove(key);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.all().len()
    }

    /// Returns the last JobSet of the TrainJob with that UID.
    pub(super) fn of(&self, key: &NamespacedName, job_uid: &str) -> Option<Arc<JobSetState>> {
        let last = self.all().get(key).cloned()?;
        (last.owner.as_deref() == Some(job_uid)).then_some(last)
    }

    fn all(&self) -> MutexGuard<'_, HashMap<NamespacedName, Arc<JobSetState>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{
        apimachinery::pkg::apis::meta::v1::{Condition, Time},
        jiff::Timestamp,
    };

    use super::*;

    fn job_set(ended: bool) -> Arc<JobSetState> {
        let end = ended.then(|| {
            Box::new(Condition {
                type_: "Completed".to_owned(),
                status: "True".to_owned(),
                reason: String::new(),
                message: String::new(),
                last_transition_time: Time(Timestamp::UNIX_EPOCH),
                observed_generation: None,
            })
        });
        let mut state = JobSetState::for_tests(end, Box::default());
        state.owner = Some("job".into());
        Arc::new(state)
    }

    #[test]
    fn only_an_observed_deletion_counts_as_one() {
        let key = NamespacedName::new("ns", "name");
        for (ended, seen, is_deleted) in [
            (false, true, true),
            (false, false, false),
            (true, true, false),
            (true, false, false),
        ] {
            let deleted_job_set = DeletedJobSets::default();
            // An earlier JobSet was deleted before.
            deleted_job_set.note(&key, job_set(false), true);
            deleted_job_set.note(&key, job_set(ended), seen);
            let last = deleted_job_set.of(&key, "job");
            let has_ended = last.map(|last| last.end.is_some());
            assert_eq!(has_ended == Some(false), is_deleted);
            assert_eq!(has_ended == Some(true), ended);
            assert!(deleted_job_set.of(&key, "another").is_none());
        }
    }

    #[test]
    fn a_job_set_deleted_while_another_is_recreated_is_not_forgotten() {
        let (key, deleted_job_set) = (NamespacedName::new("ns", "name"), DeletedJobSets::default());
        deleted_job_set.note(&key, job_set(false), true);
        let first = deleted_job_set.last(&key);
        deleted_job_set.note(&key, job_set(false), true);
        if let Some(first) = &first {
            deleted_job_set.forget_recreated(&key, first);
        }
        assert!(
            deleted_job_set
                .of(&key, "job")
                .is_some_and(|last| last.end.is_none())
        );
        if let Some(second) = deleted_job_set.last(&key) {
            deleted_job_set.forget_recreated(&key, &second);
        }
        assert_eq!(deleted_job_set.len(), 0);
    }
}
