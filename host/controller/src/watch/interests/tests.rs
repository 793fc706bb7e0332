#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::VecDeque;

use proptest::prelude::*;
use serde_json::json;
use trainyard_model::{claims::Claims, lookup::ObjectKey};

use super::*;
use crate::{rbac::WatchScope, watch::WatchedKind};

const FLAVOR: (&str, &str) = ("example.com/v1", "Flavor");
const NODE: (&str, &str) = ("v1", "Node");

fn reach() -> Reach {
    let claims: Claims = serde_json::from_value(json!({"reads": [
        "lookups[example.com/v1/Flavor/a]", "lookups[example.com/v1/Flavor/b]", "lookups[v1/Node/*]",
    ]}))
    .unwrap();
    Reach::of([&claims], None)
}

fn one(kind: (&str, &str), name: &str) -> LookupKey {
    LookupKey::Object(ObjectKey::new(kind.0, kind.1, name))
}

fn all(kind: (&str, &str)) -> LookupKey {
    LookupKey::All {
        api_version: kind.0.to_owned(),
        kind: kind.1.to_owned(),
    }
}

fn served(kind: (&str, &str)) -> LookupKey {
    LookupKey::Served {
        api_version: kind.0.to_owned(),
        kind: kind.1.to_owned(),
    }
}

fn source(kind: (&str, &str), name: Option<&str>) -> ChangeSource {
    let watched = name.map_or(WatchScope::Kind, |name| WatchScope::Named(name.into()));
    ChangeSource::Objects(WatchedKind::of(&all(kind)), watched)
}

fn object<'o>(namespace: Option<&'o str>, name: &'o str, version: &'o str) -> ObjectHashes<'o> {
    ObjectHashes {
        namespace,
        name,
        content: version.parse().unwrap(),
        version: 0,
    }
}

/// A rendering of a TrainJob whose plugins look these objects up and find these states.
fn made(interests: &Interests, key: &NamespacedName, lookups: &[(LookupKey, SubjectState)]) {
    interests.begin(key);
    for (lookup, seen) in lookups {
        interests.register(key, lookup, &reach());
        interests.note_state(key, lookup, &reach(), *seen);
    }
    interests.settle(key);
}

fn woken(key: &NamespacedName, waits: bool) -> Vec<Requeue> {
    let after = if waits { GATHER } else { PAUSE };
    let key = key.clone();
    vec![Requeue { key, after }]
}

fn is_empty(interests: &Interests) -> bool {
    let state = interests.state();
    state.jobs.is_empty() && state.subjects.is_empty() && state.needed.is_empty()
}

#[test]
fn an_object_wakes_those_who_asked_for_it_in_its_namespace() {
    let interests = Interests::default();
    let (mine, other) = (
        NamespacedName::new("ml", "job"),
        NamespacedName::new("eu", "job"),
    );
    for key in [&mine, &other] {
        made(
            &interests,
            key,
            &[(one(FLAVOR, "a"), SubjectState::NOTHING)],
        );
    }
    let flavors = source(FLAVOR, Some("a"));
    assert_eq!(interests.needed(), HashSet::from([flavors.clone()]));
    let came = object(Some("ml"), "a", "7");
    assert_eq!(interests.note_changed(&flavors, came), woken(&mine, true));
    assert!(interests.is_outdated(&mine) && !interests.is_outdated(&other));
    assert_eq!(
        interests.note_changed(&flavors, object(Some("ml"), "b", "7")),
        []
    );
    // It was rendered from the new object: the same version changes nothing, and another one does.
    made(
        &interests,
        &mine,
        &[(one(FLAVOR, "a"), SubjectState::of([came]))],
    );
    assert!(!interests.is_outdated(&mine));
    assert_eq!(interests.note_changed(&flavors, came), []);
    let newer = object(Some("ml"), "a", "8");
    assert_eq!(interests.note_changed(&flavors, newer), woken(&mine, false));
    // It is already queued.
    assert_eq!(interests.note_deleted(&flavors, newer), []);
}

#[test]
fn an_object_without_a_namespace_wakes_those_of_every_namespace() {
    let interests = Interests::default();
    let (mine, other) = (
        NamespacedName::new("ml", "job"),
        NamespacedName::new("eu", "job"),
    );
    made(
        &interests,
        &mine,
        &[(one(NODE, "n"), SubjectState::NOTHING)],
    );
    made(&interests, &other, &[(all(NODE), SubjectState::NOTHING)]);
    let nodes = source(NODE, None);
    assert_eq!(interests.needed(), HashSet::from([nodes.clone()]));
    let mut both = interests.note_changed(&nodes, object(None, "n", "1"));
    both.sort();
    assert_eq!(both, [woken(&other, true), woken(&mine, true)].concat());
    let another = interests.note_changed(&nodes, object(None, "m", "1"));
    assert_eq!(another, woken(&other, true));
}

#[test]
fn a_list_wakes_those_who_saw_something_else() {
    let interests = Interests::default();
    let nodes = source(NODE, None);
    let found = [object(None, "n", "1"), object(None, "m", "2")];
    let jobs = ["same", "less", "gone"].map(|name| NamespacedName::new("ml", name));
    made(
        &interests,
        &jobs[0],
        &[(all(NODE), SubjectState::of(found))],
    );
    made(
        &interests,
        &jobs[1],
        &[(all(NODE), SubjectState::of([found[0]]))],
    );
    let gone = SubjectState::of([object(None, "o", "1")]);
    made(&interests, &jobs[2], &[(one(NODE, "o"), gone)]);
    let mut listing = Listing::default();
    for object in found {
        listing.add(object);
    }
    let mut requeued = interests.note_listed(&nodes, false, &listing);
    requeued.sort();
    assert_eq!(
        requeued,
        [woken(&jobs[2], false), woken(&jobs[1], false)].concat()
    );
}

#[test]
fn kinds_that_come_or_go_wake_those_that_saw_otherwise() {
    let interests = Interests::default();
    let key = NamespacedName::new("ml", "job");
    made(
        &interests,
        &key,
        &[
            (one(FLAVOR, "a"), SubjectState::NotServed),
            (served(FLAVOR), SubjectState::NOTHING),
        ],
    );
    let (flavors, asks) = (
        source(FLAVOR, Some("a")),
        ChangeSource::Served(WatchedKind::of(&served(FLAVOR))),
    );
    assert_eq!(
        interests.needed(),
        HashSet::from([flavors.clone(), asks.clone()])
    );
    assert_eq!(interests.note_served(&flavors, false), []);
    assert_eq!(interests.note_served(&asks, true), []);
    assert_eq!(interests.note_served(&flavors, true), woken(&key, true));
    assert_eq!(interests.note_served(&asks, false), woken(&key, true));
}

#[tokio::test(start_paused = true)]
async fn what_changes_all_the_time_is_followed_ever_more_rarely() {
    let interests = Interests::default();
    let key = NamespacedName::new("ml", "job");
    let nodes = source(NODE, None);
    let mut version = 0;
    let mut next = || {
        version += 1;
        let seen = SubjectState::of([object(None, "n", "0")]);
        made(&interests, &key, &[(one(NODE, "n"), seen)]);
        let requeued = interests.note_changed(&nodes, object(None, "n", &version.to_string()));
        requeued[0].after
    };
    let mut last = next();
    assert_eq!(last, PAUSE);
    for _ in 0..10 {
        tokio::time::advance(last).await;
        let pause = next();
        assert_eq!(pause, (last * 2).min(LONGEST_PAUSE));
        last = pause;
    }
    tokio::time::advance(LONGEST_PAUSE * 2).await;
    assert_eq!(next(), PAUSE);
}

#[test]
fn secrets_and_config_maps_are_followed_by_nobody() {
    let interests = Interests::default();
    let key = NamespacedName::new("ml", "job");
    let lookups = [
        one(("v1", "ConfigMap"), "a"),
        all(("v1", "ConfigMap")),
        one(("v1", "Secret"), "a"),
    ];
    made(
        &interests,
        &key,
        &lookups.map(|lookup| (lookup, SubjectState::NOTHING)),
    );
    assert!(is_empty(&interests));
}

#[test]
fn a_job_that_starts_in_its_first_pass_needs_no_watch() {
    let interests = Interests::default();
    let key = NamespacedName::new("ml", "job");
    interests.begin(&key);
    interests.register(&key, &one(FLAVOR, "a"), &reach());
    assert_eq!(interests.needed(), HashSet::new());
    interests.forget(&key);
    assert!(is_empty(&interests));
}

/// Plugins are replaced while the controller runs. The same kind may be watched in another way.
#[test]
fn a_rendering_with_other_plugins_replaces_the_sources() {
    let interests = Interests::default();
    let key = NamespacedName::new("ml", "job");
    let of_all: Claims =
        serde_json::from_value(json!({"reads": ["lookups[example.com/v1/Flavor/*]"]})).unwrap();
    let of_all = Reach::of([&of_all], None);
    let lookup = one(FLAVOR, "a");
    for (reach, needed) in [
        (&reach(), source(FLAVOR, Some("a"))),
        (&of_all, source(FLAVOR, None)),
        (&reach(), source(FLAVOR, Some("a"))),
    ] {
        interests.begin(&key);
        interests.register(&key, &lookup, reach);
        interests.note_state(&key, &lookup, reach, SubjectState::NOTHING);
        interests.settle(&key);
        assert_eq!(interests.needed(), HashSet::from([needed.clone()]));
        let came = object(Some("ml"), "a", "7");
        assert_eq!(interests.note_changed(&needed, came), woken(&key, true));
    }
    interests.begin(&key);
    interests.settle(&key);
    assert!(is_empty(&interests));
}

#[test]
fn runtimes_wake_only_train_jobs_that_wait_for_them() {
    let interests = Interests::default();
    let key = NamespacedName::new("ml", "job");
    let runtime = |namespace: Option<&str>| RuntimeKey {
        namespace: namespace.map(Into::into),
        name: "torch".into(),
    };
    for waited_for in [runtime(None), runtime(Some("ml"))] {
        interests.begin(&key);
        interests.wait_for(&key, &waited_for);
        interests.settle(&key);
        assert_eq!(interests.needed(), HashSet::new());
        for other in [None, Some("ml"), Some("eu")].map(runtime) {
            let requeued = interests.runtime_changed(&other);
            assert_eq!(
                requeued.len(),
                usize::from(other == waited_for),
                "{other:?}"
            );
        }
    }
    interests.begin(&key);
    interests.settle(&key);
    assert!(is_empty(&interests));
}

/// An event in a cluster with two objects of the same name in two namespaces, and TrainJobs that look them up.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// The object is written or deleted.
    Write(usize),
    Delete(usize),
    /// The watch delivers its oldest pending event.
    Deliver,
    /// The watch restarts with a list, and pending events are lost.
    List,
    /// The plugins of a TrainJob look an object up.
    Ask(usize),
    /// The API server answers.
    Answer(usize),
    /// The rendering ends.
    End(usize),
    Forget(usize),
}

const NAMESPACES: [&str; 2] = ["ml", "eu"];

fn steps() -> impl Strategy<Value = Vec<Action>> {
    let object = prop_oneof![4 => Just(0_usize), 1 => Just(1)];
    let job = 0..2_usize;
    let step = prop_oneof![
        object.clone().prop_map(Action::Write),
        object.prop_map(Action::Delete),
        Just(Action::Deliver),
        Just(Action::List),
        job.clone().prop_map(Action::Ask),
        job.clone().prop_map(Action::Answer),
        job.clone().prop_map(Action::End),
        job.prop_map(Action::Forget),
    ];
    proptest::collection::vec(step, 0..40)
}

/// TrainJob 0 looks up the object of its namespace by name, and TrainJob 1 all of them; both are in the first namespace.
fn lookup(job: usize) -> LookupKey {
    if job == 0 { one(NODE, "n") } else { all(NODE) }
}

#[derive(Debug, Default, Clone)]
enum Pass {
    #[default]
    None,
    Asked,
    Answered(Option<u64>),
    Over(Option<u64>),
}

#[derive(Default)]
struct World {
    interests: Interests,
    version: u64,
    objects: [Option<u64>; 2],
    events: VecDeque<(usize, u64, bool)>,
    passes: [Pass; 2],
}

impl World {
    fn key(job: usize) -> NamespacedName {
        NamespacedName::new(NAMESPACES[0], job.to_string())
    }

    fn seen(object: usize, version: Option<u64>) -> SubjectState {
        let found = version.iter().map(|version| ObjectHashes {
            namespace: Some(NAMESPACES[object]),
            name: "n",
            content: *version,
            version: 0,
        });
        SubjectState::of(found)
    }

    fn deliver(&mut self) {
        if let Some((object, version, there)) = self.events.pop_front() {
            let requeued = ObjectHashes {
                namespace: Some(NAMESPACES[object]),
                name: "n",
                content: version,
                version: 0,
            };
            let nodes = source(NODE, None);
            if there {
                self.interests.note_changed(&nodes, requeued);
            } else {
                self.interests.note_deleted(&nodes, requeued);
            }
        }
    }

    fn list(&mut self) {
        self.events.clear();
        let mut listing = Listing::default();
        for (object, version) in self.objects.iter().enumerate() {
            if let Some(version) = version {
                listing.add(ObjectHashes {
                    namespace: Some(NAMESPACES[object]),
                    name: "n",
                    content: *version,
                    version: 0,
                });
            }
        }
        self.interests
            .note_listed(&source(NODE, None), true, &listing);
    }

    fn step(&mut self, step: Action) {
        self.version += 1;
        match step {
            Action::Write(object) => {
                self.objects[object] = Some(self.version);
                self.events.push_back((object, self.version, true));
            }
            Action::Delete(object) => {
                if self.objects[object].take().is_some() {
                    self.events.push_back((object, self.version, false));
                }
            }
            Action::Deliver => self.deliver(),
            Action::List => self.list(),
            Action::Ask(job) => {
                self.interests.begin(&Self::key(job));
                self.interests
                    .register(&Self::key(job), &lookup(job), &reach());
                self.passes[job] = Pass::Asked;
            }
            Action::Answer(job) => {
                if matches!(self.passes[job], Pass::Asked) {
                    self.passes[job] = Pass::Answered(self.objects[0]);
                }
            }
            Action::End(job) => {
                if let Pass::Answered(version) = self.passes[job] {
                    let seen = Self::seen(0, version);
                    self.interests
                        .note_state(&Self::key(job), &lookup(job), &reach(), seen);
                    self.interests.settle(&Self::key(job));
                    self.passes[job] = Pass::Over(version);
                }
            }
            Action::Forget(job) => {
                self.interests.forget(&Self::key(job));
                self.passes[job] = Pass::None;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    /// In every order of steps, once all events are delivered, every TrainJob that was rendered from another state is outdated.
    #[test]
    fn no_change_is_missed(steps in steps(), ends_with_a_list: bool) {
        let mut world = World::default();
        for step in steps {
            world.step(step);
        }
        if ends_with_a_list {
            world.list();
        }
        while !world.events.is_empty() {
            world.deliver();
        }
        let mut settled = 0;
        for (job, pass) in world.passes.iter().enumerate() {
            if let Pass::Over(version) = pass {
                settled += 1;
                let is_as_made = *version == world.objects[0];
                prop_assert!(is_as_made || world.interests.is_outdated(&World::key(job)), "{job}");
            }
        }
        prop_assert!(settled == 0 || world.interests.needed().len() == 1);
        for job in 0..2 {
            world.interests.forget(&World::key(job));
        }
        prop_assert!(is_empty(&world.interests));
    }
}

#[test]
fn what_changes_while_a_pass_is_under_way_makes_it_outdated() {
    for answer_first in [true, false] {
        let mut world = World::default();
        world.step(Action::Ask(0));
        if answer_first {
            world.step(Action::Answer(0));
        }
        world.step(Action::Write(0));
        world.step(Action::Deliver);
        if !answer_first {
            world.step(Action::Answer(0));
        }
        world.step(Action::End(0));
        assert!(
            world.interests.is_outdated(&World::key(0)),
            "{answer_first}"
        );
    }
}
