//! Which TrainJobs were made of what in the cluster, so that its change wakes them. Pure: nothing in here waits for the cluster.
//!
//! An interest is noted before its object is asked for, and what was found is noted after. So a change that comes later is
//! always one that the TrainJob does not know, whether its watch runs already or begins with a list.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use trainyard_model::lookup::LookupKey;

use super::states::RuntimeKey;
use super::subject::{Listing, Part, Seen, Source, Subject, Version};
use crate::queue::Key;
use crate::rbac::Reach;

/// For how long changes are gathered before a TrainJob that may have waited for one is made anew.
const GATHER: Duration = Duration::from_millis(250);

/// The same for a TrainJob that was made of something: the first time, and at most where changes do not end. Some objects change all
/// the time, and thousands of TrainJobs may be queued.
const PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// What TrainJobs were made of, as far as its change changes them.
#[derive(Debug, Default)]
pub(crate) struct Interests {
    reach: Reach,
    state: Mutex<State>,
    /// There is a source that nobody needed before, or one that nobody needs any more.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    jobs: HashMap<Key, Interest>,
    subjects: BTreeMap<Subject, HashMap<Key, Seen>>,
    /// How many settled interests there are in each source that has to be followed.
    needed: BTreeMap<Source, usize>,
}

/// The interest of one TrainJob.
#[derive(Debug, Default)]
struct Interest {
    subjects: HashMap<Subject, Mark>,
    /// Something changed since the TrainJob was last made.
    outdated: bool,
    pace: Pace,
}

/// How often a TrainJob is made anew: ever more rarely, until there are no changes for a while.
#[derive(Debug, Default)]
struct Pace {
    last: Option<(Instant, Duration)>,
}

impl Pace {
    /// How long the next time is off.
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
struct Mark {
    /// In the pass that is under way, or was the last.
    asked: bool,
    /// By a pass that is over: most TrainJobs start in their first pass, and nothing is followed for those.
    settled: bool,
}

/// A TrainJob that is to be made anew.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Woken {
    pub(crate) key: Key,
    /// How long more changes are gathered before.
    pub(crate) after: Duration,
}

impl Interests {
    /// Nobody's, where plugins look up what is watched so.
    pub(crate) fn new(reach: Reach) -> Self {
        Self {
            reach,
            ..Self::default()
        }
    }

    /// The TrainJob is made anew, of what it asks for from here on.
    pub(crate) fn begin(&self, key: &Key) {
        if let Some(interest) = self.state().jobs.get_mut(key) {
            interest.outdated = false;
            let marks = interest.subjects.values_mut();
            marks.for_each(|mark| mark.asked = false);
        }
    }

    /// The TrainJob's plugins ask for this; what they get is asked for afterwards.
    pub(crate) fn asks(&self, key: &Key, lookup: &LookupKey) {
        if let Some(subject) = Subject::of(lookup, key, &self.reach) {
            self.state().ask(key, subject);
        }
    }

    /// This was found of what the TrainJob's plugins asked for.
    pub(crate) fn found(&self, key: &Key, lookup: &LookupKey, seen: Seen) {
        if let Some(subject) = Subject::of(lookup, key, &self.reach)
            && let Some(known) = self.state().seen(&subject, key)
        {
            *known = seen;
        }
    }

    /// The TrainJob waits for a runtime that is missing or wrong.
    pub(crate) fn waits_for(&self, key: &Key, runtime: &RuntimeKey) {
        self.state().ask(key, Subject::of_runtime(runtime, key));
    }

    /// The TrainJob was made, or could not be; what it asked for before, and not this time, counts no more.
    pub(crate) fn settle(&self, key: &Key) {
        if self.state().settle(key) {
            self.changed.notify_one();
        }
    }

    /// Nothing changes the TrainJob any more: it has started, ended, or is gone.
    pub(crate) fn forget(&self, key: &Key) {
        if self.state().forget(key) {
            self.changed.notify_one();
        }
    }

    /// Whether something changed since the TrainJob was last made.
    pub(crate) fn is_outdated(&self, key: &Key) -> bool {
        self.state()
            .jobs
            .get(key)
            .is_some_and(|interest| interest.outdated)
    }

    /// A runtime changed, came or went.
    pub(crate) fn runtime_changed(&self, runtime: &RuntimeKey) -> Vec<Woken> {
        let (source, namespace) = match &runtime.namespace {
            Some(namespace) => (Source::TrainingRuntimes, Some(&**namespace)),
            None => (Source::ClusterTrainingRuntimes, None),
        };
        // Nobody notes which version of a runtime was wrong.
        self.object_changed(&source, namespace, &runtime.name, Seen::NOTHING)
    }

    /// An object changed or came.
    pub(crate) fn changed(&self, source: &Source, object: Version<'_>) -> Vec<Woken> {
        self.object_changed(source, object.namespace, object.name, Seen::of([object]))
    }

    /// An object went.
    pub(crate) fn deleted(&self, source: &Source, object: Version<'_>) -> Vec<Woken> {
        self.object_changed(source, object.namespace, object.name, Seen::NOTHING)
    }

    fn object_changed(
        &self,
        source: &Source,
        namespace: Option<&str>,
        name: &str,
        now: Seen,
    ) -> Vec<Woken> {
        let mut state = self.state();
        let mut woken = Vec::new();
        for subject in state.parts(source, namespace, name) {
            let differs = |seen: Seen| matches!(subject.part, Part::All(_)) || seen != now;
            state.wake(&subject, differs, &mut woken);
        }
        woken
    }

    /// The source was listed: all its objects, which have namespaces or not.
    pub(crate) fn listed(
        &self,
        source: &Source,
        namespaced: bool,
        listing: &Listing,
    ) -> Vec<Woken> {
        let now = |part: &Part| listing.seen(part, namespaced);
        self.compared(source, |part, seen| seen != now(part))
    }

    /// The source's kind is served, or is not.
    pub(crate) fn is_served(&self, source: &Source, served: bool) -> Vec<Woken> {
        self.compared(source, |_, seen| match seen {
            Seen::Unknown => true,
            Seen::NotServed => served,
            Seen::Objects(_) => !served,
        })
    }

    fn compared(&self, source: &Source, differs: impl Fn(&Part, Seen) -> bool) -> Vec<Woken> {
        let mut state = self.state();
        let mut woken = Vec::new();
        for subject in state.of(source) {
            state.wake(&subject, |seen| differs(&subject.part, seen), &mut woken);
        }
        woken
    }

    /// The sources that have to be followed.
    pub(crate) fn needed(&self) -> HashSet<Source> {
        self.state().needed.keys().cloned().collect()
    }

    /// Waits until others have to be followed than when it was last asked.
    pub(crate) async fn need_changed(&self) {
        self.changed.notified().await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn ask(&mut self, key: &Key, subject: Subject) {
        let interest = self.jobs.entry(key.clone()).or_default();
        interest.subjects.entry(subject.clone()).or_default().asked = true;
        let interested = self.subjects.entry(subject).or_default();
        interested.insert(key.clone(), Seen::Unknown);
    }

    fn seen(&mut self, subject: &Subject, key: &Key) -> Option<&mut Seen> {
        self.subjects.get_mut(subject)?.get_mut(key)
    }

    /// Says whether other sources are needed now.
    fn settle(&mut self, key: &Key) -> bool {
        let Some(interest) = self.jobs.get_mut(key) else {
            return false;
        };
        let (mut more, mut gone) = (Vec::new(), Vec::new());
        interest.subjects.retain(|subject, mark| {
            if !mark.asked {
                gone.push((subject.clone(), mark.settled));
            } else if !mark.settled {
                mark.settled = true;
                more.push(subject.source.clone());
            }
            mark.asked
        });
        if interest.subjects.is_empty() {
            self.jobs.remove(key);
        }
        let more: Vec<_> = more.into_iter().map(|source| self.need(source)).collect();
        let gone: Vec<_> = gone.into_iter().map(|gone| self.drop(key, gone)).collect();
        more.contains(&true) || gone.contains(&true)
    }

    fn forget(&mut self, key: &Key) -> bool {
        let subjects = self.jobs.remove(key).map(|interest| interest.subjects);
        let gone = subjects.into_iter().flatten();
        let gone: Vec<_> = gone
            .map(|(subject, mark)| self.drop(key, (subject, mark.settled)))
            .collect();
        gone.contains(&true)
    }

    /// One more needs the source. Says whether it is the first.
    fn need(&mut self, source: Source) -> bool {
        if source.kind().is_none() {
            return false;
        }
        let needs = self.needed.entry(source).or_default();
        *needs += 1;
        *needs == 1
    }

    /// The TrainJob's interest in that subject is gone. Says whether it was the last in its source.
    fn drop(&mut self, key: &Key, (subject, settled): (Subject, bool)) -> bool {
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

    /// All subjects of a source.
    fn of(&self, source: &Source) -> Vec<Subject> {
        self.from(source, Part::Served)
            .take_while(|subject| subject.source == *source)
            .cloned()
            .collect()
    }

    /// The subjects of a source that an object is part of; one without a namespace is of every one.
    fn parts(&self, source: &Source, namespace: Option<&str>, name: &str) -> Vec<Subject> {
        let any = Arc::from(namespace.unwrap_or_default());
        let one = Part::One {
            name: name.into(),
            namespace: Arc::clone(&any),
        };
        let is_of = |of: &Arc<str>| namespace.is_none_or(|namespace| **of == *namespace);
        let all = self.from(source, Part::All(any)).take_while(|subject| {
            matches!(&subject.part, Part::All(of) if is_of(of)) && subject.source == *source
        });
        let one = self.from(source, one).take_while(|subject| {
            matches!(&subject.part, Part::One { name: of, namespace } if **of == *name && is_of(namespace))
                && subject.source == *source
        });
        all.chain(one).cloned().collect()
    }

    fn from(&self, source: &Source, part: Part) -> impl Iterator<Item = &Subject> {
        let first = Subject {
            source: source.clone(),
            part,
        };
        self.subjects.range(first..).map(|(subject, _)| subject)
    }

    /// Marks those TrainJobs as outdated which saw something else of the subject, and returns those that were not yet, or have
    /// to wait no longer.
    fn wake(&mut self, subject: &Subject, differs: impl Fn(Seen) -> bool, woken: &mut Vec<Woken>) {
        let interested = self.subjects.get(subject).into_iter().flatten();
        for (key, seen) in interested.filter(|(_, seen)| differs(**seen)) {
            let Some(interest) = self.jobs.get_mut(key) else {
                continue;
            };
            let was_outdated = std::mem::replace(&mut interest.outdated, true);
            let after = match *seen {
                Seen::Unknown | Seen::NotServed | Seen::NOTHING => GATHER,
                Seen::Objects(_) if was_outdated => continue,
                Seen::Objects(_) => interest.pace.next(Instant::now()),
            };
            let key = key.clone();
            woken.push(Woken { key, after });
        }
    }
}

#[cfg(test)]
mod tests;
