//! What the simulated cluster answers about the TrainJob, its runtime, its snapshot and its rendering.

use std::collections::BTreeMap;

use serde_json::json;
use trainyard_model::{
    object::{ApplyMode, SecretValue},
    plugin_info::PluginId,
};
use trainyard_render::RenderedObject;

use super::*;
use crate::{
    generation::CommonInputs,
    reconcile::{
        cluster::{
            Basis, Cluster, MarksToSet, Memory, Renderings, Result, RuntimeSource, Runtimes,
            Snapshots, TrainJobs, Values,
        },
        facts::{FoundMarks, ObjectToWrite, RenderedFacts, WithFacts},
        inputs::Inputs,
        last_reconcile::AppliedObject,
        vouch::Trust,
    },
    watch::{State as _, TrainJobStatus},
};

impl Cluster for World {}

impl Values for World {
    type TrainJob = ();
    type Snapshot = ();
    /// Whether the JobSet may have run.
    type Rendering = bool;
    type JobSet = ();
    type Placement = ();
}

impl Memory for World {
    fn job_set_now(&self) -> KnownJobSet {
        self.known_job_set()
    }

    fn begin(&mut self) {
        self.done.push("begin".to_owned());
        (self.last, self.outdated) = (None, false);
    }

    fn begin_writes(&mut self) {
        self.unfinished = true;
    }

    fn remember(&mut self, last: LastReconcile) {
        self.done.push("remember".to_owned());
        assert_eq!(last.fingerprint, self.job.fingerprint);
        assert_eq!(last.common, CommonInputs::for_tests(self.plugins));
        assert_eq!(last.job_set, self.stored().map(|found| found.version()));
        self.hidden &= !self.unfinished;
        (self.last, self.unfinished) = (Some(last), false);
        if self.began_without_job_set {
            self.deleted_job_set = None;
        }
    }

    fn settle(&mut self, interests: KeptInterests) {
        self.done.push("settle".to_owned());
        self.outdated &= interests == KeptInterests::OfThisReconcile;
        self.interests = Some(interests);
    }

    fn forget_last(&mut self) {
        self.done.push("forget last".to_owned());
        (self.last, self.unfinished) = (None, false);
    }

    fn note_unseen_end(&mut self) {
        self.done.push("note unseen end".to_owned());
        let end = status::unseen_end(&self.job.status, now());
        let uid = self.job.uid.clone();
        self.deleted_job_set = Some(Arc::new(JobSetState::of_deleted(uid, end, &[])));
    }

    fn forget_deleted_job_set(&mut self) {
        self.done.push("forget deleted".to_owned());
        self.deleted_job_set = None;
    }
}

impl TrainJobs for World {
    fn inputs(&self) -> Inputs {
        let text = self.inputs_text();
        Inputs::for_tests(text.split('#').next().unwrap())
    }

    async fn train_job(&mut self) -> Result<()> {
        self.call("read TrainJob").await
    }

    async fn confirm_train_job(&mut self) -> Result<()> {
        self.call("confirm TrainJob").await?;
        self.is_current()
    }

    async fn write_status(&mut self, status: &TrainJobStatus) -> Result<()> {
        self.call("write status").await?;
        self.job.status = status.clone();
        Ok(())
    }

    async fn write_error(&mut self, error: Option<Arc<str>>) -> Result<()> {
        self.call(match &error {
            Some(_) => "write error",
            None => "remove error",
        })
        .await?;
        self.job.error = error.as_deref().map(Into::into);
        Ok(())
    }
}

impl Snapshots for World {
    async fn snapshot(&mut self, (): &()) -> Result<Option<WithFacts<SnapshotFacts, ()>>> {
        self.call("read snapshot").await?;
        match &self.snapshot {
            Some(snapshot) if !snapshot.ours => Err(error(Fault::Foreign)),
            Some(snapshot) if snapshot.broken => Err(error(Fault::Snapshot)),
            snapshot => {
                // Only a JobSet vouches for it.
                let known = self.known_job_set();
                let runs = known.ours().is_some_and(|found| !found.suspended);
                let text = self.vouches_for.as_deref();
                let is_it = |it: &SimSnapshot| text.is_none_or(|text| *text == *it.content());
                let counts = |it: &SimSnapshot| it.started || runs || self.job.has_run();
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
                    value: (),
                }))
            }
        }
    }

    async fn snapshot_marks(&mut self) -> Result<FoundMarks> {
        self.call("read marks").await?;
        Ok(match &self.snapshot {
            None => FoundMarks::Missing,
            Some(snapshot) if snapshot.ours => FoundMarks::Ours(snapshot.marks()),
            Some(_) => FoundMarks::Foreign(error(Fault::Foreign)),
        })
    }

    async fn listed_objects(&mut self) -> Result<Arc<[AppliedObject]>> {
        self.call("read list").await?;
        let snapshot = self.snapshot.as_ref().filter(|snapshot| snapshot.ours);
        let listed = snapshot.map_or(&[][..], |snapshot| &snapshot.objects);
        Ok(AppliedObject::unknown(listed))
    }

    async fn create_snapshot(&mut self, started: &mut bool) -> Result<SnapshotFacts> {
        self.call("create snapshot").await?;
        if self.snapshot.is_some() {
            return Err(error(Fault::Conflict));
        }
        let snapshot = SimSnapshot {
            version: self.next_version(),
            started: *started,
            fingerprint: self.job.fingerprint,
            odd_plan: self.has_odd_plan(),
            objects: self.rendered.as_slice().into(),
            ..SimSnapshot::default()
        };
        Ok(self.snapshot.insert(snapshot).facts())
    }

    async fn replace_snapshot(
        &mut self,
        _: &mut bool,
        at: &ObjectVersion,
    ) -> Result<SnapshotFacts> {
        self.call("replace snapshot").await?;
        let next = self.next_version();
        let objects = self.rendered.as_slice().into();
        let odd_plan = self.has_odd_plan();
        let snapshot = self.snapshot.as_mut().ok_or(error(Fault::Fails))?;
        assert!(snapshot.ours, "another owner's snapshot is replaced");
        assert!(!snapshot.started, "a pinned snapshot is replaced");
        if *at != version("snapshot", snapshot.version) {
            return Err(error(Fault::Conflict));
        }
        (snapshot.version, snapshot.broken) = (next, false);
        (snapshot.fingerprint, snapshot.objects) = (self.job.fingerprint, objects);
        snapshot.odd_plan = odd_plan;
        Ok(snapshot.facts())
    }

    async fn mark_snapshot(
        &mut self,
        mark: MarksToSet,
        at: &ObjectVersion,
    ) -> Result<ObjectVersion> {
        self.call(match (mark.started, mark.recreate) {
            (true, None) => "mark started",
            (true, Some(true)) => "mark started and deleted",
            (false, Some(false)) => "mark recreated",
            _ => panic!("unknown marks: {mark:?}"),
        })
        .await?;
        let next = self.next_version();
        let snapshot = self.snapshot.as_mut().ok_or(error(Fault::Fails))?;
        assert!(snapshot.ours, "another owner's snapshot is marked");
        if *at != version("snapshot", snapshot.version) {
            return Err(error(Fault::Conflict));
        }
        snapshot.version = next;
        snapshot.started |= mark.started;
        snapshot.recreate = mark.recreate.unwrap_or(snapshot.recreate);
        Ok(version("snapshot", next))
    }
}

impl Runtimes for World {
    async fn runtime(&mut self, (): &()) -> Result<()> {
        self.call("read runtime").await?;
        if self.runtime {
            Ok(())
        } else {
            Err(error(Fault::Input))
        }
    }
}

impl Renderings for World {
    async fn render(
        &mut self,
        (): &(),
        basis: &Basis<()>,
        existing: Option<&()>,
    ) -> Result<WithFacts<RenderedFacts, bool>> {
        let source = match basis.source {
            RuntimeSource::Snapshot => "snapshot",
            RuntimeSource::Runtime => "runtime",
        };
        let pinned = if basis.started { "pinned " } else { "" };
        self.call(format!("render {pinned}{source}")).await?;
        match self.rendering {
            Some(Fault::Pinned) if !basis.started => {}
            None => {}
            Some(fault) => return Err(error(fault)),
        }
        for _ in 0..self.needs {
            self.call("look up").await?;
        }
        let content = self.content();
        let snapshot = self.snapshot.as_ref();
        let is_equal = |snapshot: &SimSnapshot| snapshot.is_of(self);
        let objects = self.rendered.iter();
        let facts = RenderedFacts {
            saved: match basis.source {
                RuntimeSource::Snapshot => snapshot.is_some_and(|it| basis.started || is_equal(it)),
                RuntimeSource::Runtime => existing.is_some() && snapshot.is_some_and(is_equal),
            },
            inputs: match basis.started {
                true => Box::default(),
                false => self.inputs_text().into(),
            },
            expires: self.expires,
            objects: objects.map(|object| to_write(object, content)).collect(),
            warnings: self.warnings.clone(),
        };
        Ok(WithFacts {
            facts,
            value: basis.started,
        })
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

impl World {
    pub(super) fn is_current(&mut self) -> Result<()> {
        if std::mem::take(&mut self.stale) {
            return Err(error(Fault::Conflict));
        }
        Ok(())
    }

    /// Returns the digest of its inputs, as its JobSet notes it.
    pub(in super::super) fn inputs_text(&self) -> String {
        let (fingerprint, content) = (self.job.fingerprint, self.content());
        let plugins = match self.plugins {
            0 => String::new(),
            other => format!(" with {other}"),
        };
        format!("inputs of {fingerprint}{plugins}#rendering of {content}")
    }

    /// Returns a number for what is rendered now.
    pub(in super::super) fn content(&self) -> u64 {
        let other = if self.plugins < OTHER_RENDERING {
            0
        } else {
            1_000
        };
        self.job.fingerprint + other
    }

    pub(super) fn has_odd_plan(&self) -> bool {
        self.plugins % 2 == 1
    }
}
