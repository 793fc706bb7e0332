//! What the simulated cluster does with the JobSet and the objects beside it.

use trainyard_model::object::ApplyMode;
use trainyard_render::RenderedObject;

use super::*;
use crate::reconcile::{
    cluster::{Apply, Diagnosis, JobSets, Jobs, Objects, Placements, Result, WantedPlacement},
    facts::{ObjectState, Owner, PlacementFacts, SuspendedFacts, WithFacts},
};

impl Objects for World {
    async fn object(&mut self, object: &ObjectRef) -> Result<ObjectState> {
        self.call(format!("read {}", object.name)).await?;
        Ok(self.state_of(object))
    }

    async fn listed_object(&mut self, object: &ObjectRef) -> Result<ObjectState> {
        self.call(format!("look at {}", object.name)).await?;
        Ok(self.state_of(object))
    }

    async fn apply_object(
        &mut self,
        rendered: &RenderedObject,
        force: bool,
    ) -> Result<Option<Box<str>>> {
        let how = if force { "force" } else { "apply" };
        self.call(format!("{how} {}", rendered.name)).await?;
        let object = ObjectRef::of(rendered);
        let mode = object.apply;
        assert_ne!(
            mode,
            ApplyMode::Once,
            "an object that is made once is applied"
        );
        let known = self.objects.get(&object);
        if let Some(it) = known {
            assert!(!force || it.ours, "another owner's object is changed");
            if !it.ours {
                return Err(error(Fault::Conflict));
            }
            let runs = self.job_set.as_ref().is_some_and(|found| !found.suspended);
            assert!(
                !runs || mode == ApplyMode::Live,
                "changed beside running pods"
            );
        }
        let content = self.content();
        let same = known
            .filter(|it| it.content == content)
            .map(|it| it.version);
        let version = same.unwrap_or_else(|| self.next_version());
        let it = SimObject {
            ours: true,
            version,
            content,
        };
        self.objects.insert(object, it);
        Ok(Some(version.to_string().into()))
    }

    async fn create_object(&mut self, rendered: &RenderedObject) -> Result<()> {
        self.call(format!("create {}", rendered.name)).await?;
        let object = ObjectRef::of(rendered);
        if self.objects.contains_key(&object) {
            return Err(error(Fault::Conflict));
        }
        let it = SimObject {
            ours: true,
            version: self.next_version(),
            content: self.content(),
        };
        self.objects.insert(object, it);
        match self.created_by_another {
            true => Err(error(Fault::Conflict)),
            false => Ok(()),
        }
    }
}

impl JobSets for World {
    async fn job_set_owner(&mut self) -> Result<Owner> {
        self.call("read owner").await?;
        Ok(match &self.job_set {
            Some(found) if !found.ours && !self.owner_is_gone => {
                Owner::Foreign(error(Fault::Foreign))
            }
            _ => Owner::OursOrGone,
        })
    }

    async fn suspended_job_set(&mut self, uid: &str) -> Result<WithFacts<SuspendedFacts, ()>> {
        self.call("read JobSet").await?;
        match &self.job_set {
            Some(found) if found.suspended && &*found.uid == uid => Ok(WithFacts {
                facts: SuspendedFacts {
                    at: version(&found.uid, found.version),
                    started: found.started,
                    active: found.active,
                    inputs: found.inputs.clone(),
                    removed: found.removed,
                },
                value: (),
            }),
            _ => Err(error(Fault::Conflict)),
        }
    }

    async fn confirm_absence(&mut self) -> Result<()> {
        self.call("confirm absence").await?;
        self.is_current()?;
        if self.job_set.is_some() {
            self.behind = None;
            return Err(error(Fault::Conflict));
        }
        Ok(())
    }

    async fn apply_job_set(&mut self, has_run: &bool, how: Apply<'_, ()>) -> Result<()> {
        let Apply {
            over,
            held,
            recreated,
        } = how;
        let held = held.is_some();
        let over_text = if over.is_some() { " over" } else { "" };
        let held_text = if held { " held" } else { "" };
        let recreated_text = if recreated { " recreated" } else { "" };
        self.call(format!(
            "apply JobSet{over_text}{held_text}{recreated_text}"
        ))
        .await?;
        let snapshot = self.snapshot.as_ref().unwrap();
        assert!(snapshot.ours && !snapshot.broken, "without its snapshot");
        let vouches_for = Some(snapshot.content());
        for object in &self.rendered {
            assert!(self.objects[object].ours, "before its objects");
        }
        assert!(!self.has_ended, "a JobSet that ended is created again");
        if !held && !self.job.desired.suspend {
            self.has_no_old_jobs();
        }
        let suspended = held || self.job.desired.suspend;
        match (&self.job_set, over) {
            (None, None) => {}
            (None, Some(_)) => return Err(error(Fault::Conflict)),
            (Some(found), None) => {
                assert!(!found.ours, "applied over a JobSet that it does not know");
                return Err(error(Fault::Conflict));
            }
            (Some(found), Some(over)) => {
                if *over != version(&found.uid, found.version) {
                    return Err(error(Fault::Conflict));
                }
                assert!(found.ours && found.suspended && !found.has_run, "{found:?}");
                if !self.mutable {
                    return Err(error(Fault::Immutable));
                }
            }
        }
        let version = self.next_version();
        let known = self.job_set.take();
        let before = self.behind.clone().unwrap_or_else(|| known.clone());
        self.job_set = Some(SimJobSet {
            uid: known.map_or_else(|| format!("job set {version}").into(), |known| known.uid),
            version,
            suspended,
            has_run: !suspended,
            started: !suspended,
            inputs: (suspended && !held && !has_run).then(|| self.inputs_text().into()),
            recreated,
            vouches_for,
            placement: self.placement,
            removed: held,
            ..SimJobSet::default()
        });
        self.mutable = true;
        if std::mem::take(&mut self.lost) {
            self.behind = Some(before);
            return Err(error(Fault::Fails));
        }
        self.behind = None;
        Ok(())
    }

    async fn check_creatable(&mut self, _: &bool, _: Apply<'_, ()>) -> Result<()> {
        self.call("check creatable").await
    }

    async fn suspend(&mut self, uid: &str) -> Result<()> {
        self.call("suspend").await?;
        let next = self.next_version();
        let found = self.job_set.as_mut().unwrap();
        assert_eq!(&*found.uid, uid, "another JobSet is suspended");
        assert!(found.ours && !found.suspended && self.job.desired.suspend);
        (found.suspended, found.started, found.inputs) = (true, true, None);
        (found.active, found.version) = (false, next);
        self.behind = None;
        Ok(())
    }

    async fn relocate(&mut self, at: &ObjectVersion, (): &()) -> Result<()> {
        self.call("relocate").await?;
        let wanted = self.placement;
        let found = self.job_set_at(at)?;
        (found.placement, found.removed) = (wanted, true);
        self.behind = None;
        Ok(())
    }

    async fn resume(
        &mut self,
        at: &ObjectVersion,
        (): &(),
        rendering: Option<&bool>,
    ) -> Result<()> {
        self.call("resume").await?;
        let writes = ["create snapshot", "replace snapshot"];
        let wrote = self.done.iter().any(|done| writes.contains(&done.as_str()));
        let content = self.snapshot.as_ref().map(SimSnapshot::content);
        assert!(
            !wrote || rendering.is_some(),
            "nothing vouches for the snapshot"
        );
        self.has_no_old_jobs();
        let (wanted, suspend) = (self.placement, self.job.desired.suspend);
        let found = self.job_set_at(at)?;
        assert!(
            !suspend,
            "a TrainJob that is to be suspended is unsuspended"
        );
        (found.placement, found.removed) = (wanted, false);
        (found.suspended, found.has_run) = (false, true);
        if wrote {
            found.vouches_for = content;
        }
        self.behind = None;
        Ok(())
    }

    async fn delete_job_set(&mut self, at: &ObjectVersion) -> Result<()> {
        self.call("delete JobSet").await?;
        let found = self.job_set.as_ref().unwrap();
        let now = version(&found.uid, found.version);
        assert_eq!(at.uid, now.uid, "another JobSet is deleted");
        let end = status::end(&self.job.status);
        let is_overdue = end.is_some_and(|end| end.reason == status::DEADLINE_EXCEEDED);
        assert!(found.ours, "another owner's JobSet is deleted");
        let may_be_deleted = *at == now && found.suspended && !found.has_run;
        assert!(is_overdue || may_be_deleted, "{found:?}");
        self.delete_job_set_now(true);
        Ok(())
    }
}

impl Placements for World {
    async fn placement(
        &mut self,
        (): &(),
        (): &(),
        wanted: WantedPlacement<'_, Self>,
    ) -> Result<WithFacts<PlacementFacts, ()>> {
        self.call(match wanted {
            WantedPlacement::Applied(_) => "compare with all",
            WantedPlacement::Rendered(_) => "compare with rendered placement",
            WantedPlacement::Noted(()) => "compare with noted placement",
            WantedPlacement::Live => "compare with live placement",
            WantedPlacement::AsBefore(()) => "compare again",
        })
        .await?;
        let found = self.job_set.as_ref().unwrap();
        let moves = found.placement != self.placement;
        let facts = PlacementFacts {
            loses: moves || found.removed,
            moves: moves && !matches!(wanted, WantedPlacement::Applied(_)),
            noted: found.removed,
        };
        Ok(WithFacts { facts, value: () })
    }
}

impl Jobs for World {
    async fn old_jobs(&mut self, (): &()) -> Result<Vec<OldJob>> {
        self.call("list Jobs").await?;
        self.listed_jobs = true;
        Ok(self.jobs.clone())
    }

    async fn delete_job(&mut self, job: &OldJob) -> Result<()> {
        self.call(format!("delete {}", job.name)).await?;
        self.jobs.retain(|known| known != job);
        self.next_version();
        Ok(())
    }
}

impl Diagnosis for World {
    async fn check_creation(&mut self) -> Result<()> {
        self.call("check creation").await
    }

    async fn waiting_object(&mut self, objects: &[ObjectRef]) -> Result<Option<ReconcileError>> {
        let names: Vec<_> = objects.iter().map(|it| it.name.to_string()).collect();
        self.call(format!("check {}", names.join(", "))).await?;
        Ok(None)
    }
}

impl World {
    fn state_of(&self, object: &ObjectRef) -> ObjectState {
        match self.objects.get(object) {
            None => ObjectState::Missing,
            Some(it) if it.ours => ObjectState::Ours(Some(it.version.to_string().into())),
            Some(_) => ObjectState::Unusable(error(Fault::Foreign)),
        }
    }

    /// Returns the suspended JobSet at that version, and increments its version.
    fn job_set_at(&mut self, at: &ObjectVersion) -> Result<&mut SimJobSet> {
        let next = self.next_version();
        let found = self.job_set.as_mut().unwrap();
        if *at != version(&found.uid, found.version) {
            return Err(error(Fault::Conflict));
        }
        assert!(found.ours && found.suspended, "{found:?}");
        found.version = next;
        Ok(found)
    }

    /// Fails if Jobs exist with an earlier placement that could have been listed.
    fn has_no_old_jobs(&self) {
        let found = self.job_set.as_ref();
        let removed = found.is_some_and(|found| found.removed);
        let tried = self.done.iter().any(|done| done == "list Jobs");
        let refused = tried && !self.listed_jobs;
        assert!(!removed || refused || self.jobs.is_empty(), "with old Jobs");
    }
}
