//! The calls of a reconcile to the simulated cluster.

use std::{cell::RefCell, future::poll_fn, mem, task::Poll};

use super::*;
use crate::reconcile::cluster::Result;

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum CallKind {
    /// It does not leave the process.
    Local,
    Read,
    Write,
    /// It writes the JobSet, and its answer updates the store.
    WriteJobSet,
    /// The same of the TrainJob's status.
    WriteStatus,
}

/// A fault of the controller, to prove that it would be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Sabotage {
    /// The snapshot is created after the JobSet.
    SnapshotLast,
    /// Secrets are created after the JobSet.
    SecretLast,
    /// A JobSet is up to date whenever the last reconcile left it so.
    AlwaysUpToDate,
    /// It is not noted that JobSets expire.
    NeverExpires,
    /// Objects of other owners count as the TrainJob's.
    OwnsAll,
    /// Jobs with an earlier placement are not found.
    KeepsJobs,
    /// A JobSet is rendered again when it is resumed.
    RendersAgain,
}

/// The cluster as one reconcile of one controller sees it.
pub(super) struct Client<'w> {
    pub(super) world: &'w RefCell<World>,
    pub(super) who: usize,
    pub(super) sabotage: Option<Sabotage>,
    /// The TrainJob as it was in the store when the reconcile began.
    pub(super) job: KnownJob,
    /// The plugins at that time.
    pub(super) plugins: u8,
    /// The JobSet in the cluster at that time.
    pub(super) began_with: Option<SimJobSet>,
    /// The JobSet that had been deleted by that time, if there was no other.
    pub(super) deleted: Option<Arc<JobSetState>>,
    /// The annotation with which the JobSet vouched for the snapshot at that time.
    pub(super) vouches_for: Option<Box<str>>,
    /// What sabotage delays until the JobSet is written.
    pub(super) delayed: Vec<Delayed>,
}

/// A write that sabotage delays.
pub(super) enum Delayed {
    Snapshot(SimSnapshot),
    Object(ObjectRef, SimObject),
}

impl Client<'_> {
    /// Makes a call, which may fail, and before which the process may be killed and anything may happen.
    pub(super) async fn call<T>(
        &self,
        kind: CallKind,
        name: impl Into<String>,
        effect: impl FnOnce(&mut World) -> Result<T>,
    ) -> Result<T> {
        let (who, mut is_decided) = (self.who, false);
        self.world.borrow_mut().arrives(who, kind, name.into());
        poll_fn(|_| match mem::replace(&mut is_decided, true) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
        let mut world = self.world.borrow_mut();
        let world = &mut *world;
        let answer = mem::replace(&mut world.answer, Answer::Given);
        match answer {
            Answer::Given => {
                let done = self.acts(world, kind, effect);
                if done.is_ok() && kind == CallKind::WriteJobSet {
                    world.controllers[who].job_sets = None;
                } else if done.is_ok() && kind == CallKind::WriteStatus {
                    world.controllers[who].job = None;
                }
                done
            }
            Answer::Refused(fault) => {
                world.unlisted |= name_is(world, who, "list Jobs") && fault == Fault::Refused;
                Err(error(fault))
            }
            Answer::Lost { late } => {
                if late {
                    world.falls_behind(who, true);
                    world.falls_behind(who, false);
                }
                _ = self.acts(world, kind, effect);
                Err(error(Fault::Fails))
            }
        }
    }

    /// Lets a call take effect, and checks what it changed.
    fn acts<T>(
        &self,
        world: &mut World,
        kind: CallKind,
        effect: impl FnOnce(&mut World) -> Result<T>,
    ) -> Result<T> {
        if matches!(kind, CallKind::Local | CallKind::Read) {
            return effect(world);
        }
        let before = world.clone();
        let done = world.change(effect);
        self.check(&before, world);
        done
    }

    /// Something that is not a call.
    pub(super) fn notes(&self, name: &str) -> std::cell::RefMut<'_, World> {
        let mut world = self.world.borrow_mut();
        world.done.push(name.to_owned());
        world
    }

    /// Checks what a write changed.
    fn check(&self, before: &World, after: &mut World) {
        let foreign = |world: &World| {
            let objects = world.objects.iter().filter(|(_, it)| !it.ours);
            let objects: Vec<_> = objects
                .map(|(object, it)| (object.clone(), it.clone()))
                .collect();
            let job_set = world.job_set.clone().filter(|it| !it.ours);
            (
                objects,
                job_set,
                world.snapshot.clone().filter(|it| !it.ours),
            )
        };
        if foreign(before) != foreign(after) {
            after.breaks("nothing of other owners is changed: an object of another owner was");
        }
        let (Some(was), Some(is)) = (&before.job_set, &after.job_set) else {
            return;
        };
        if let Some(change) = frozen(was, is).filter(|_| !after.overwritten) {
            after.breaks(format!("a JobSet that has started is frozen: {change}"));
        }
    }
}

/// Whether a call of this name was answered.
fn name_is(world: &World, who: usize, name: &str) -> bool {
    let waiting = world.waiting[who].as_ref();
    waiting.is_some_and(|waiting| waiting.name == name)
}

/// Returns what changed of a JobSet that has started, and may not.
fn frozen(was: &SimJobSet, is: &SimJobSet) -> Option<&'static str> {
    if !was.has_run || was.uid != is.uid {
        return None;
    }
    let mut may_be = was.clone();
    (may_be.version, may_be.active) = (is.version, is.active);
    match (was.suspended, is.suspended) {
        // It is suspended, and marked.
        (false, true) => {
            (may_be.suspended, may_be.started, may_be.inputs) = (true, true, None);
        }
        // It is placed, and resumed, and may vouch for a snapshot that is new.
        (true, _) => {
            (may_be.suspended, may_be.placement) = (is.suspended, is.placement);
            may_be.removed = is.removed;
            if !is.suspended {
                may_be.vouches_for = is.vouches_for.clone();
            }
        }
        (false, false) => {}
    }
    (may_be != *is).then_some(match (was.suspended, is.suspended) {
        (false, true) => "it was suspended, and something else of it changed",
        (true, false) => "it was resumed, and something else of it changed",
        (true, true) => "it is suspended, and more than its placement changed",
        (false, false) => "it runs, and was changed",
    })
}
