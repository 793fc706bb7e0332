#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::{collections::BTreeMap, sync::Mutex};

use serde_json::{Value, json};

use super::*;
use crate::{
    queue::NamespacedName,
    watch::{
        JobSetObject, RuntimeKey, RuntimeObject, TrainJobObject,
        script::{Answer, Script, page},
    },
};

fn served() -> Answer {
    let kinds = [
        ("trainjobs", "TrainJob"),
        ("trainingruntimes", "TrainingRuntime"),
        ("jobsets", "JobSet"),
    ];
    let resources = kinds.map(|(name, kind)| {
        json!({"name": name, "singularName": "", "namespaced": true, "kind": kind, "verbs": ["list", "watch"]})
    });
    let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "g/v1", "resources": resources});
    Answer::ok(list.to_string())
}

fn nested(levels: usize) -> String {
    format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
}

fn object(name: &str, version: u64, more: &Value) -> String {
    let mut object = json!({"metadata": {
        "name": name, "namespace": "a", "uid": format!("uid-{name}"), "resourceVersion": version.to_string(),
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }});
    for (key, value) in more.as_object().unwrap() {
        match key.as_str() {
            "managedFields" => object["metadata"][key] = value.clone(),
            _ => object[key] = value.clone(),
        }
    }
    object.to_string()
}

/// Returns the same object with a member of the spec that is nested to that depth.
fn deep(name: &str, version: u64, spec: &Value, levels: usize) -> String {
    let text = object(name, version, &json!({"spec": spec}));
    let (start, end) = text.rsplit_once("}}").unwrap();
    format!(
        "{start},\"podTemplateOverrides\":{}}}}}{end}",
        nested(levels)
    )
}

/// A follower that records its calls.
struct RecordingFollower<'s> {
    store: &'s Jobs,
    health: Mutex<Vec<Health>>,
    /// How often the API server sent something, and once for the start.
    heard: Mutex<usize>,
    /// How often each object changed.
    changed: Mutex<BTreeMap<String, usize>>,
    /// The deleted objects, and whether the deletions were observed.
    gone: Mutex<Vec<(String, bool)>>,
}

impl Follower<TrainJobObject> for RecordingFollower<'_> {
    fn heard(&self) {
        *self.heard.lock().unwrap() += 1;
    }

    fn health(&self, health: Health) {
        self.health.lock().unwrap().push(health);
    }

    fn changed(
        &self,
        key: &NamespacedName,
        change: Change<<TrainJobObject as crate::watch::WatchedObject>::State>,
    ) {
        let name = key.name.to_string();
        if let Change::Deleted(gone) = change {
            // Its last state is recorded before it is removed from the store.
            let is_there = self.store.get(key).is_some();
            assert!(is_there || name == "never-seen", "{name}");
            let gone = (name.clone(), gone.was_seen);
            self.gone.lock().unwrap().push(gone);
        }
        *self.changed.lock().unwrap().entry(name).or_default() += 1;
    }
}

type Jobs = Store<NamespacedName, <TrainJobObject as crate::watch::WatchedObject>::State>;

/// Follows until the script has no answers left, and for longer than any pause.
async fn followed<'s>(script: &Script, store: &'s Jobs) -> RecordingFollower<'s> {
    let recorded = RecordingFollower {
        store,
        health: Mutex::default(),
        heard: Mutex::default(),
        changed: Mutex::default(),
        gone: Mutex::default(),
    };
    let client = script.client();
    let end = tokio::time::timeout(
        Duration::from_secs(1_000),
        follow(&client, store, &recorded),
    );
    assert!(end.await.is_err());
    recorded
}

fn key(name: &str) -> NamespacedName {
    NamespacedName::new("a", name)
}

fn line(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

#[tokio::test(start_paused = true)]
async fn undecodable_train_jobs_delay_no_others() {
    let spec = json!({"suspend": true, "runtimeRef": {"name": "r"}});
    let beyond = json!({"conditions": [{
        "type": "Suspended", "status": "True", "reason": "r", "message": "secret", "lastTransitionTime": "9999-12-31T23:59:59Z",
    }]});
    let list = page(
        &[
            &object("first", 1, &json!({"spec": spec})),
            &deep("nested", 2, &spec, 200),
            &deep("very-nested", 3, &spec, 100_000),
            &object(
                "year-9999",
                4,
                &json!({"spec": spec, "managedFields": [{"manager": "m", "time": "9999-12-31T23:59:59Z"}]}),
            ),
            &object("status-9999", 5, &json!({"spec": spec, "status": beyond})),
            &object("last", 6, &json!({"spec": spec})),
        ],
        9,
        "",
    );
    let lines = [
        line(
            "MODIFIED",
            &object("last", 10, &json!({"spec": spec, "status": beyond})),
        ),
        line("ADDED", &deep("new-nested", 11, &spec, 300)),
        line(
            "MODIFIED",
            &object("status-9999", 12, &json!({"spec": spec})),
        ),
        line("ADDED", &object("new", 13, &json!({"spec": spec}))),
    ];
    let script = Script::new([served(), Answer::ok(list), Answer::watch(lines.concat())]);
    let store = Jobs::default();
    let recorded = followed(&script, &store).await;
    assert!(store.is_synced());
    let readable: Vec<_> = [
        "first",
        "nested",
        "very-nested",
        "year-9999",
        "status-9999",
        "new-nested",
        "new",
    ]
    .map(|name| store.get(&key(name)).unwrap())
    .into();
    assert_eq!(readable.len() + 1, store.keys().len());
    // Whether they are suspended is known even if they are nested too deep.
    for (job, whole) in readable
        .iter()
        .zip([true, false, false, true, true, false, true])
    {
        assert!(format!("{:?}", job.desired).contains("suspend: true"));
        assert_eq!(job.object().is_ok(), whole, "{:?}", job.object());
    }
    let why = readable[1].object().unwrap_err();
    assert_eq!(
        why,
        "spec.podTemplateOverrides: nested deeper than the 127 levels that are supported; flatten it"
    );
    // What the last one was is not what it is.
    assert!(store.get(&key("last")).is_none());
    let unreadable = store.unreadable(&key("last")).unwrap();
    assert_eq!(
        (&*unreadable.uid, &*unreadable.resource_version()),
        ("uid-last", "10")
    );
    assert_eq!(
        &*unreadable.why,
        "status.conditions[0].lastTransitionTime: the value cannot be decoded; correct it"
    );
    let changed = recorded.changed.lock().unwrap();
    assert_eq!(
        (changed["last"], changed["status-9999"], changed["new"]),
        (2, 2, 1)
    );
    assert!(recorded.health.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn unseen_deletions_are_found_by_the_next_list() {
    let gone = "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410}}\n";
    let none = json!({});
    let script = Script::new([
        served(),
        Answer::ok(page(
            &[&object("stays", 1, &none), &object("goes", 2, &none)],
            9,
            "",
        )),
        Answer::watch(line("DELETED", &object("never-seen", 10, &none)) + gone),
        Answer::ok(page(&[&object("stays", 1, &none)], 20, "")),
    ]);
    let store = Jobs::default();
    let recorded = followed(&script, &store).await;
    assert_eq!(store.keys(), [key("stays")]);
    let gone = recorded.gone.lock().unwrap().clone();
    let expected = [("never-seen", true), ("goes", false)];
    assert_eq!(
        gone,
        expected.map(|(name, was_seen)| (name.to_owned(), was_seen))
    );
}

#[tokio::test(start_paused = true)]
async fn failing_watches_are_lost_until_they_recover() {
    let mut answers = vec![served(), Answer::ok(page(&[], 9, ""))];
    answers.extend(std::iter::repeat_with(|| Answer::status(503)).take(30));
    answers.push(Answer::ok(page(&[], 9, "")));
    answers.push(Answer::watch(line("ADDED", &object("a", 10, &json!({})))));
    let script = Script::new(answers);
    let store = Jobs::default();
    let recorded = followed(&script, &store).await;
    let health = recorded.health.lock().unwrap();
    let [Health::Lost(why), .., Health::Working] = &**health else {
        panic!("{health:?}");
    };
    assert!(
        why.starts_with("the watch has failed for more than 120 s: "),
        "{why}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_fails_shortly_is_not_lost() {
    let script = Script::new([
        served(),
        Answer::ok(page(&[], 9, "")),
        Answer::status(503),
        Answer::status(500),
        Answer::ok(page(&[], 9, "")),
        Answer::watch(line("ADDED", &object("a", 10, &json!({})))),
    ]);
    let store = Jobs::default();
    let recorded = followed(&script, &store).await;
    assert!(recorded.health.lock().unwrap().is_empty());
    assert!(store.get(&key("a")).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_list_of_a_restored_state_ends_the_watch() {
    let none = json!({});
    let script = Script::new([
        served(),
        Answer::ok(page(&[&object("a", 5, &none)], 9, "")),
        Answer::watch(line("MODIFIED", &object("a", 20, &none))),
        Answer::status(503),
        Answer::ok(page(&[&object("a", 5, &none)], 12, "")),
    ]);
    let (client, store) = (script.client(), Jobs::default());
    let recorded = RecordingFollower {
        store: &store,
        health: Mutex::default(),
        heard: Mutex::default(),
        changed: Mutex::default(),
        gone: Mutex::default(),
    };
    let ended = follow(&client, &store, &recorded).await;
    assert_eq!(
        ended.to_string(),
        "the API server returned resourceVersion 12 after 20, so its state was replaced by an older one, such as a backup of etcd"
    );
}

#[test]
fn job_sets_with_undecodable_status_are_not_missing() {
    let status =
        json!({"conditions": [{"type": "Failed", "status": "True", "lastTransitionTime": 1}]});
    let (found, read) = read::<JobSetObject>(&object("b", 5, &json!({"status": status}))).unwrap();
    assert_eq!(found, key("b"));
    assert_eq!(read.unwrap_err().version(), 5);
}

#[test]
fn a_runtime_that_is_nested_too_deep_says_so() {
    let (found, read) =
        read::<RuntimeObject>(&deep("r", 5, &json!({"mlPolicy": {}, "x": 1}), 200)).unwrap();
    assert_eq!(
        found,
        RuntimeKey {
            namespace: Some("a".into()),
            name: "r".into()
        }
    );
    let problem = read.unwrap().read().map(drop).unwrap_err();
    assert!(
        problem.starts_with("spec.podTemplateOverrides: nested deeper"),
        "{problem}"
    );
}

#[test]
fn the_counts_of_a_job_set_keep_their_order() {
    let count = |name| json!({"name": name, "active": 1, "ready": 0, "succeeded": 0, "failed": 0, "suspended": 0});
    let counts = ["node", "launcher"].map(count);
    let status = json!({ "replicatedJobsStatus": counts });
    let (_, read) = read::<JobSetObject>(&object("b", 5, &json!({"status": status}))).unwrap();
    let state = read.unwrap();
    let names: Vec<_> = state.jobs.iter().map(|job| &*job.name).collect();
    assert_eq!(names, ["node", "launcher"]);
}

/// The status of a TrainJob with more counts would be invalid as a whole.
#[test]
fn job_sets_with_too_many_counts_keep_some_and_their_end() {
    let count = |at| json!({"name": format!("job-{at:04}"), "active": 1, "ready": 0, "succeeded": 0, "failed": 0, "suspended": 0});
    let counts: Vec<_> = (0..9_000).map(count).collect();
    let end = json!({"type": "Completed", "status": "True", "reason": "All", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = json!({"replicatedJobsStatus": counts, "conditions": [end]});
    let (_, read) = read::<JobSetObject>(&object("b", 5, &json!({"status": status}))).unwrap();
    let state = read.unwrap();
    assert_eq!(state.jobs.len(), 100);
    assert!(state.end.is_some());
}

/// A namespace has more text than is held, until an object of it is deleted.
#[tokio::test(start_paused = true)]
async fn objects_without_text_are_listed_again_once_there_is_room() {
    let text = "x".repeat(3 << 20);
    let large = |number: u64| {
        let spec = json!({"spec": {"runtimeRef": {"name": text}}});
        object(&format!("job-{number:02}"), number, &spec)
    };
    let all: Vec<_> = (1..=22).map(large).collect();
    let texts = |from: usize| all[from..].iter().map(String::as_str).collect::<Vec<_>>();
    let script = Script::new([
        served(),
        Answer::ok(page(&texts(0), 30, "")),
        Answer::watch(line("DELETED", &object("job-01", 31, &json!({})))),
        Answer::hangs(String::new()),
        Answer::ok(page(&texts(1), 31, "")),
    ]);
    let store = Jobs::default();
    let recorded = followed(&script, &store).await;
    let last = store.get(&key("job-22")).unwrap();
    assert!(last.object().is_ok() && !store.has_room_again());
    let changed = recorded.changed.lock().unwrap();
    assert_eq!((changed["job-22"], changed["job-01"]), (2, 3));
}

#[test]
fn only_the_beginning_of_a_long_annotation_is_kept() {
    let mut job: Value = serde_json::from_str(&object("a", 5, &json!({"spec": {}}))).unwrap();
    let annotation = trainyard_api::names::ERROR_ANNOTATION;
    job["metadata"]["annotations"] = json!({(annotation): "x".repeat(200_000)});
    let (_, read) = read::<TrainJobObject>(&job.to_string()).unwrap();
    let state = read.unwrap();
    assert_eq!(state.error.as_deref().map(str::len), Some(512));
}

/// The API server bounds neither the UID of an owner nor the length of one annotation.
#[test]
fn little_is_kept_of_a_job_set_with_long_metadata() {
    let long = || "\u{e4}".repeat(200_000);
    let mut job_set: Value = serde_json::from_str(&object("a", 5, &json!({"spec": {}}))).unwrap();
    let owner =
        json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": long(), "controller": true});
    let metadata = json!({
        "ownerReferences": [owner], "finalizers": [format!("example.com/{}", long()), "example.com/keep"],
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "annotations": {"trainyard.dev/snapshot": long(), "trainyard.dev/inputs": long(), "other": long()},
    });
    for (key, value) in metadata.as_object().unwrap() {
        job_set["metadata"][key] = value.clone();
    }
    let (_, read) = read::<JobSetObject>(&job_set.to_string()).unwrap();
    let state = read.unwrap();
    assert!(state.owner.is_some() && state.finalizers.starts_with("example.com/"));
    let kept = format!("{state:?}").len();
    assert!(kept < 4_000, "{kept}");
}

/// A connection that was accepted may be held back by a proxy, so only what the API server sends counts.
#[tokio::test(start_paused = true)]
async fn objects_events_and_bookmarks_show_that_a_watch_works() {
    let heard = async |answers: Vec<Answer>| {
        let script = Script::new(answers);
        let store = Jobs::default();
        let recorded = followed(&script, &store).await;
        *recorded.heard.lock().unwrap()
    };
    assert_eq!(heard(Vec::new()).await, 1, "the start");
    assert_eq!(heard(vec![served(), Answer::status(403)]).await, 1);
    let list = || Answer::ok(page(&[&object("a", 1, &json!({}))], 9, ""));
    let silent = Answer::hangs(String::new());
    // The page, and the end of the list.
    assert_eq!(heard(vec![served(), list(), silent]).await, 3);
    let bookmark = line("BOOKMARK", &object("", 12, &json!({})));
    let event = line("MODIFIED", &object("a", 11, &json!({})));
    let watch = Answer::hangs(event + &bookmark);
    assert_eq!(heard(vec![served(), list(), watch]).await, 5);
}
