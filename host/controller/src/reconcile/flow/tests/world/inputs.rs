//! What the simulated cluster answers about the TrainJob, its runtime, its snapshot and its rendering.

use std::{cell::RefCell, collections::BTreeMap};

use serde_json::json;
use trainyard_model::{
    object::{ApplyMode, SecretValue},
    plugin_info::PluginId,
};
use trainyard_render::RenderedObject;

use super::{
    client::{CallKind, Client, Delayed, Sabotage},
    *,
};
use crate::{
    reconcile::{
        cluster::{
            Basis, Cluster, MarksToSet, Renderings, Result, RuntimeSource, Runtimes, Snapshots,
            TrainJobs, Values,
        },
        facts::{FoundMarks, ObjectToWrite, RenderedFacts, WithFacts},
        inputs::Inputs,
    },
    watch::TrainJobStatus,
};

/// A rendered JobSet.
pub(super) struct SimRendering {
    /// Whether the JobSet may have run.
    pub(super) started: bool,
    /// What its snapshot contains, if it is in the cluster.
    pub(super) stored: Option<Box<str>>,
    /// Whether the snapshot was written in this reconcile.
    pub(super) written: bool,
}

impl Cluster for Client<'_> {}

impl Values for Client<'_> {
    type TrainJob = ();
    type Snapshot = SimSnapshot;
    type Rendering = SimRendering;
    type JobSet = SimJobSet;
    /// The wanted placement.
    type Placement = u8;
}

impl<'w> Client<'w> {
    /// Begins a reconcile of a controller; `None` if the TrainJob is gone.
    pub(super) fn begin(
        cell: &'w RefCell<World>,
        who: usize,
        sabotage: Option<Sabotage>,
    ) -> Option<(Self, Start)> {
        let mut world = cell.borrow_mut();
        let job = world.known_job(who);
        if job.gone {
            let controller = &mut world.controllers[who];
            (controller.last, controller.unfinished) = (None, false);
            (controller.interests, controller.deleted) = (None, None);
            return None;
        }
        let mut start = world.start(who, &job);
        if sabotage == Some(Sabotage::AlwaysUpToDate) {
            let (fingerprint, common) = (start.job.fingerprint, start.common.clone());
            if let Some(last) = &mut start.last {
                (last.fingerprint, last.common) = (fingerprint, common);
                start.outdated = false;
            }
        }
        let known = &start.job_set;
        let voucher = known.ours().or(known.deleted.as_deref());
        let client = Self {
            world: cell,
            who,
            sabotage,
            job,
            plugins: world.plugins,
            began_with: world.job_set.clone(),
            deleted: known.deleted.clone().filter(|_| !known.exists()),
            vouches_for: voucher.and_then(|found| found.snapshot.clone()),
            delayed: Vec::new(),
        };
        Some((client, start))
    }

    /// Returns a number for what is rendered.
    pub(super) fn content(&self) -> u64 {
        content_of(&self.job.facts, self.plugins)
    }

    pub(super) fn inputs_text(&self) -> String {
        inputs_text(&self.job.facts, self.plugins)
    }

    /// Fails if the TrainJob is not as it was when the reconcile began. The store is updated with the answer.
    pub(super) fn confirms_train_job(&self, world: &mut World) -> Result<()> {
        let is_current = self.job.version == world.job_version && !world.gone;
        if !is_current {
            world.controllers[self.who].job = None;
            return Err(error(Fault::Conflict));
        }
        Ok(())
    }

    fn snapshot_of(&self, started: bool, world: &World) -> SimSnapshot {
        SimSnapshot {
            started,
            fingerprint: self.job.facts.fingerprint % RESUMED,
            odd_plan: self.plugins % 2 == 1,
            objects: world.rendered.clone(),
            ..SimSnapshot::default()
        }
    }
}

impl TrainJobs for Client<'_> {
    fn inputs(&self) -> Inputs {
        let text = self.inputs_text();
        Inputs::for_tests(text.split('#').next().unwrap())
    }

    async fn train_job(&mut self) -> Result<()> {
        self.call(CallKind::Local, "read TrainJob", |_| Ok(()))
            .await
    }

    async fn confirm_train_job(&mut self) -> Result<()> {
        let confirms = |world: &mut World| self.confirms_train_job(world);
        self.call(CallKind::Read, "confirm TrainJob", confirms)
            .await
    }

    async fn write_status(&mut self, status: &TrainJobStatus) -> Result<()> {
        let writes = |world: &mut World| {
            if world.gone {
                return Ok(());
            }
            if self.job.version != world.job_version {
                return Err(error(Fault::Conflict));
            }
            world.job.status = status.clone();
            world.job_version = world.next_version();
            Ok(())
        };
        self.call(CallKind::WriteStatus, "write status", writes)
            .await
    }

    async fn write_error(&mut self, error: Option<Arc<str>>) -> Result<()> {
        let name = match &error {
            Some(_) => "write error",
            None => "remove error",
        };
        let note = |refused| {
            let at = k8s_openapi::jiff::Timestamp::from_second(self.world.borrow().second);
            self.world.borrow_mut().controllers[self.who].annotated = Some(AnnotationWrite {
                uid: "job".into(),
                text: error.clone(),
                at: at.unwrap(),
                refused,
            });
        };
        let writes = |world: &mut World| {
            if !world.gone {
                world.job.error = error.as_deref().map(Into::into);
                world.job_version = world.next_version();
            }
            Ok(())
        };
        note(false);
        let written = self.call(CallKind::Write, name, writes).await;
        written.inspect_err(|error| note(error.is_rejection()))
    }
}

impl Snapshots for Client<'_> {
    async fn snapshot(&mut self, (): &()) -> Result<Option<WithFacts<SnapshotFacts, SimSnapshot>>> {
        let reads = |world: &mut World| match &world.snapshot {
            Some(snapshot) if !snapshot.ours => Err(error(Fault::Foreign)),
            Some(snapshot) if snapshot.broken => Err(error(Fault::Snapshot)),
            snapshot => {
                // Only a JobSet vouches for it.
                let known = world.known_job_set(self.who);
                let runs = known.ours().is_some_and(|found| !found.suspended);
                let text = self.vouches_for.as_deref();
                let is_it = |it: &SimSnapshot| text.is_none_or(|text| *text == *it.content());
                let counts = |it: &SimSnapshot| it.started || runs || self.job.facts.has_run();
                let trust = match snapshot {
                    _ if !(known.exists() || known.deleted.is_some()) => Trust::Nothing,
                    Some(it) if is_it(it) => Trust::Whole,
                    Some(it) if counts(it) => return Err(error(Fault::Snapshot)),
                    _ => Trust::Renewed,
                };
                Ok(snapshot.as_ref().map(|snapshot| WithFacts {
                    facts: SnapshotFacts {
                        trust,
                        ..snapshot.facts()
                    },
                    value: snapshot.clone(),
                }))
            }
        };
        self.call(CallKind::Read, "read snapshot", reads).await
    }

    async fn snapshot_marks(&mut self) -> Result<FoundMarks> {
        let reads = |world: &mut World| {
            Ok(match &world.snapshot {
                None => FoundMarks::Missing,
                Some(snapshot) if snapshot.ours => FoundMarks::Ours(snapshot.marks()),
                Some(_) => FoundMarks::Foreign(error(Fault::Foreign)),
            })
        };
        self.call(CallKind::Read, "read marks", reads).await
    }

    async fn listed_objects(&mut self) -> Result<Arc<[AppliedObject]>> {
        let reads = |world: &mut World| {
            let snapshot = world.snapshot.as_ref().filter(|snapshot| snapshot.ours);
            let listed = snapshot.map_or(&[][..], |snapshot| &snapshot.objects);
            Ok(AppliedObject::unknown(listed))
        };
        self.call(CallKind::Read, "read list", reads).await
    }

    async fn create_snapshot(&mut self, rendering: &mut SimRendering) -> Result<SnapshotFacts> {
        let new = self.snapshot_of(rendering.started, &self.world.borrow());
        (rendering.stored, rendering.written) = (Some(new.content()), true);
        if self.sabotage == Some(Sabotage::SnapshotLast) {
            let facts = new.facts();
            self.delayed.push(Delayed::Snapshot(new));
            return Ok(facts);
        }
        let creates = |world: &mut World| {
            if world.snapshot.is_some() {
                return Err(error(Fault::Conflict));
            }
            let version = world.next_version();
            Ok(world
                .snapshot
                .insert(SimSnapshot { version, ..new })
                .facts())
        };
        self.call(CallKind::Write, "create snapshot", creates).await
    }

    async fn replace_snapshot(
        &mut self,
        rendering: &mut SimRendering,
        at: &ObjectVersion,
    ) -> Result<SnapshotFacts> {
        let new = self.snapshot_of(false, &self.world.borrow());
        (rendering.stored, rendering.written) = (Some(new.content()), true);
        let replaces = |world: &mut World| {
            let next = world.next_version();
            let snapshot = world.snapshot.as_mut().ok_or(error(Fault::Fails))?;
            if *at != version("snapshot", snapshot.version) {
                return Err(error(Fault::Conflict));
            }
            let is_pinned = snapshot.started;
            *snapshot = SimSnapshot {
                ours: snapshot.ours,
                version: next,
                started: snapshot.started,
                recreate: snapshot.recreate,
                ..new
            };
            let facts = snapshot.facts();
            if is_pinned {
                world.breaks("a snapshot that is pinned is not replaced");
            }
            Ok(facts)
        };
        self.call(CallKind::Write, "replace snapshot", replaces)
            .await
    }

    async fn mark_snapshot(
        &mut self,
        mark: MarksToSet,
        at: &ObjectVersion,
    ) -> Result<ObjectVersion> {
        let name = match (mark.started, mark.recreate) {
            (true, None) => "mark started",
            (true, Some(true)) => "mark started and deleted",
            (false, Some(false)) => "mark recreated",
            _ => panic!("unknown marks: {mark:?}"),
        };
        let marks = |world: &mut World| {
            let next = world.next_version();
            let snapshot = world.snapshot.as_mut().ok_or(error(Fault::Fails))?;
            if *at != version("snapshot", snapshot.version) {
                return Err(error(Fault::Conflict));
            }
            snapshot.version = next;
            snapshot.started |= mark.started;
            snapshot.recreate = mark.recreate.unwrap_or(snapshot.recreate);
            Ok(version("snapshot", next))
        };
        self.call(CallKind::Write, name, marks).await
    }
}

impl Runtimes for Client<'_> {
    async fn runtime(&mut self, (): &()) -> Result<SimSnapshot> {
        let reads = |world: &mut World| match world.runtime {
            true => Ok(self.snapshot_of(false, world)),
            false => Err(error(Fault::Input)),
        };
        self.call(CallKind::Local, "read runtime", reads).await
    }
}

impl Renderings for Client<'_> {
    async fn render(
        &mut self,
        (): &(),
        basis: &Basis<SimSnapshot>,
        existing: Option<&SimSnapshot>,
    ) -> Result<WithFacts<RenderedFacts, SimRendering>> {
        let source = match basis.source {
            RuntimeSource::Snapshot => "snapshot",
            RuntimeSource::Runtime => "runtime",
        };
        let pinned = if basis.started { "pinned " } else { "" };
        let renders = |world: &mut World| match world.rendering {
            Some(Fault::Pinned) if !basis.started => Ok(()),
            None => Ok(()),
            Some(fault) => Err(error(fault)),
        };
        let name = format!("render {pinned}{source}");
        self.call(CallKind::Local, name, renders).await?;
        let needs = self.world.borrow().needs;
        for _ in 0..needs {
            self.call(CallKind::Read, "look up", |_| Ok(())).await?;
        }
        let world = self.world.borrow();
        let content = self.content();
        let is_equal = |snapshot: &&SimSnapshot| snapshot.is_of(&self.job.facts, self.plugins);
        let (saved, stored) = match basis.source {
            RuntimeSource::Snapshot => (
                basis.started || is_equal(&&basis.snapshot),
                Some(basis.snapshot.content()),
            ),
            RuntimeSource::Runtime => {
                let stored = existing.filter(is_equal).map(SimSnapshot::content);
                (stored.is_some(), stored)
            }
        };
        let objects = world.rendered.iter();
        let expires = world.expires && self.sabotage != Some(Sabotage::NeverExpires);
        let facts = RenderedFacts {
            saved,
            inputs: match basis.started {
                true => Box::default(),
                false => self.inputs_text().into(),
            },
            expires,
            objects: objects.map(|object| to_write(object, content)).collect(),
            warnings: world.warnings.clone(),
        };
        let value = SimRendering {
            started: basis.started,
            stored,
            written: false,
        };
        Ok(WithFacts { facts, value })
    }
}

fn to_write(object: &ObjectRef, content: u64) -> ObjectToWrite {
    let has_keys = object.apply == ApplyMode::Once;
    let key = ("key".to_owned(), SecretValue::default());
    let material: BTreeMap<_, _> = has_keys.then_some(key).into_iter().collect();
    ObjectToWrite {
        object: object.clone(),
        content,
        rendered: RenderedObject {
            kind: object.kind.clone(),
            name: object.name.clone(),
            value: json!(content),
            material,
            apply: object.apply,
            plugin: PluginId {
                name: "a".into(),
                version: "1".into(),
                digest: "native".into(),
            },
        },
    }
}
