//! Which TrainJob is reconciled next.
//!
//! Namespaces take turns, so that 5,000 TrainJobs of one delay those of another by one reconcile each, not by 5,000; and each has a
//! share of the keys that may run at once, so that one whose reconciles are slow leaves room for others. A key that is added many
//! times runs once; one that is added while it runs runs once more afterwards. No key ever runs twice at once.

use std::{
    collections::{BTreeSet, HashMap, hash_map::Entry},
    fmt,
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use tokio::{sync::Notify, time::Instant};

use crate::turns::Turns;

/// The longest delay; whatever is further away is looked at again by then.
const LONGEST_DELAY: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The TrainJob that a reconcile is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl Key {
    /// The key of a TrainJob.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// How long a key waits after a failure: twice as long after each one in a row, with jitter.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    /// The shortest wait after the first failure.
    pub first: Duration,
    /// The longest wait, jitter included.
    pub most: Duration,
    /// The same after a failure that is not the key's own: the API server was away.
    pub most_in_outage: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            most: Duration::from_secs(300),
            most_in_outage: Duration::from_secs(30),
        }
    }
}

impl Backoff {
    fn start(self, now: Instant) -> Delays {
        let up_to = |most: Duration| {
            // The jitter lies between nothing and the delay itself.
            ExponentialBuilder::new()
                .with_min_delay(self.first.min(most / 2))
                .with_max_delay(most / 2)
                .with_factor(2.0)
                .without_max_times()
                .with_jitter()
                .build()
        };
        Delays {
            own: up_to(self.most),
            outage: up_to(self.most_in_outage),
            since: now,
            last: now,
        }
    }
}

/// The delays of a key that fails. Both grow with each failure, so that one that fails now by itself and now in an outage waits
/// ever longer too.
#[derive(Debug)]
struct Delays {
    own: ExponentialBackoff,
    outage: ExponentialBackoff,
    /// The first failure in a row, and the last one.
    since: Instant,
    last: Instant,
}

/// For how long a key has failed each time that it ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Failing {
    /// Until now.
    pub now: Duration,
    /// Until the failure before.
    pub before: Duration,
}

impl Failing {
    /// Whether a whole number of periods has passed between the two: true once in each period that the key goes on failing.
    #[must_use]
    pub fn passes(self, period: Duration) -> bool {
        let periods = |time: Duration| time.as_nanos() / period.as_nanos().max(1);
        periods(self.now) > periods(self.before)
    }
}

/// The queue of TrainJobs to reconcile. Clones share it.
#[derive(Debug, Clone)]
pub struct Queue {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    backoff: Backoff,
    /// Wakes the one worker whose turn it is to wait.
    changed: Notify,
    /// Held by the one worker that waits for a key; the others wait for it, first come, first served.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct State {
    keys: HashMap<Key, Stage>,
    /// The keys that could run now.
    ready: Turns<Key>,
    delayed: BTreeSet<(Instant, Key)>,
    failures: HashMap<Key, Delays>,
    retries: u64,
    closed: bool,
}

/// How much a queue has to do at one moment. It is idle if both are 0.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// How many keys could run now if there were workers for them.
    pub waiting: usize,
    /// How many keys run.
    pub running: usize,
}

/// Where a key that the queue knows of stands.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Delayed(Instant),
    Ready,
    Running { again: Option<Instant> },
}

/// What a worker finds when it asks for a key.
enum Next {
    Key(Key),
    Wait(Option<Instant>),
    Closed,
}

impl Queue {
    /// An empty queue; keys that fail wait by `backoff`.
    #[must_use]
    pub fn new(backoff: Backoff) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    keys: HashMap::new(),
                    ready: Turns::new(NonZeroUsize::MAX),
                    delayed: BTreeSet::new(),
                    failures: HashMap::new(),
                    retries: 0,
                    closed: false,
                }),
                backoff,
                changed: Notify::new(),
                turn: tokio::sync::Mutex::default(),
            }),
        }
    }

    /// The same queue for so many workers, of which a namespace may take three quarters at once. Without it there is no such limit.
    #[must_use]
    pub fn with_workers(self, workers: NonZeroUsize) -> Self {
        let rest = NonZeroUsize::new(workers.get() - workers.get() / 4);
        self.shared.state().ready.set_share(rest.unwrap_or(workers));
        self
    }

    /// Has a key run as soon as it is its turn, even while it waits after a failure.
    pub fn add(&self, key: Key) {
        self.shared.add_at(key, Instant::now());
    }

    /// Has a key run after a delay, or earlier where an earlier time is set already.
    pub fn add_after(&self, key: Key, delay: Duration) {
        self.shared
            .add_at(key, Instant::now() + delay.min(LONGEST_DELAY));
    }

    /// The next key to reconcile, or none once the queue is closed. Dropping the future loses no key.
    pub async fn next(&self) -> Option<Running> {
        let shared = &self.shared;
        let _turn = shared.turn.lock().await;
        loop {
            let found = shared.state().next(Instant::now());
            match found {
                Next::Key(key) => {
                    return Some(Running {
                        shared: Arc::clone(shared),
                        key,
                        finished: false,
                    });
                }
                Next::Closed => return None,
                Next::Wait(None) => shared.changed.notified().await,
                Next::Wait(Some(until)) => {
                    tokio::select! {
                        () = shared.changed.notified() => {}
                        () = tokio::time::sleep_until(until) => {}
                    }
                }
            }
        }
    }

    /// What waits and what runs. Both are counted at the same moment, so a key that goes from one to the other is never missed.
    #[must_use]
    pub fn load(&self) -> Load {
        let state = self.shared.state();
        Load {
            waiting: state.ready.len(),
            running: state.ready.in_progress(),
        }
    }

    /// How many keys have failed and were to run again.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.shared.state().retries
    }

    /// Hands out no more keys; those that run may finish.
    pub fn close(&self) {
        self.shared.state().closed = true;
        self.shared.changed.notify_one();
    }
}

/// A key that runs: it does not run elsewhere until this is finished. One that is dropped without a
/// word (its reconcile panicked or was canceled) has failed.
#[derive(Debug)]
#[must_use = "a key that is dropped without a word has failed"]
pub struct Running {
    shared: Arc<Shared>,
    key: Key,
    finished: bool,
}

impl Running {
    /// The key.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// All went well: earlier failures are forgotten.
    pub fn succeed(mut self) {
        self.shared.state().failures.remove(&self.key);
        self.finish(None);
    }

    /// All went well, and there is something to do after a delay.
    pub fn succeed_and_add_after(mut self, delay: Duration) {
        self.shared.state().failures.remove(&self.key);
        self.finish(Some(delay.min(LONGEST_DELAY)));
    }

    /// For how long the key has failed, should it fail now.
    #[must_use]
    pub fn failing(&self) -> Failing {
        let state = self.shared.state();
        let delays = state.failures.get(&self.key);
        delays.map_or_else(Failing::default, |delays| Failing {
            now: delays.since.elapsed(),
            before: delays.last.duration_since(delays.since),
        })
    }

    /// It failed, and runs again after the delay that is returned; at once if it was added meanwhile.
    pub fn fail(mut self) -> Duration {
        let delay = self.delay(false);
        self.finish(Some(delay));
        delay
    }

    /// As [`Running::fail`] where it is not the key's own failure: the delay grows less.
    pub fn fail_in_outage(mut self) -> Duration {
        let delay = self.delay(true);
        self.finish(Some(delay));
        delay
    }

    fn delay(&self, outage: bool) -> Duration {
        let backoff = self.shared.backoff;
        let mut state = self.shared.state();
        state.retries += 1;
        let delays = state.failures.entry(self.key.clone());
        let now = Instant::now();
        let delays = delays.or_insert_with(|| backoff.start(now));
        delays.last = now;
        let (own, in_outage) = (delays.own.next(), delays.outage.next());
        let (next, most) = if outage {
            (in_outage, backoff.most_in_outage)
        } else {
            (own, backoff.most)
        };
        next.map_or(most, |delay| delay.min(most))
    }

    fn finish(&mut self, delay: Option<Duration>) {
        self.finished = true;
        let now = Instant::now();
        let mut state = self.shared.state();
        state.ready.done(&self.key.namespace);
        let asked = match state.keys.remove(&self.key) {
            Some(Stage::Running { again }) => again,
            _ => None,
        };
        let again = asked.into_iter().chain(delay.map(|delay| now + delay));
        if let Some(at) = again.min() {
            state.add_at(self.key.clone(), at, now);
        }
        drop(state);
        self.shared.changed.notify_one();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.finished {
            let delay = self.delay(false);
            self.finish(Some(delay));
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_at(&self, key: Key, at: Instant) {
        self.state().add_at(key, at, Instant::now());
        self.changed.notify_one();
    }
}

impl State {
    fn add_at(&mut self, key: Key, at: Instant, now: Instant) {
        if self.closed {
            return;
        }
        match self.keys.entry(key.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(Stage::Delayed(at));
            }
            Entry::Occupied(mut entry) => match entry.get_mut() {
                Stage::Ready => return,
                Stage::Running { again } => {
                    *again = Some(again.map_or(at, |earlier| earlier.min(at)));
                    return;
                }
                Stage::Delayed(until) => {
                    if *until <= at {
                        return;
                    }
                    self.delayed.remove(&(*until, key.clone()));
                    *until = at;
                }
            },
        }
        if at <= now {
            self.ready(key);
        } else {
            self.delayed.insert((at, key));
        }
    }

    /// Puts a key behind those of its namespace.
    fn ready(&mut self, key: Key) {
        self.keys.insert(key.clone(), Stage::Ready);
        let namespace = Arc::clone(&key.namespace);
        self.ready.push(&namespace, key);
    }

    fn next(&mut self, now: Instant) -> Next {
        if self.closed {
            return Next::Closed;
        }
        while let Some((at, key)) = self.delayed.pop_first() {
            if at > now {
                self.delayed.insert((at, key));
                break;
            }
            self.ready(key);
        }
        match self.ready.take() {
            Some((_, key)) => {
                self.keys
                    .insert(key.clone(), Stage::Running { again: None });
                Next::Key(key)
            }
            None => Next::Wait(self.delayed.first().map(|(at, _)| *at)),
        }
    }
}
