//! A stub of an API server that stores objects: enough to run a whole controller, and to count its calls.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    response::Response,
};
use futures_util::{FutureExt as _, stream};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::{answer, serve, status};

/// Kind, plural, `apiVersion`, and whether its objects have namespaces.
const KINDS: [(&str, &str, &str, bool); 23] = [
    (
        "TrainJob",
        "trainjobs",
        "trainer.kubeflow.org/v1alpha1",
        true,
    ),
    (
        "TrainingRuntime",
        "trainingruntimes",
        "trainer.kubeflow.org/v1alpha1",
        true,
    ),
    (
        "ClusterTrainingRuntime",
        "clustertrainingruntimes",
        "trainer.kubeflow.org/v1alpha1",
        false,
    ),
    ("JobSet", "jobsets", "jobset.x-k8s.io/v1alpha2", true),
    (
        "PolicyPlugin",
        "policyplugins",
        "trainyard.dev/v1alpha1",
        false,
    ),
    (
        "PluginRevision",
        "pluginrevisions",
        "trainyard.dev/v1alpha1",
        false,
    ),
    ("Lease", "leases", "coordination.k8s.io/v1", true),
    ("Job", "jobs", "batch/v1", true),
    ("ConfigMap", "configmaps", "v1", true),
    ("Secret", "secrets", "v1", true),
    ("Event", "events", "v1", true),
    ("Node", "nodes", "v1", false),
    ("Pod", "pods", "v1", true),
    // Its plural does not follow from the kind.
    ("Queue", "kai-queues", "scheduling.run.ai/v2", false),
    (
        "TokenReview",
        "tokenreviews",
        "authentication.k8s.io/v1",
        false,
    ),
    (
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        "v1",
        true,
    ),
    (
        "PodGroup",
        "podgroups",
        "scheduling.x-k8s.io/v1alpha1",
        true,
    ),
    (
        "ResourceClaim",
        "resourceclaims",
        "resource.k8s.io/v1",
        true,
    ),
    (
        "ResourceClaimTemplate",
        "resourceclaimtemplates",
        "resource.k8s.io/v1",
        true,
    ),
    (
        "PriorityClass",
        "priorityclasses",
        "scheduling.k8s.io/v1",
        false,
    ),
    ("RuntimeClass", "runtimeclasses", "node.k8s.io/v1", false),
    (
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        "admissionregistration.k8s.io/v1",
        false,
    ),
    (
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        "admissionregistration.k8s.io/v1",
        false,
    ),
];

/// How long a test waits for an expected state.
const PATIENCE: Duration = Duration::from_secs(600);

/// Plural, namespace and name.
type Id = (String, String, String);

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

/// When a rule is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// Before the call is executed.
    Before,
    /// After the call is executed, and before it is answered.
    Done,
}

/// How a call is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    GoOn,
    /// Waits until the watches have delivered all changes, and the controller had time to act on them.
    Pause,
    /// It is never answered.
    Hang,
    /// It is answered with 503, and not executed, unless it was executed already.
    Refuse,
    /// It is not executed, because the user has no permission.
    Forbid,
    /// It is not executed, and the answer quotes its body, as some webhooks do.
    Quote,
    /// It is not executed, and answered with 404 and this message.
    NotFound(&'static str),
    /// It is not executed, because a quota is exceeded; quotas are checked before the object is looked up.
    OverQuota,
}

/// How a call with this verb, plural and body is handled.
type Rule = Arc<dyn Fn(&Cluster, When, (&str, &str), &Value) -> Act + Send + Sync>;

/// The API server.
#[derive(Clone)]
pub(crate) struct Cluster {
    state: Arc<Mutex<State>>,
    rule: Arc<Mutex<Option<Rule>>>,
    /// Held by a write, which compares versions first.
    writing: Arc<Mutex<()>>,
    changed: watch::Sender<usize>,
}

/// The objects that a path addresses.
struct Place {
    plural: String,
    namespace: Option<String>,
    name: Option<String>,
    query: BTreeMap<String, String>,
}

impl Place {
    fn of(uri: &http::Uri) -> Option<Self> {
        let mut parts = uri
            .path()
            .split('/')
            .filter(|part| !part.is_empty())
            .peekable();
        let versions = if parts.next()? == "api" { 1 } else { 2 };
        let mut parts = parts.skip(versions).peekable();
        let namespace = if parts.peek() == Some(&"namespaces") {
            parts.next();
            parts.next().map(str::to_owned)
        } else {
            None
        };
        let query = uri.query().unwrap_or_default().split('&');
        let query = query.filter_map(|pair| pair.split_once('='));
        Some(Self {
            plural: parts.next()?.to_owned(),
            namespace,
            name: parts.next().map(str::to_owned),
            query: query
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        })
    }

    fn has(&self, (plural, namespace, name): &Id) -> bool {
        let selector = self.query.get("fieldSelector");
        let wanted = selector.and_then(|selector| selector.strip_prefix("metadata.name%3D"));
        *plural == self.plural
            && self
                .namespace
                .as_ref()
                .is_none_or(|wanted| wanted == namespace)
            && wanted.is_none_or(|wanted| wanted == name)
    }

    /// Whether an Event is about the object that the selector names.
    fn is_about(&self, event: &Value) -> bool {
        let selector = self.query.get("fieldSelector").map(String::as_str);
        let uid = selector.and_then(|it| it.strip_prefix("involvedObject.uid%3D"));
        let uid = uid.and_then(|uid| uid.split("%2C").next());
        uid.is_none_or(|uid| event["involvedObject"]["uid"] == uid)
    }

    fn id(&self, name: &str) -> Id {
        let namespace = self.namespace.clone().unwrap_or_default();
        (self.plural.clone(), namespace, name.to_owned())
    }
}

impl Cluster {
    pub(crate) fn new() -> Self {
        Self {
            state: Arc::default(),
            rule: Arc::default(),
            writing: Arc::default(),
            changed: watch::Sender::new(0),
        }
    }

    /// Serves on a free port for as long as the test lasts.
    pub(crate) async fn serve(&self) -> kube::Config {
        let cluster = self.clone();
        serve(move |request| {
            let cluster = cluster.clone();
            async move { cluster.answer(request).await }.boxed()
        })
        .await
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

    /// Accepts a token for this audience from now on.
    pub(crate) fn accept(&self, token: &str, audience: &str, user: Value) {
        let accepted = (audience.to_owned(), user);
        let mut state = self.state.lock().unwrap();
        state.tokens.insert(token.to_owned(), accepted);
    }

    /// Accepts a token no longer, as if its pod were deleted.
    pub(crate) fn refuse(&self, token: &str) {
        self.state.lock().unwrap().tokens.remove(token);
    }

    /// Answers a TokenReview.
    fn review(&self, mut review: Value) -> Value {
        let state = self.state.lock().unwrap();
        let accepted = state.tokens.get(review["spec"]["token"].as_str().unwrap());
        review["status"] = match accepted {
            Some((audience, user)) if review["spec"]["audiences"] == json!([audience]) => {
                json!({"authenticated": true, "user": user, "audiences": [audience]})
            }
            _ => json!({"user": {}, "error": "[invalid bearer token]"}),
        };
        review
    }

    /// Takes the permissions for a resource away, as SelfSubjectAccessReviews show.
    pub(crate) fn deny(&self, resource: &'static str) {
        self.state.lock().unwrap().denied.insert(resource);
    }

    /// Gives the permissions for a resource back.
    pub(crate) fn permit(&self, resource: &'static str) {
        self.state.lock().unwrap().denied.remove(resource);
    }

    /// Answers a SelfSubjectAccessReview.
    fn review_access(&self, mut review: Value) -> Value {
        let state = self.state.lock().unwrap();
        let resource = review["spec"]["resourceAttributes"]["resource"].as_str();
        let is_denied = state.denied.contains(resource.unwrap());
        review["status"] = json!({"allowed": !is_denied});
        review
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
        self.edit(plural, (namespace, name), |object| merge(object, patch));
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

    async fn answer(&self, request: Request) -> Response {
        let place = Place::of(request.uri());
        let partial = request.headers().get("accept").is_some_and(|accept| {
            accept
                .to_str()
                .unwrap()
                .contains("as=PartialObjectMetadata")
        });
        let method = request.method().clone();
        let Some(place) = place else {
            return self.discovery(request.uri().path());
        };
        if !self.serves(&place.plural) {
            return page_not_found();
        }
        let is_apply = request
            .headers()
            .get("content-type")
            .is_some_and(|of| of == "application/apply-patch+yaml");
        let body = axum::body::to_bytes(request.into_body(), 64 << 20)
            .await
            .unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let is_watch = place.query.contains_key("watch");
        let verb = match (method.as_str(), &place.name) {
            ("GET", Some(_)) => "get",
            ("GET", None) if is_watch => "watch",
            ("GET", None) => "list",
            ("POST", _) => "create",
            ("PATCH", _) => "patch",
            ("PUT", _) => "update",
            _ => "delete",
        };
        match self.ask(When::Before, (verb, &place.plural), &body).await {
            Act::Refuse => return status(503, "ServiceUnavailable"),
            Act::Forbid => return status(403, "Forbidden"),
            Act::Quote => return status(403, &format!("denied the request: {body}")),
            Act::NotFound(message) => return not_found(message),
            Act::OverQuota => return status(403, "exceeded quota: objects"),
            Act::GoOn | Act::Pause | Act::Hang => {}
        }
        let traffic = body.clone();
        let (code, value) = {
            let _writing = self.writing.lock().unwrap();
            match verb {
                "watch" => return self.watch(place, partial),
                "list" => (200, self.list(&place, partial)),
                "get" => self.found(&place, partial),
                "create" if place.plural == "tokenreviews" => (201, self.review(body)),
                "create" if place.plural == "selfsubjectaccessreviews" => {
                    (201, self.review_access(body))
                }
                "create" if place.query.contains_key("dryRun") => (201, body),
                "create" => {
                    let (code, object) = self.create(&place, body);
                    (code, shown(&object, partial))
                }
                "patch" => self.patch(&place, &body, is_apply),
                "update" => self.update(&place, body),
                _ => match self.remove(&place.id(place.name.as_deref().unwrap())) {
                    true => (
                        200,
                        json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}),
                    ),
                    false => (404, Value::Null),
                },
            }
        };
        let done = self.ask(When::Done, (verb, &place.plural), &traffic).await;
        if done == Act::Refuse {
            return status(503, "ServiceUnavailable");
        }
        let text = value.to_string();
        self.note(verb, &place.plural, text.len());
        match code {
            404 => status(404, "NotFound"),
            409 => status(
                409,
                if verb == "create" {
                    "AlreadyExists"
                } else {
                    "Conflict"
                },
            ),
            code => answer(code, &value),
        }
    }

    fn note(&self, verb: &str, plural: &str, bytes: usize) {
        let mut state = self.state.lock().unwrap();
        let traffic = state
            .traffic
            .entry((verb.to_owned(), plural.to_owned()))
            .or_default();
        traffic.calls += 1;
        traffic.bytes += bytes as u64;
    }

    fn list(&self, place: &Place, partial: bool) -> Value {
        let state = self.state.lock().unwrap();
        let items = state.objects.iter().filter(|(id, _)| place.has(id));
        let items = items.filter(|(_, object)| place.is_about(object));
        let items: Vec<_> = items.map(|(_, object)| shown(object, partial)).collect();
        let (kind, _, version, _) = KINDS
            .iter()
            .find(|(_, of, ..)| *of == place.plural)
            .unwrap();
        json!({
            "kind": format!("{kind}List"), "apiVersion": version,
            "metadata": {"resourceVersion": state.log.len().to_string()},
            "items": items,
        })
    }

    fn found(&self, place: &Place, partial: bool) -> (u16, Value) {
        let state = self.state.lock().unwrap();
        let id = place.id(place.name.as_deref().unwrap());
        match state.objects.get(&id) {
            Some(object) => (200, shown(object, partial)),
            None => (404, Value::Null),
        }
    }

    fn create(&self, place: &Place, mut object: Value) -> (u16, Value) {
        let metadata = object["metadata"].as_object_mut().unwrap();
        if let Some(namespace) = &place.namespace {
            metadata.insert("namespace".to_owned(), namespace.as_str().into());
        }
        let name = metadata["name"].as_str().unwrap().to_owned();
        let id = place.id(&name);
        if self.state.lock().unwrap().objects.contains_key(&id) {
            return (409, Value::Null);
        }
        (201, self.write(id, object))
    }

    fn patch(&self, place: &Place, patch: &Value, is_apply: bool) -> (u16, Value) {
        let id = place.id(place.name.as_deref().unwrap());
        let found = self.state.lock().unwrap().objects.get(&id).cloned();
        let Some(mut object) = found else {
            // A subresource is never created.
            return if is_apply && patch["status"].is_null() {
                self.create(place, patch.clone())
            } else {
                (404, Value::Null)
            };
        };
        for key in ["uid", "resourceVersion"] {
            let wanted = &patch["metadata"][key];
            if !wanted.is_null() && *wanted != object["metadata"][key] {
                return (409, Value::Null);
            }
        }
        if is_apply && patch["status"]["trainerStatus"].is_object() {
            // What was applied before and is not applied again is removed.
            object["status"]["trainerStatus"] = json!({});
        }
        let applied = patch["status"]["replicas"].as_array().filter(|_| is_apply);
        match applied {
            Some(entries) => apply_replicas(&mut object, entries, &place.query["fieldManager"]),
            None => merge(&mut object, patch),
        }
        (200, self.write(id, object))
    }

    fn update(&self, place: &Place, object: Value) -> (u16, Value) {
        let id = place.id(place.name.as_deref().unwrap());
        let found = self.state.lock().unwrap().objects.get(&id).cloned();
        match found {
            None => (404, Value::Null),
            Some(found)
                if object["metadata"]["resourceVersion"]
                    != found["metadata"]["resourceVersion"] =>
            {
                (409, Value::Null)
            }
            Some(_) => (200, self.write(id, object)),
        }
    }

    fn discovery(&self, path: &str) -> Response {
        let version = path
            .trim_start_matches("/apis/")
            .trim_start_matches("/api/");
        let kinds = KINDS
            .iter()
            .filter(|(_, plural, of, _)| *of == version && self.serves(plural));
        let resources: Vec<_> = kinds
            .map(|(kind, plural, _, namespaced)| {
                json!({"name": plural, "singularName": "", "namespaced": namespaced, "kind": kind,
                "verbs": ["create", "delete", "get", "list", "patch", "watch"]})
            })
            .collect();
        if resources.is_empty() {
            return page_not_found();
        }
        answer(
            200,
            &json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}),
        )
    }

    /// The changes since the requested version, and all later ones until the requested time is over.
    fn watch(&self, place: Place, partial: bool) -> Response {
        self.note("watch", &place.plural, 0);
        let version = place
            .query
            .get("resourceVersion")
            .and_then(|text| text.parse().ok());
        let seconds = place.query.get("timeoutSeconds");
        let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(3_600);
        let end = tokio::time::Instant::now() + Duration::from_secs(seconds);
        let restores = self.state.lock().unwrap().restores;
        let start = (
            self.clone(),
            self.changed.subscribe(),
            place,
            version.unwrap_or(0),
        );
        let events = stream::unfold(
            start,
            move |(cluster, mut changed, place, mut at): (Self, _, _, usize)| async move {
                loop {
                    let mut lines = String::new();
                    {
                        let state = cluster.state.lock().unwrap();
                        if state.restores != restores {
                            let lost = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                            return Some((Err(lost), (cluster.clone(), changed, place, at)));
                        }
                        // The API server accepts a version that it has not reached, and is silent until then.
                        for (id, event, object) in state.log.get(at..).unwrap_or_default() {
                            if place.has(id) {
                                let line = json!({"type": event, "object": shown(object, partial)});
                                lines.push_str(&line.to_string());
                                lines.push('\n');
                            }
                        }
                        at = at.max(state.log.len());
                    }
                    if !lines.is_empty() {
                        cluster.note("event", &place.plural, lines.len());
                        let lines = Ok(Bytes::from(lines));
                        return Some((lines, (cluster, changed, place, at)));
                    }
                    let next = tokio::time::timeout_at(end, changed.changed());
                    next.await.ok()?.ok()?;
                }
            },
        );
        Response::builder()
            .header("content-type", "application/json")
            .body(Body::from_stream(events))
            .unwrap()
    }
}

/// Applies the entries of a replica, which is named as its manager.
fn apply_replicas(object: &mut Value, entries: &[Value], manager: &str) {
    let status = object["status"].as_object_mut().unwrap();
    let known = status.entry("replicas").or_insert(json!([]));
    let known = known.as_array_mut().unwrap();
    known.retain(|entry| entry["pod"] != manager);
    known.extend(entries.iter().cloned());
}

/// The current time, as an API server writes it.
fn now() -> String {
    let now = k8s_openapi::jiff::Timestamp::now();
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The object as it is answered.
fn shown(object: &Value, partial: bool) -> Value {
    if partial {
        json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"]})
    } else {
        object.clone()
    }
}

/// A 404 about an object.
fn not_found(message: &str) -> Response {
    answer(
        404,
        &json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "message": message}),
    )
}

/// The answer of an API server to a path that it does not serve.
fn page_not_found() -> Response {
    Response::builder()
        .status(404)
        .header("content-type", "text/plain; charset=utf-8")
        .body("404 page not found\n".into())
        .unwrap()
}

fn merge(object: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    let members = object.as_object_mut().unwrap();
    for (key, value) in patch {
        if value.is_null() {
            members.remove(key);
        } else {
            merge(members.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}
