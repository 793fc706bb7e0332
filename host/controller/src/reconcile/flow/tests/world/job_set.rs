//! What the simulated cluster does with the JobSet and its Jobs.

use super::{
    client::{CallKind, Client, Delayed, Sabotage},
    inputs::SimRendering,
    *,
};
use crate::reconcile::{
    cluster::{Apply, Diagnosis, JobSets, Jobs, Placements, Result, WantedPlacement},
    facts::{Owner, PlacementFacts, SuspendedFacts, WithFacts},
};

impl Client<'_> {
    /// Applies the JobSet as the API server and JobSet let it.
    fn applies(
        &self,
        world: &mut World,
        rendering: &SimRendering,
        how: Apply<'_, u8>,
    ) -> Result<()> {
        let suspended = how.held.is_some() || self.job.facts.desired.suspend;
        if world.refuses {
            return Err(error(Fault::Refused));
        }
        match (&world.job_set, how.over) {
            (None, None) => {}
            (None, Some(_)) => return Err(error(Fault::Conflict)),
            (Some(found), None) if !found.ours => return Err(error(Fault::Conflict)),
            // Server-side apply changes one of the same manager.
            (Some(found), None) if found.content != self.content() => {
                return Err(error(Fault::Immutable));
            }
            (Some(_), None) => world.overwritten = true,
            (Some(found), Some(over)) => {
                if *over != version(&found.uid, found.version) {
                    return Err(error(Fault::Conflict));
                }
                if !world.mutable {
                    return Err(error(Fault::Immutable));
                }
            }
        }
        self.checks_order(world, rendering);
        let version = world.next_version();
        world.placed_late = !suspended && self.job.placement != world.placement;
        let known = world.job_set.take();
        world.made += u64::from(known.is_none());
        world.reconciled &= known.is_some();
        let expires = world.expires && self.sabotage != Some(Sabotage::NeverExpires);
        let uid = format!("job set {}", world.made + 1);
        let known = known.as_ref();
        let inputs = self.inputs_text();
        world.job_set = Some(SimJobSet {
            uid: known.map_or_else(|| uid.into(), |known| known.uid.clone()),
            version,
            suspended,
            expires,
            has_run: !suspended || known.is_some_and(|known| known.has_run),
            started: how.held.is_none() && !suspended,
            inputs: (suspended && how.held.is_none() && !rendering.started).then(|| inputs.into()),
            recreated: how.recreated,
            vouches_for: rendering.stored.clone(),
            content: self.content(),
            placement: self.job.placement,
            removed: how.held.is_some(),
            counted: known.is_some_and(|known| known.counted),
            active: known.is_some_and(|known| known.active),
            ..SimJobSet::default()
        });
        world.mutable = true;
        Ok(())
    }

    fn checks_order(&self, world: &mut World, rendering: &SimRendering) {
        let snapshot = world.snapshot.as_ref().filter(|it| it.ours && !it.broken);
        let is_saved = snapshot.is_some() && rendering.stored.is_some();
        let is_ours = |object: &ObjectRef| world.objects.get(object).is_some_and(|it| it.ours);
        let has_objects = world.rendered.iter().all(is_ours);
        if !world.meddled && !is_saved {
            world.breaks("a JobSet has its snapshot: it was written before the snapshot");
        }
        if !world.meddled && !has_objects {
            world.breaks("a JobSet has its objects: it was written before one of them");
        }
        if world.ended && world.job_set.is_none() && world.has_forgotten_end(self.who) {
            world.ended = false;
        } else if world.ended && world.job_set.is_none() {
            world.breaks("what ended never runs again: another JobSet was created");
        }
    }

    /// Makes the writes that sabotage delayed.
    async fn writes_delayed(&mut self) -> Result<()> {
        for delayed in std::mem::take(&mut self.delayed) {
            let writes = |world: &mut World| {
                let version = world.next_version();
                match delayed {
                    Delayed::Snapshot(new) => world.snapshot = Some(SimSnapshot { version, ..new }),
                    Delayed::Object(object, it) => {
                        world.objects.insert(object, SimObject { version, ..it });
                    }
                }
                Ok(())
            };
            self.call(CallKind::Write, "what was delayed", writes)
                .await?;
        }
        Ok(())
    }
}

impl JobSets for Client<'_> {
    async fn job_set_owner(&mut self) -> Result<Owner> {
        let reads = |world: &mut World| {
            Ok(match &world.job_set {
                Some(found) if !found.ours && !world.owner_is_gone => {
                    Owner::Foreign(error(Fault::Foreign))
                }
                _ => Owner::OursOrGone,
            })
        };
        self.call(CallKind::Read, "read owner", reads).await
    }

    async fn suspended_job_set(
        &mut self,
        uid: &str,
    ) -> Result<WithFacts<SuspendedFacts, SimJobSet>> {
        let reads = |world: &mut World| match &world.job_set {
            Some(found) if found.suspended && &*found.uid == uid && found.deleting.is_none() => {
                Ok(WithFacts {
                    facts: SuspendedFacts {
                        at: version(&found.uid, found.version),
                        started: found.started,
                        active: found.active,
                        inputs: found.inputs.clone(),
                        removed: found.removed,
                    },
                    value: found.clone(),
                })
            }
            _ => Err(error(Fault::Conflict)),
        };
        self.call(CallKind::Read, "read JobSet", reads).await
    }

    async fn confirm_absence(&mut self) -> Result<()> {
        let reads = |world: &mut World| {
            self.confirms_train_job(world)?;
            if world.job_set.is_some() {
                world.controllers[self.who].job_sets = None;
                return Err(error(Fault::Conflict));
            }
            Ok(())
        };
        self.call(CallKind::Read, "confirm absence", reads).await
    }

    async fn apply_job_set(&mut self, rendering: &SimRendering, how: Apply<'_, u8>) -> Result<()> {
        let over = if how.over.is_some() { " over" } else { "" };
        let held = if how.held.is_some() { " held" } else { "" };
        let recreated = if how.recreated { " recreated" } else { "" };
        let name = format!("apply JobSet{over}{held}{recreated}");
        let applies = |world: &mut World| self.applies(world, rendering, how);
        self.call(CallKind::WriteJobSet, name, applies).await?;
        self.writes_delayed().await
    }

    async fn check_creatable(&mut self, _: &SimRendering, _: Apply<'_, u8>) -> Result<()> {
        let checks = |world: &mut World| match world.refuses {
            true => Err(error(Fault::Refused)),
            false => Ok(()),
        };
        self.call(CallKind::Read, "check creatable", checks).await
    }

    async fn suspend(&mut self, uid: &str) -> Result<()> {
        let suspends = |world: &mut World| {
            let next = world.next_version();
            let refuses = world.refuses;
            let found = world.job_set.as_mut().ok_or(error(Fault::Fails))?;
            if &*found.uid != uid {
                return Err(error(Fault::Conflict));
            }
            if refuses {
                return Err(error(Fault::Refused));
            }
            (found.suspended, found.started, found.inputs) = (true, true, None);
            found.version = next;
            Ok(())
        };
        self.call(CallKind::WriteJobSet, "suspend", suspends).await
    }

    async fn relocate(&mut self, at: &ObjectVersion, placement: &u8) -> Result<()> {
        let relocates = |world: &mut World| {
            let found = world.job_set_at(at)?;
            (found.placement, found.removed) = (*placement, true);
            Ok(())
        };
        self.call(CallKind::WriteJobSet, "relocate", relocates)
            .await
    }

    async fn resume(
        &mut self,
        at: &ObjectVersion,
        placement: &u8,
        rendering: Option<&SimRendering>,
    ) -> Result<()> {
        let written = rendering.filter(|rendering| rendering.written);
        let vouches_for = written.and_then(|rendering| rendering.stored.clone());
        let resumes = |world: &mut World| {
            let (ended, is_late) = (world.ended, *placement != world.placement);
            let found = world.job_set_at(at)?;
            (found.placement, found.removed) = (*placement, false);
            (found.suspended, found.has_run) = (false, true);
            found.vouches_for = vouches_for.or(found.vouches_for.take());
            if self.sabotage == Some(Sabotage::RendersAgain) {
                found.content = self.content();
            }
            let is_new = ended && !found.has_ended();
            (world.placed_late, world.reconciled) = (is_late, false);
            if self.job.facts.desired.suspend {
                world.breaks("a TrainJob that is to be suspended is not resumed: it was");
            }
            if is_new {
                world.breaks("what ended never runs again: another JobSet was resumed");
            }
            Ok(())
        };
        self.call(CallKind::WriteJobSet, "resume", resumes).await
    }

    async fn delete_job_set(&mut self, at: &ObjectVersion) -> Result<()> {
        let deletes = |world: &mut World| {
            let Some(found) = &world.job_set else {
                return Ok(());
            };
            let now = version(&found.uid, found.version);
            if at.uid != now.uid || at.version.is_some() && at.version != now.version {
                return Err(error(Fault::Conflict));
            }
            let end = status::end(&world.job.status);
            let is_overdue = end.is_some_and(|end| end.reason == status::DEADLINE_EXCEEDED);
            if !is_overdue && found.has_run {
                world.breaks("a JobSet that has run is not deleted: it was");
            }
            world.ended |= is_overdue;
            world.loses_job_set();
            Ok(())
        };
        self.call(CallKind::Write, "delete JobSet", deletes).await
    }
}

impl Placements for Client<'_> {
    async fn placement(
        &mut self,
        (): &(),
        found: &SimJobSet,
        wanted: WantedPlacement<'_, Self>,
    ) -> Result<WithFacts<PlacementFacts, u8>> {
        let name = match &wanted {
            WantedPlacement::Applied(_) => "compare with all",
            WantedPlacement::Rendered(_) => "compare with rendered placement",
            WantedPlacement::Noted(_) => "compare with noted placement",
            WantedPlacement::Live => "compare with live placement",
            WantedPlacement::AsBefore(_) => "compare again",
        };
        let is_whole = matches!(wanted, WantedPlacement::Applied(_));
        let placement = match wanted {
            WantedPlacement::AsBefore(placement) => *placement,
            _ => self.job.placement,
        };
        self.call(CallKind::Local, name, |_| Ok(())).await?;
        let moves = found.placement != placement;
        let facts = PlacementFacts {
            loses: moves || found.removed,
            moves: moves && !is_whole,
            noted: found.removed,
        };
        Ok(WithFacts {
            facts,
            value: placement,
        })
    }
}

impl Jobs for Client<'_> {
    async fn old_jobs(&mut self, _: &SimJobSet) -> Result<Vec<OldJob>> {
        let lists = |world: &mut World| {
            let placement = world.job_set.as_ref().map(|found| found.placement);
            let are_old = placement != Some(world.jobs_placement)
                && self.sabotage != Some(Sabotage::KeepsJobs);
            Ok(if are_old {
                world.jobs.clone()
            } else {
                Vec::new()
            })
        };
        self.call(CallKind::Read, "list Jobs", lists).await
    }

    async fn delete_job(&mut self, job: &OldJob) -> Result<()> {
        let deletes = |world: &mut World| {
            world.jobs.retain(|known| known != job);
            world.next_version();
            Ok(())
        };
        self.call(CallKind::Write, format!("delete {}", job.name), deletes)
            .await
    }
}

impl Diagnosis for Client<'_> {
    async fn check_creation(&mut self) -> Result<()> {
        self.call(CallKind::Read, "check creation", |_| Ok(()))
            .await
    }

    async fn waiting_object(&mut self, objects: &[ObjectRef]) -> Result<Option<ReconcileError>> {
        let names: Vec<_> = objects.iter().map(|it| it.name.to_string()).collect();
        let name = format!("check {}", names.join(", "));
        self.call(CallKind::Read, name, |_| Ok(None)).await
    }
}

impl World {
    /// Whether nothing that lasts shows that a JobSet that is gone has ended: its pods were not counted and the snapshot is not marked, or the
    /// status still shows that it is suspended; and the controller does not know. Of one that expires, this is so only if no reconcile has
    /// succeeded since it was started.
    pub(in super::super) fn has_forgotten_end(&self, who: usize) -> bool {
        let is_marked = self
            .snapshot
            .as_ref()
            .is_some_and(|it| it.ours && it.started);
        let is_counted =
            status::has_run(&self.job.status) || status::end(&self.job.status).is_some();
        let has_counts = !self.job.status.jobs_status.is_empty();
        let is_suspended = has_counts && self.job.status.is_true(status::SUSPENDED).is_some();
        let deleted = self.controllers[who].deleted.as_ref();
        let is_known = deleted.is_some_and(|last| last.end.is_some());
        let is_shown = (is_marked || is_counted) && !is_suspended;
        !is_shown && !is_known && (!self.expires || !self.reconciled)
    }

    /// Returns the suspended JobSet at that version, and increments its version.
    fn job_set_at(&mut self, at: &ObjectVersion) -> Result<&mut SimJobSet> {
        let (next, refuses) = (self.next_version(), self.refuses);
        let found = self.job_set.as_mut().ok_or(error(Fault::Fails))?;
        if *at != version(&found.uid, found.version) {
            return Err(error(Fault::Conflict));
        }
        if refuses {
            return Err(error(Fault::Refused));
        }
        found.version = next;
        Ok(found)
    }
}
