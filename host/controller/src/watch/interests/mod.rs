//! The cluster objects that TrainJobs were rendered from. A change of one triggers a reconcile of its TrainJobs. Pure: nothing here waits
//! for the cluster.
//!
//! An interest is registered before its object is read, and its state is recorded afterwards. So no later change is missed, whether the watch
//! is running or starts with a list.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};
use trainyard_model::lookup::LookupKey;

use super::{
    states::RuntimeKey,
    subject::{ChangeSource, Listing, ObjectHashes, ObjectSelector, Subject, SubjectState},
};
use crate::{queue::NamespacedName, rbac::Reach};

/// How long changes are batched before a TrainJob that may have waited for one is reconciled.
const GATHER: Duration = Duration::from_millis(250);

/// The same for a TrainJob that has been rendered: the first time, and at most. Some objects change all the time, and thousands of
/// TrainJobs may be queued.
const PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// The objects that TrainJobs were rendered from and whose changes affect them.
#[derive(Debug, Default)]
pub(crate) struct Interests {
    state: Mutex<State>,
    /// Notified when the set of required sources changes.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    jobs: HashMap<NamespacedName, Interest>,
    subjects: BTreeMap<Subject, HashMap<NamespacedName, SubjectState>>,
    /// The number of settled interests in each source that has to be watched.
    needed: BTreeMap<ChangeSource, usize>,
}

/// The interest of one TrainJob.
#[derive(Debug, Default)]
struct Interest {
    subjects: HashMap<Subject, Registration>,
    /// Whether something has changed since the TrainJob was last rendered.
    outdated: bool,
    pace: Pace,
}

/// The pace at which a TrainJob is rendered again: slower with each change, until there are none for a while.
#[derive(Debug, Default)]
struct Pace {
    last: Option<(Instant, Duration)>,
}

impl Pace {
    /// The delay of the next rendering.
    fn next(&mut self, now: Instant) -> Duration {
        let pause = match self.last {
            Some((last, pause)) if now.duration_since(last) < pause * 2 => {
                (pause * 2).min(LONGEST_PAUSE)
            }
            _ => PAUSE,
        };
        self.last = Some((now, pause));
        pause
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Registration {
    /// Registered in the current or the last reconcile.
    current: bool,
    /// Settled by a finished reconcile. Most TrainJobs start in their first reconcile, and nothing is watched for them.
    settled: bool,
}

/// A TrainJob that has to be reconciled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Requeue {
    pub(crate) key: NamespacedName,
    /// How long further changes are batched before that.
    pub(crate) after: Duration,
}

impl Interests {
    /// Begins a rendering of the TrainJob; its interests are registered anew.
    pub(crate) fn begin(&self, key: &NamespacedName) {
        if let Some(interest) = self.state().jobs.get_mut(key) {
            interest.outdated = false;
            let registrations = interest.subjects.values_mut();
            registrations.for_each(|registration| registration.current = false);
        }
    }

    /// Registers a lookup of the TrainJob's plugins, which have this reach. Call it before the object is read.
    pub(crate) fn register(&self, key: &NamespacedName, lookup: &LookupKey, reach: &Reach) {
        if let Some(subject) = Subject::of(lookup, key, reach) {
            self.state().register(key, subject);
        }
    }

    /// Notes the state of an object that the TrainJob's plugins, which have this reach, looked up.
    pub(crate) fn note_state(
        &self,
        key: &NamespacedName,
        lookup: &LookupKey,
        reach: &Reach,
        seen: SubjectState,
    ) {
        if let Some(subject) = Subject::of(lookup, key, reach)
            && let Some(known) = self.state().seen(&subject, key)
        {
            *known = seen;
        }
    }

    /// Registers that the TrainJob waits for a missing or invalid runtime.
    pub(crate) fn wait_for(&self, key: &NamespacedName, runtime: &RuntimeKey) {
        self.state()
            .register(key, Subject::of_runtime(runtime, key));
    }

    /// Settles the interests of this rendering, successful or not, and drops those of earlier ones.
    pub(crate) fn settle(&self, key: &NamespacedName) {
        if self.state().settle(key) {
            self.changed.notify_one();
        }
    }

    /// Drops all interests of a TrainJob that has started, ended or been deleted.
    pub(crate) fn forget(&self, key: &NamespacedName) {
        if self.state().forget(key) {
            self.changed.notify_one();
        }
    }

    /// Whether something has changed since the TrainJob was last rendered.
    pub(crate) fn is_outdated(&self, key: &NamespacedName) -> bool {
        self.state()
            .jobs
            .get(key)
            .is_some_and(|interest| interest.outdated)
    }

    /// Notes that a runtime was created, changed or deleted. Returns the TrainJobs that it affects.
    pub(crate) fn runtime_changed(&self, runtime: &RuntimeKey) -> Vec<Requeue> {
        let (source, namespace) = match &runtime.namespace {
            Some(namespace) => (ChangeSource::TrainingRuntimes, Some(&**namespace)),
            None => (ChangeSource::ClusterTrainingRuntimes, None),
        };
        // The version of an invalid runtime is not known.
        self.object_changed(&source, namespace, &runtime.name, SubjectState::NOTHING)
    }

    /// Notes that an object was created or changed. Returns the TrainJobs that it affects.
    pub(crate) fn note_changed(
        &self,
        source: &ChangeSource,
        object: ObjectHashes<'_>,
    ) -> Vec<Requeue> {
        self.object_changed(
            source,
            object.namespace,
            object.name,
            SubjectState::of([object]),
        )
    }

    /// Notes that an object was deleted. Returns the TrainJobs that it affects.
    pub(crate) fn note_deleted(
        &self,
        source: &ChangeSource,
        object: ObjectHashes<'_>,
    ) -> Vec<Requeue> {
        self.object_changed(source, object.namespace, object.name, SubjectState::NOTHING)
    }

    fn object_changed(
        &self,
        source: &ChangeSource,
        namespace: Option<&str>,
        name: &str,
        now: SubjectState,
    ) -> Vec<Requeue> {
        let mut state = self.state();
        let mut requeues = Vec::new();
        for subject in state.affected(source, namespace, name) {
            let differs = |seen: SubjectState| {
                matches!(subject.selector, ObjectSelector::All(_)) || seen != now
            };
            state.wake(&subject, differs, &mut requeues);
        }
        requeues
    }

    /// Notes a complete list of a source, whose objects are namespaced or not. Returns the TrainJobs that it affects.
    pub(crate) fn note_listed(
        &self,
        source: &ChangeSource,
        namespaced: bool,
        listing: &Listing,
    ) -> Vec<Requeue> {
        let now = |selector: &ObjectSelector| listing.seen(selector, namespaced);
        self.wake_where(source, |selector, seen| seen != now(selector))
    }

    /// Notes whether the kind of a source is served. Returns the TrainJobs that it affects.
    pub(crate) fn note_served(&self, source: &ChangeSource, served: bool) -> Vec<Requeue> {
        self.wake_where(source, |_, seen| match seen {
            SubjectState::Unknown => true,
            SubjectState::NotServed => served,
            SubjectState::Objects(_) => !served,
        })
    }

    /// Marks the TrainJobs for which the state of an object of the source differs as outdated, and returns those to reconcile.
    fn wake_where(
        &self,
        source: &ChangeSource,
        differs: impl Fn(&ObjectSelector, SubjectState) -> bool,
    ) -> Vec<Requeue> {
        let mut state = self.state();
        let mut requeues = Vec::new();
        for subject in state.of(source) {
            state.wake(
                &subject,
                |seen| differs(&subject.selector, seen),
                &mut requeues,
            );
        }
        requeues
    }

    /// Returns the sources that have to be watched.
    pub(crate) fn needed(&self) -> HashSet<ChangeSource> {
        self.state().needed.keys().cloned().collect()
    }

    /// Waits until the set of required sources has changed since the last call.
    pub(crate) async fn need_changed(&self) {
        self.changed.notified().await;
    }

    /// The number of TrainJobs, subjects and sources.
    #[cfg(test)]
    pub(crate) fn count(&self) -> [usize; 3] {
        let state = self.state();
        [state.jobs.len(), state.subjects.len(), state.needed.len()]
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn register(&mut self, key: &NamespacedName, subject: Subject) {
        let interest = self.jobs.entry(key.clone()).or_default();
        interest
            .subjects
            .entry(subject.clone())
            .or_default()
            .current = true;
        let interested = self.subjects.entry(subject).or_default();
        interested.insert(key.clone(), SubjectState::Unknown);
    }

    fn seen(&mut self, subject: &Subject, key: &NamespacedName) -> Option<&mut SubjectState> {
        self.subjects.get_mut(subject)?.get_mut(key)
    }

    /// Returns whether the set of required sources has changed.
    fn settle(&mut self, key: &NamespacedName) -> bool {
        let Some(interest) = self.jobs.get_mut(key) else {
            return false;
        };
        let (mut more, mut gone) = (Vec::new(), Vec::new());
        interest.subjects.retain(|subject, registration| {
            if !registration.current {
                gone.push((subject.clone(), registration.settled));
            } else if !registration.settled {
                registration.settled = true;
                more.push(subject.source.clone());
            }
            registration.current
        });
        if interest.subjects.is_empty() {
            self.jobs.remove(key);
        }
        let more: Vec<_> = more.into_iter().map(|source| self.need(source)).collect();
        let gone: Vec<_> = gone.into_iter().map(|gone| self.drop(key, gone)).collect();
        more.contains(&true) || gone.contains(&true)
    }

    fn forget(&mut self, key: &NamespacedName) -> bool {
        let subjects = self.jobs.remove(key).map(|interest| interest.subjects);
        let gone = subjects.into_iter().flatten();
        let gone: Vec<_> = gone
            .map(|(subject, registration)| self.drop(key, (subject, registration.settled)))
            .collect();
        gone.contains(&true)
    }

    /// Counts an interest in the source. Returns whether it is the first.
    fn need(&mut self, source: ChangeSource) -> bool {
        if source.kind().is_none() {
            return false;
        }
        let needs = self.needed.entry(source).or_default();
        *needs += 1;
        *needs == 1
    }

    /// Drops the TrainJob's interest in a subject. Returns whether it was the last one in its source.
    fn drop(&mut self, key: &NamespacedName, (subject, settled): (Subject, bool)) -> bool {
        if let Some(interested) = self.subjects.get_mut(&subject) {
            interested.remove(key);
            if interested.is_empty() {
                self.subjects.remove(&subject);
            }
        }
        let Some(needs) = self.needed.get_mut(&subject.source).filter(|_| settled) else {
            return false;
        };
        *needs -= 1;
        let is_last = *needs == 0;
        if is_last {
            self.needed.remove(&subject.source);
        }
        is_last
    }

    /// Returns all subjects of a source.
    fn of(&self, source: &ChangeSource) -> Vec<Subject> {
        self.from(source, ObjectSelector::Served)
            .take_while(|subject| subject.source == *source)
            .cloned()
            .collect()
    }

    /// Returns the subjects of a source that an object belongs to. A cluster-scoped object belongs to those of all namespaces.
    fn affected(&self, source: &ChangeSource, namespace: Option<&str>, name: &str) -> Vec<Subject> {
        let any = Arc::from(namespace.unwrap_or_default());
        let one = ObjectSelector::One {
            name: name.into(),
            namespace: Arc::clone(&any),
        };
        let is_of = |of: &Arc<str>| namespace.is_none_or(|namespace| **of == *namespace);
        let all = self
            .from(source, ObjectSelector::All(any))
            .take_while(|subject| {
                matches!(&subject.selector, ObjectSelector::All(of) if is_of(of))
                    && subject.source == *source
            });
        let one = self.from(source, one).take_while(|subject| {
            matches!(&subject.selector, ObjectSelector::One { name: of, namespace } if **of == *name && is_of(namespace))
                && subject.source == *source
        });
        all.chain(one).cloned().collect()
    }

    fn from(
        &self,
        source: &ChangeSource,
        selector: ObjectSelector,
    ) -> impl Iterator<Item = &Subject> {
        let first = Subject {
            source: source.clone(),
            selector,
        };
        self.subjects.range(first..).map(|(subject, _)| subject)
    }

    /// Marks the TrainJobs that saw another state of the subject as outdated. Returns those that were not outdated before, or no longer
    /// have to wait.
    fn wake(
        &mut self,
        subject: &Subject,
        differs: impl Fn(SubjectState) -> bool,
        requeues: &mut Vec<Requeue>,
    ) {
        let interested = self.subjects.get(subject).into_iter().flatten();
        for (key, seen) in interested.filter(|(_, seen)| differs(**seen)) {
            let Some(interest) = self.jobs.get_mut(key) else {
                continue;
            };
            let was_outdated = std::mem::replace(&mut interest.outdated, true);
            let after = match *seen {
                SubjectState::Unknown | SubjectState::NotServed | SubjectState::NOTHING => GATHER,
                SubjectState::Objects(_) if was_outdated => continue,
                SubjectState::Objects(_) => interest.pace.next(Instant::now()),
            };
            let key = key.clone();
            requeues.push(Requeue { key, after });
        }
    }
}

#[cfg(test)]
mod tests;
