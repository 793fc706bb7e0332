//! The actions in the simulated cluster.

use super::*;

impl World {
    pub(super) fn act(
        &mut self,
        action: &Action,
        o: &Observed,
    ) -> Result<Effect, ReconcileFailure> {
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
                assert!(found.ours && !found.suspended && self.job.desired.suspend);
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
                let (wanted, suspend) = (self.placement, self.job.desired.suspend);
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
                self.deleted_job_set = Some(Arc::new(JobSetState::of_deleted(uid, end, &[])));
            }
            Action::Remember(last) => {
                self.last = Some(last.clone());
                if o.initial.job_set().is_none() {
                    self.deleted_job_set = None;
                }
            }
            Action::UpdateMemory(settle) => {
                if settle.interests == InterestChange::Forget {
                    self.outdated = false;
                }
                if settle.forget_last {
                    self.last = None;
                }
            }
            Action::WriteStatus(status) => self.job.status = (**status).clone(),
            Action::WriteError(error) => self.job.error = error.as_deref().map(Into::into),
            Action::ForgetDeletedJobSet => self.deleted_job_set = None,
        }
        Ok(Effect::Done)
    }

    fn create_snapshot(&mut self, basis: Basis) -> Result<Effect, ReconcileFailure> {
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

    fn replace_snapshot(&mut self, at: &ObjectVersion) -> Result<Effect, ReconcileFailure> {
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

    fn apply_object(
        &mut self,
        object: &ObjectRef,
        force: bool,
    ) -> Result<Effect, ReconcileFailure> {
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
        over: Option<&ObjectVersion>,
        held: bool,
        recreated: bool,
        o: &Observed,
    ) -> Result<Effect, ReconcileFailure> {
        let snapshot = self.snapshot.as_ref().unwrap();
        assert!(snapshot.ours && !snapshot.broken, "without its snapshot");
        for object in &self.rendered {
            assert!(self.objects[object].ours, "before its objects");
        }
        assert!(!self.has_ended, "a JobSet that ended is created again");
        if !held && !self.job.desired.suspend {
            self.has_no_old_jobs(o);
        }
        let suspended = held || self.job.desired.suspend;
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
        (self.mutable, self.deleted_job_set) = (true, self.deleted_job_set.take());
        Ok(Effect::Done)
    }

    /// Returns the suspended JobSet at that version, and increments its version.
    fn current_job_set(&mut self, at: &ObjectVersion) -> Result<&mut SimJobSet, ReconcileFailure> {
        let next = self.next_version();
        let found = self.job_set.as_mut().unwrap();
        if *at != version(&found.uid, found.version) {
            return Err(failure(Class::Conflict));
        }
        assert!(found.ours && found.suspended, "{found:?}");
        found.version = next;
        Ok(found)
    }

    /// Fails if Jobs exist with an earlier placement that could have been observed.
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
