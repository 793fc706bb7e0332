//! A stub of an API server that stores objects: enough to run a whole controller, to count its calls, and to let each of them fail.

mod answers;
mod calls;
mod kinds;
mod place;
mod reviews;
mod rules;
mod watch;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{body::Body, response::Response};
use futures_util::FutureExt as _;
use serde_json::{Map, Value};
use tokio::sync::watch::Sender;
use trainyard_controller::client::InProcess;

pub(crate) use self::rules::{Act, Lost, When};
use self::{answers::now, kinds::KINDS, place::Place};
use super::serve;

/// How long a test waits for an expected state.
const PATIENCE: Duration = Duration::from_secs(600);

/// Plural, namespace and name.
pub(crate) type Id = (String, String, String);

/// The number of calls of one kind, and the bytes of their answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) calls: u64,
    pub(crate) bytes: u64,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<Id, Value>,
    /// Every change, oldest first. The number of a change is the version of its object.
    log: Vec<(Id, &'static str, Value)>,
    /// How often a backup was restored.
    restores: usize,
    /// How often all watches were broken.
    breaks: usize,
    /// What each manager has applied last, beside the status or of it.
    applied: BTreeMap<(Id, String, bool), Value>,
    /// Refuses changes of objects.
    admission: Option<Admission>,
    traffic: BTreeMap<(String, String), Traffic>,
    /// The kinds whose CRDs are not installed, by their plurals.
    not_served: BTreeSet<&'static str>,
    /// The tokens that are accepted, with their audience and their user.
    tokens: BTreeMap<String, (String, Value)>,
    /// The resources for which the controller has no permissions.
    denied: BTreeSet<&'static str>,
}

/// What the API server stored at a time.
#[derive(Clone)]
pub(crate) struct Backup {
    objects: BTreeMap<Id, Value>,
    /// The number of changes until then.
    changes: usize,
}

/// Returns the Status with which a change of an object is refused.
pub(crate) type Admission = fn(before: &Value, after: &Value) -> Option<Value>;

/// How a call with this verb, plural and body is handled.
type Rule = Arc<dyn Fn(&Cluster, When, (&str, &str), &Value) -> Act + Send + Sync>;

/// The API server.
#[derive(Clone)]
pub(crate) struct Cluster {
    state: Arc<Mutex<State>>,
    rule: Arc<Mutex<Option<Rule>>>,
    /// Held by a write, which compares versions first.
    writing: Arc<Mutex<()>>,
    changed: Sender<usize>,
}

impl Cluster {
    pub(crate) fn new() -> Self {
        Self {
            state: Arc::default(),
            rule: Arc::default(),
            writing: Arc::default(),
            changed: Sender::new(0),
        }
    }

    /// Serves on a free port for as long as the test lasts.
    pub(crate) async fn serve(&self) -> kube::Config {
        let cluster = self.clone();
        serve(move |request| {
            let cluster = cluster.clone();
            async move { cluster.answer(request).await.unwrap_or_else(lost) }.boxed()
        })
        .await
    }

    /// Serves this process, without a network, so that a test's clock may be paused.
    pub(crate) fn in_process(&self) -> InProcess {
        let cluster = self.clone();
        InProcess::new("default", move |request| {
            let cluster = cluster.clone();
            async move { Ok(cluster.answer(request.map(Body::new)).await?) }.boxed()
        })
    }

    /// Refuses changes of objects from now on.
    pub(crate) fn set_admission(&self, admission: Admission) {
        self.state.lock().unwrap().admission = Some(admission);
    }

    /// Ends all watches as if their connections were lost.
    pub(crate) fn break_watches(&self) {
        self.state.lock().unwrap().breaks += 1;
        self.changed.send_modify(|_| {});
    }

    /// Returns all changes, the oldest first: plural, namespace and name, the event and the object.
    pub(crate) fn history(&self) -> Vec<(Id, &'static str, Value)> {
        self.state.lock().unwrap().log.clone()
    }

    /// Deletes all objects, whatever their finalizers.
    pub(crate) fn clear(&self) {
        let _writing = self.writing.lock().unwrap();
        let ids: Vec<Id> = self.state.lock().unwrap().objects.keys().cloned().collect();
        for id in &ids {
            self.remove(id);
        }
    }

    /// Forgets the content of all changes, and what managers have applied to objects that are gone. Returns the bytes that remain of it.
    pub(crate) fn forget_history(&self) -> usize {
        let mut state = self.state.lock().unwrap();
        let State {
            log,
            applied,
            objects,
            ..
        } = &mut *state;
        for change in log.iter_mut() {
            *change = (Id::default(), change.1, Value::Null);
        }
        applied.retain(|(id, _, _), _| objects.contains_key(id));
        log.capacity() * size_of::<(Id, &str, Value)>()
    }

    /// Waits until a condition holds, which is checked after each change. Returns false if it does not hold within this time.
    pub(crate) async fn holds_within(&self, time: Duration, holds: impl Fn(&Self) -> bool) -> bool {
        let mut changed = self.changed.subscribe();
        let waits = async {
            while !holds(self) {
                changed.changed().await.unwrap();
            }
        };
        tokio::time::timeout(time, waits).await.is_ok()
    }

    /// Waits until nothing has changed for this time.
    pub(crate) async fn is_still_for(&self, time: Duration) {
        let mut changed = self.changed.subscribe();
        while tokio::time::timeout(time, changed.changed()).await.is_ok() {}
    }

    /// Waits for the next change.
    pub(crate) async fn changes(&self) {
        let mut changed = self.changed.subscribe();
        changed.changed().await.unwrap();
    }

    /// Handles calls by a rule from now on.
    pub(crate) fn set_rule(
        &self,
        rule: impl Fn(&Self, When, (&str, &str), &Value) -> Act + Send + Sync + 'static,
    ) {
        *self.rule.lock().unwrap() = Some(Arc::new(rule));
    }

    /// Executes all calls from now on.
    pub(crate) fn forget_rule(&self) {
        *self.rule.lock().unwrap() = None;
    }

    /// Serves no objects of a kind from now on, as if its CRD were not installed.
    pub(crate) fn stop_serving(&self, plural: &'static str) {
        self.state.lock().unwrap().not_served.insert(plural);
    }

    /// Serves the objects of a kind again.
    pub(crate) fn start_serving(&self, plural: &'static str) {
        self.state.lock().unwrap().not_served.remove(plural);
    }

    fn serves(&self, plural: &str) -> bool {
        !self.state.lock().unwrap().not_served.contains(plural)
    }

    /// Evaluates the rule, and pauses if it says so.
    async fn ask(&self, when: When, call: (&str, &str), body: &Value) -> Act {
        let rule = self.rule.lock().unwrap().clone();
        let act = rule.map_or(Act::GoOn, |rule| rule(self, when, call, body));
        match act {
            Act::Pause => tokio::time::sleep(Duration::from_millis(300)).await,
            Act::Wait(time) => tokio::time::sleep(time).await,
            Act::Hang => std::future::pending().await,
            _ => {}
        }
        act
    }

    /// Returns what is stored now.
    pub(crate) fn backup(&self) -> Backup {
        let state = self.state.lock().unwrap();
        Backup {
            objects: state.objects.clone(),
            changes: state.log.len(),
        }
    }

    /// Restores a backup, and breaks all watches. Versions are given again, as etcd does.
    pub(crate) fn restore(&self, backup: &Backup) {
        let mut state = self.state.lock().unwrap();
        state.objects = backup.objects.clone();
        state.log.truncate(backup.changes);
        state.restores += 1;
        state.breaks += 1;
        drop(state);
        self.changed.send_replace(backup.changes);
    }

    /// Returns the names of the objects of a kind that were created since a backup.
    pub(crate) fn created_since(&self, backup: &Backup, plural: &str) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let changes = state.log[backup.changes..].iter();
        let created = changes.filter(|((of, ..), event, _)| of == plural && *event == "ADDED");
        created.map(|((.., name), ..)| name.clone()).collect()
    }

    /// Whether objects of a kind can be stored.
    pub(crate) fn stores(kind: &str) -> bool {
        KINDS.iter().any(|(of, ..)| *of == kind)
    }

    /// Creates or replaces an object.
    pub(crate) fn put(&self, object: Value) {
        let kind = object["kind"].as_str().unwrap();
        let (_, plural, ..) = KINDS.iter().find(|(of, ..)| *of == kind).unwrap();
        let text = |key: &str| {
            object["metadata"][key]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let id = (String::from(*plural), text("namespace"), text("name"));
        let _writing = self.writing.lock().unwrap();
        self.write(id, object);
    }

    /// Applies a merge patch to an object.
    pub(crate) fn merge(&self, plural: &str, namespace: &str, name: &str, patch: &Value) {
        self.edit(plural, (namespace, name), |object| {
            json_patch::merge(object, patch);
        });
    }

    /// Changes an object, between two writes of its clients.
    pub(crate) fn edit(
        &self,
        plural: &str,
        (namespace, name): (&str, &str),
        change: impl FnOnce(&mut Value),
    ) {
        let id = (plural.to_owned(), namespace.to_owned(), name.to_owned());
        let _writing = self.writing.lock().unwrap();
        let mut object = self.state.lock().unwrap().objects[&id].clone();
        change(&mut object);
        self.write(id, object);
    }

    /// Returns the object, if it exists.
    pub(crate) fn get(&self, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        let id = (plural.to_owned(), namespace.to_owned(), name.to_owned());
        self.state.lock().unwrap().objects.get(&id).cloned()
    }

    /// Returns all objects of a kind.
    pub(crate) fn all(&self, plural: &str) -> Vec<Value> {
        let state = self.state.lock().unwrap();
        let objects = state.objects.iter().filter(|((of, ..), _)| of == plural);
        objects.map(|(_, object)| object.clone()).collect()
    }

    /// Returns the number of objects of a kind.
    pub(crate) fn count(&self, plural: &str) -> usize {
        let state = self.state.lock().unwrap();
        state.objects.keys().filter(|(of, ..)| of == plural).count()
    }

    /// Returns the bytes of a list of all objects of a kind.
    pub(crate) fn list_bytes(&self, plural: &str) -> u64 {
        let place = Place {
            plural: plural.to_owned(),
            namespace: None,
            name: None,
            query: BTreeMap::new(),
        };
        self.list(&place, false).to_string().len() as u64
    }

    /// Returns the calls of each verb and kind.
    pub(crate) fn all_traffic(&self) -> BTreeMap<(String, String), Traffic> {
        self.state.lock().unwrap().traffic.clone()
    }

    /// Returns the calls of a verb and kind.
    pub(crate) fn traffic(&self, verb: &str, plural: &str) -> Traffic {
        let state = self.state.lock().unwrap();
        let traffic = state.traffic.get(&(verb.to_owned(), plural.to_owned()));
        traffic.copied().unwrap_or_default()
    }

    /// Waits until a condition holds.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !holds(self) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        waited.unwrap_or_else(|_| panic!("still not: {what}"));
    }

    fn write(&self, id: Id, mut object: Value) -> Value {
        let mut state = self.state.lock().unwrap();
        let version = state.log.len() + 1;
        let before = state.objects.get(&id);
        let event = before.map_or("ADDED", |_| "MODIFIED");
        let restores = state.restores;
        let uid = before.map_or_else(
            || format!("uid-{version}-{restores}").into(),
            |before| before["metadata"]["uid"].clone(),
        );
        let created = before.map_or_else(
            || now().into(),
            |before| before["metadata"]["creationTimestamp"].clone(),
        );
        let spec = object["spec"].clone();
        let metadata = object["metadata"].as_object_mut().unwrap();
        metadata.insert("resourceVersion".to_owned(), version.to_string().into());
        let default = |metadata: &mut Map<String, Value>, key: &str, value: Value| {
            metadata.entry(key).or_insert(value);
        };
        default(metadata, "uid", uid);
        // As the UID, it does not change: a change of a Node's metadata counts.
        default(metadata, "creationTimestamp", created);
        if id.0 == "policyplugins" {
            let generation = before.map_or(0, |it| it["metadata"]["generation"].as_i64().unwrap());
            let changed = before.is_none_or(|before| before["spec"] != spec);
            let generation = generation + i64::from(changed);
            metadata.insert("generation".to_owned(), generation.into());
        }
        state.objects.insert(id.clone(), object.clone());
        state.log.push((id, event, object.clone()));
        drop(state);
        self.changed.send_replace(version);
        object
    }

    /// Deletes an object.
    pub(crate) fn delete(&self, plural: &str, namespace: &str, name: &str) {
        let id = (plural.to_owned(), namespace.to_owned(), name.to_owned());
        let _writing = self.writing.lock().unwrap();
        assert!(self.remove(&id), "{id:?} is not there");
    }

    fn remove(&self, id: &Id) -> bool {
        let mut state = self.state.lock().unwrap();
        let Some(mut object) = state.objects.remove(id) else {
            return false;
        };
        let version = state.log.len() + 1;
        object["metadata"]["resourceVersion"] = version.to_string().into();
        state.log.push((id.clone(), "DELETED", object));
        drop(state);
        self.changed.send_replace(version);
        true
    }
}

/// An answer whose connection is lost.
fn lost(error: std::io::Error) -> Response {
    let body = futures_util::stream::iter([Err::<axum::body::Bytes, _>(error)]);
    Response::new(Body::from_stream(body))
}
