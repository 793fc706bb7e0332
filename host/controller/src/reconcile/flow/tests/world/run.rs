//! Running reconciles call by call. What happens at each call is decided by a [`Schedule`], so a run can be repeated.

use std::{
    cell::RefCell,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use futures_util::FutureExt as _;

use super::{client::Client, *};
use crate::reconcile::flow::Flow;

/// The most calls of a reconcile.
const MOST_CALLS: usize = 200;

/// A call that waits for its answer.
#[derive(Clone, Debug)]
pub(in super::super) struct Waiting {
    pub(in super::super) kind: CallKind,
    pub(in super::super) name: String,
}

/// How a call is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Answer {
    /// It takes effect and is answered.
    Given,
    /// It fails and has no effect.
    Refused(Fault),
    /// It takes effect, and its answer is lost.
    Lost {
        /// Whether the watches are late too.
        late: bool,
    },
}

/// What happens next at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Choice {
    Answer(Answer),
    /// The process is killed before it.
    Kill,
    /// Something else happens before it.
    Event(Event),
    /// The other controller begins or continues a reconcile.
    Switch,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer(Answer::Given) => f.write_str("answered"),
            Self::Answer(Answer::Refused(fault)) => write!(f, "fails without effect ({fault:?})"),
            Self::Answer(Answer::Lost { late: false }) => {
                f.write_str("takes effect, and its answer is lost")
            }
            Self::Answer(Answer::Lost { late: true }) => {
                f.write_str("takes effect, its answer is lost, and the watches are late")
            }
            Self::Kill => f.write_str("the process is killed before"),
            Self::Event(event) => write!(f, "before: {event}"),
            Self::Switch => f.write_str("before: the other controller continues"),
        }
    }
}

/// What can happen at a call besides its answer.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Choices<'a> {
    /// The call.
    pub(in super::super) waiting: &'a Waiting,
    /// Whose call it is.
    pub(in super::super) who: usize,
    /// Whether the other controller has ended its reconcile.
    pub(in super::super) other_has_ended: bool,
}

/// Decides what happens at calls.
pub(in super::super) trait Schedule {
    fn next(&mut self, world: &World, choices: Choices<'_>) -> Choice;
}

/// Calls are answered as the world says by their names.
struct AsNamed;

impl Schedule for AsNamed {
    fn next(&mut self, world: &World, choices: Choices<'_>) -> Choice {
        let name = &*choices.waiting.name;
        let fault = world.fails.get(name).copied();
        let is_lost = world.lost && name.starts_with("apply JobSet");
        Choice::Answer(match fault {
            Some(fault) => Answer::Refused(fault),
            None if is_lost => Answer::Lost { late: true },
            None => Answer::Given,
        })
    }
}

type Task<'a> = Pin<Box<dyn Future<Output = ReconcileOutcome> + 'a>>;

/// Begins a reconcile.
fn begin(world: &RefCell<World>, who: usize, sabotage: Option<Sabotage>) -> Task<'_> {
    async move {
        let Some((mut client, start)) = Client::begin(world, who, sabotage) else {
            return ReconcileOutcome::default();
        };
        let outcome = Flow::new(&mut client, &start).run().await;
        world
            .borrow_mut()
            .note_success(who, outcome.error.is_none());
        outcome
    }
    .boxed_local()
}

/// A run of reconciles.
struct Run<'w, 's> {
    world: &'w RefCell<World>,
    sabotage: Option<Sabotage>,
    schedule: &'s mut dyn Schedule,
    tasks: [Option<Task<'w>>; 2],
    has_begun: [bool; 2],
}

impl<'w> Run<'w, '_> {
    fn begin(&mut self, who: usize) {
        self.tasks[who] = Some(begin(self.world, who, self.sabotage));
        self.has_begun[who] = true;
    }

    /// Runs the reconcile of a controller, and any that begin meanwhile. Returns the outcome of the first; `None` if it was killed.
    fn run(&mut self, first: usize) -> Option<ReconcileOutcome> {
        let (mut who, mut outcome) = (first, None);
        self.begin(first);
        for _ in 0..MOST_CALLS {
            if self.tasks[who].is_none() {
                who = 1 - who;
                if self.tasks[who].is_none() {
                    return outcome;
                }
                if !self.decide(&mut who) {
                    continue;
                }
            }
            let mut context = Context::from_waker(Waker::noop());
            let task = self.tasks[who].as_mut().unwrap();
            if let Poll::Ready(ended) = task.as_mut().poll(&mut context) {
                self.tasks[who] = None;
                outcome = if who == first { Some(ended) } else { outcome };
            } else {
                self.decide(&mut who);
            }
        }
        let done = self.world.borrow().done.join(", ");
        self.world
            .borrow_mut()
            .breaks(format!("a reconcile ends: {done}"));
        None
    }

    /// Decides what happens at the call of a controller, or of the other one. Returns whether one goes on.
    fn decide(&mut self, who: &mut usize) -> bool {
        loop {
            let other = 1 - *who;
            let choice = {
                let world = self.world.borrow();
                let choices = Choices {
                    waiting: world.waiting[*who].as_ref().unwrap(),
                    who: *who,
                    other_has_ended: self.has_begun[other] && self.tasks[other].is_none(),
                };
                self.schedule.next(&world, choices)
            };
            match choice {
                Choice::Answer(answer) => {
                    self.world.borrow_mut().answer = answer;
                    return true;
                }
                Choice::Event(event) => self.world.borrow_mut().happens(event),
                Choice::Kill => {
                    self.tasks[*who] = None;
                    self.world.borrow_mut().restart(*who);
                    return false;
                }
                Choice::Switch if self.tasks[other].is_none() => {
                    *who = other;
                    self.begin(other);
                    return true;
                }
                Choice::Switch => *who = other,
            }
        }
    }
}

impl World {
    /// Notes a call.
    pub(super) fn arrives(&mut self, who: usize, kind: CallKind, name: String) {
        self.done.push(name.clone());
        self.waiting[who] = Some(Waiting { kind, name });
    }

    /// A successful reconcile forgets its write of the annotation.
    fn note_success(&mut self, who: usize, succeeded: bool) {
        let knows = self.known_job_set(who).ours().is_some();
        self.reconciled |= succeeded && knows;
        let annotated = &mut self.controllers[who].annotated;
        if succeeded && annotated.as_ref().is_some_and(|last| last.text.is_some()) {
            *annotated = None;
        }
    }

    /// Reconciles as the schedule says. `None` if the process is killed.
    pub(in super::super) fn run(
        &mut self,
        who: usize,
        sabotage: Option<Sabotage>,
        schedule: &mut dyn Schedule,
    ) -> Option<ReconcileOutcome> {
        (self.done, self.meddled) = (Vec::new(), false);
        let world = RefCell::new(std::mem::replace(self, Self::new(self.job.clone())));
        let mut run = Run {
            world: &world,
            sabotage,
            schedule,
            tasks: [None, None],
            has_begun: [false, false],
        };
        let outcome = run.run(who);
        drop(run);
        *self = world.into_inner();
        (self.waiting, self.lost) = ([None, None], false);
        outcome
    }

    /// Reconciles once. Calls fail as [`World::fail`] says.
    pub(in super::super) fn reconcile(&mut self) -> Option<ReconcileOutcome> {
        let outcome = self.run(0, None, &mut AsNamed);
        assert_eq!(self.broken, None, "{:#?}", self.done);
        outcome
    }

    /// Refuses to change anything, because of this error.
    pub(in super::super) fn refuse(&mut self, error: ReconcileError) -> ReconcileOutcome {
        self.done.clear();
        let world = RefCell::new(self.clone());
        let (mut client, start) = Client::begin(&world, 0, None).unwrap();
        let mut refusing = Flow::new(&mut client, &start).refuse(error).boxed_local();
        let mut context = Context::from_waker(Waker::noop());
        let outcome = loop {
            if let Poll::Ready(outcome) = refusing.as_mut().poll(&mut context) {
                break outcome;
            }
        };
        drop(refusing);
        *self = world.into_inner();
        outcome
    }
}
