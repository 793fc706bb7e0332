//! Which TrainJob is reconciled next.
//!
//! Namespaces take turns: 5,000 TrainJobs in one namespace delay those in another by one reconcile each. Each namespace also has a share of
//! the workers, so that slow reconciles leave room for others; a reconcile that waits without a worker counts too. As in client-go's work
//! queue, a key that is added several times is processed once, one that is added while it is processed is processed again afterwards, and
//! no key is processed twice at the same time.

mod backoff;

use std::{
    collections::{BTreeSet, HashMap, hash_map::Entry},
    fmt,
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use backoff::Delays;
pub use backoff::{Backoff, Failing};
use tokio::{sync::Notify, time::Instant};

use crate::fair::{FairSemaphore, RoundRobin, Worker};

/// The longest delay. A key that is due later is reconciled by then.
const LONGEST_DELAY: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The namespace and name of a TrainJob and of its JobSet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamespacedName {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl NamespacedName {
    /// Returns the key of the object of that name.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for NamespacedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
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
    workers: FairSemaphore,
    /// Wakes the caller that waits for a key.
    changed: Notify,
    /// Held by the caller that waits for a key; the others queue for it in order.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct State {
    keys: HashMap<NamespacedName, KeyState>,
    /// The keys that are due.
    ready: RoundRobin<NamespacedName>,
    delayed: BTreeSet<(Instant, NamespacedName)>,
    failures: HashMap<NamespacedName, Delays>,
    retries: u64,
    closed: bool,
}

/// The load of a queue. The queue is idle if both counts are 0.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// The number of keys that are due and wait for a worker.
    pub waiting: usize,
    /// The number of keys that are being processed.
    pub running: usize,
}

/// The state of a key in the queue.
#[derive(Debug, Clone, Copy)]
enum KeyState {
    Delayed(Instant),
    /// It has been due since that time.
    Ready(Instant),
    Running {
        requeue_at: Option<Instant>,
        /// Since when it has been due, if no worker has taken it yet.
        due: Option<Instant>,
    },
}

/// The answer to a caller that asks for a key.
enum Next {
    Key(NamespacedName),
    Wait(Option<Instant>),
    Closed,
}

impl Queue {
    /// Returns an empty queue with any number of workers.
    #[must_use]
    pub fn new(backoff: Backoff) -> Self {
        Self::with_limits(backoff, NonZeroUsize::MAX, NonZeroUsize::MAX)
    }

    /// Limits the keys that are processed at once, and each namespace to three quarters of them. Call it before anything is added.
    #[must_use]
    pub fn with_workers(self, workers: NonZeroUsize) -> Self {
        let share = NonZeroUsize::new(workers.get() - workers.get() / 4);
        Self::with_limits(self.shared.backoff, workers, share.unwrap_or(workers))
    }

    fn with_limits(backoff: Backoff, workers: NonZeroUsize, share: NonZeroUsize) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    keys: HashMap::new(),
                    ready: RoundRobin::new(share),
                    delayed: BTreeSet::new(),
                    failures: HashMap::new(),
                    retries: 0,
                    closed: false,
                }),
                backoff,
                workers: FairSemaphore::new(workers.get(), NonZeroUsize::MAX),
                changed: Notify::new(),
                turn: tokio::sync::Mutex::default(),
            }),
        }
    }

    /// Adds a key that is due now, even if it waits after a failure.
    pub fn add(&self, key: NamespacedName) {
        self.shared.add_at(key, Instant::now());
    }

    /// Adds a key that is due after a delay, unless it is due earlier already.
    pub fn add_after(&self, key: NamespacedName, delay: Duration) {
        self.shared
            .add_at(key, Instant::now() + delay.min(LONGEST_DELAY));
    }

    /// Returns the next key once a worker is free, or `None` if the queue is closed. No key is lost if the future is dropped.
    pub async fn next(&self) -> Option<Running> {
        let shared = &self.shared;
        let _turn = shared.turn.lock().await;
        loop {
            let found = shared.state().next(Instant::now());
            match found {
                Next::Key(key) => {
                    let running = Running {
                        worker: Worker::new(&shared.workers, &key.namespace),
                        shared: Arc::clone(shared),
                        key,
                        finished: false,
                    };
                    // The key is taken first, because a worker that waits for a key would be missing for reconciles that need one again.
                    running.worker.start().await;
                    shared.state().started(&running.key);
                    return Some(running);
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

    /// Returns the load. Both counts are taken under one lock, so that no key is missed.
    #[must_use]
    pub fn load(&self) -> Load {
        let state = self.shared.state();
        Load {
            waiting: state.ready.len(),
            running: state.ready.in_progress(),
        }
    }

    /// Returns how long the key that has waited longest for a worker has been due; `None` if no key waits.
    #[must_use]
    pub fn oldest(&self) -> Option<Duration> {
        let now = Instant::now();
        let state = self.shared.state();
        let due = state.keys.values().filter_map(|key| match key {
            KeyState::Delayed(at) => Some(*at),
            KeyState::Ready(since) => Some(*since),
            KeyState::Running { due, .. } => *due,
        });
        let oldest = due.min().filter(|due| *due <= now)?;
        Some(now.duration_since(oldest))
    }

    /// Returns how many times a failed key was queued again.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.shared.state().retries
    }

    /// The number of keys, delays and backoffs.
    #[cfg(test)]
    pub(crate) fn count(&self) -> [usize; 3] {
        let state = self.shared.state();
        [state.keys.len(), state.delayed.len(), state.failures.len()]
    }

    /// Closes the queue: no more keys are handed out.
    pub fn close(&self) {
        self.shared.state().closed = true;
        self.shared.changed.notify_one();
    }
}

/// A key that is being processed. If it is dropped before it is finished, because the reconcile panicked or was canceled, it has failed.
#[derive(Debug)]
#[must_use = "a key that is dropped before it is finished has failed"]
pub struct Running {
    shared: Arc<Shared>,
    key: NamespacedName,
    worker: Worker,
    finished: bool,
}

impl Running {
    /// The key.
    #[must_use]
    pub fn key(&self) -> &NamespacedName {
        &self.key
    }

    /// The worker that processes it.
    pub(crate) fn worker(&self) -> &Worker {
        &self.worker
    }

    /// Finishes the key and resets its backoff.
    pub fn succeed(mut self) {
        self.shared.state().failures.remove(&self.key);
        self.finish(None);
    }

    /// Finishes the key, resets its backoff and adds it again after a delay.
    pub fn succeed_and_add_after(mut self, delay: Duration) {
        self.shared.state().failures.remove(&self.key);
        self.finish(Some(delay.min(LONGEST_DELAY)));
    }

    /// Returns how long the key has been failing if it fails now.
    #[must_use]
    pub fn failing(&self) -> Failing {
        let state = self.shared.state();
        let delays = state.failures.get(&self.key);
        delays.map_or_else(Failing::default, |delays| Failing {
            now: delays.since.elapsed(),
            before: delays.last.duration_since(delays.since),
        })
    }

    /// Finishes the key with a failure and returns the delay of the retry. If it was added in the meantime, it is due at once.
    pub fn fail(mut self) -> Duration {
        let delay = self.delay(false);
        self.finish(Some(delay));
        delay
    }

    /// The same as [`Running::fail`] during an outage of the API server: the delay is shorter.
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
            Some(KeyState::Running { requeue_at, .. }) => requeue_at,
            _ => None,
        };
        let requeue_at = asked.into_iter().chain(delay.map(|delay| now + delay));
        if let Some(at) = requeue_at.min() {
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

    fn add_at(&self, key: NamespacedName, at: Instant) {
        self.state().add_at(key, at, Instant::now());
        self.changed.notify_one();
    }
}

impl State {
    fn add_at(&mut self, key: NamespacedName, at: Instant, now: Instant) {
        if self.closed {
            return;
        }
        match self.keys.entry(key.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(KeyState::Delayed(at));
            }
            Entry::Occupied(mut entry) => match entry.get_mut() {
                KeyState::Ready(_) => return,
                KeyState::Running { requeue_at, .. } => {
                    *requeue_at = Some(requeue_at.map_or(at, |earlier| earlier.min(at)));
                    return;
                }
                KeyState::Delayed(until) => {
                    if *until <= at {
                        return;
                    }
                    self.delayed.remove(&(*until, key.clone()));
                    *until = at;
                }
            },
        }
        if at <= now {
            self.ready(key, at);
        } else {
            self.delayed.insert((at, key));
        }
    }

    /// Notes that a worker has taken a key.
    fn started(&mut self, key: &NamespacedName) {
        if let Some(KeyState::Running { due, .. }) = self.keys.get_mut(key) {
            *due = None;
        }
    }

    /// Puts a key that is due since that time behind the others of its namespace.
    fn ready(&mut self, key: NamespacedName, since: Instant) {
        self.keys.insert(key.clone(), KeyState::Ready(since));
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
            self.ready(key, at);
        }
        match self.ready.take() {
            Some((_, key)) => {
                let due = match self.keys.get(&key) {
                    Some(KeyState::Ready(since)) => Some(*since),
                    _ => None,
                };
                let requeue_at = None;
                let running = KeyState::Running { requeue_at, due };
                self.keys.insert(key.clone(), running);
                Next::Key(key)
            }
            None => Next::Wait(self.delayed.first().map(|(at, _)| *at)),
        }
    }
}
