//! The calls of clients.

use std::io;

use axum::{body::Body, extract::Request, response::Response};
use http::request::Parts;
use serde_json::{Value, json};

use super::{
    Act, Cluster, Id, Lost, When,
    answers::{apply_replicas, not_found, page_not_found, prune, shown},
    kinds::KINDS,
    place::Place,
};
use crate::stub::{answer, status};

/// A call.
struct Call {
    verb: &'static str,
    place: Place,
    body: Value,
    /// Whether only the metadata is answered.
    partial: bool,
    is_apply: bool,
}

impl Call {
    fn of(parts: &Parts, place: Place, body: Value) -> Self {
        let header = |name: &str| parts.headers.get(name)?.to_str().ok();
        let accept = header("accept").unwrap_or_default();
        Self {
            verb: match (parts.method.as_str(), &place.name) {
                ("GET", Some(_)) => "get",
                ("GET", None) if place.query.contains_key("watch") => "watch",
                ("GET", None) => "list",
                ("POST", _) => "create",
                ("PATCH", _) => "patch",
                ("PUT", _) => "update",
                _ => "delete",
            },
            place,
            body,
            partial: accept.contains("as=PartialObjectMetadata"),
            is_apply: header("content-type") == Some("application/apply-patch+yaml"),
        }
    }
}

fn lost() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

/// The answer to a call that is not executed.
fn refused(act: Act, body: &Value) -> Option<Response> {
    Some(match act {
        Act::Refuse => status(503, "ServiceUnavailable"),
        Act::Forbid => status(403, "Forbidden"),
        Act::Quote => status(403, &format!("denied the request: {body}")),
        Act::NotFound(message) => not_found(message),
        Act::OverQuota => status(403, "exceeded quota: objects"),
        Act::Answer(code) => failure(code),
        _ => return None,
    })
}

/// An error that does not depend on the call.
fn failure(code: u16) -> Response {
    let reason = match code {
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        _ => "Timeout",
    };
    let mut failure = status(code, reason);
    if code == 429 {
        let after = http::HeaderValue::from_static("1");
        failure.headers_mut().insert("retry-after", after);
    }
    failure
}

/// Half of an answer.
async fn torn(answer: Response) -> Response {
    let (parts, body) = answer.into_parts();
    let body = axum::body::to_bytes(body, 64 << 20).await.unwrap();
    let half = body.slice(..body.len() / 2);
    let chunks = futures_util::stream::iter([Ok(half), Err(lost())]);
    Response::from_parts(parts, Body::from_stream(chunks))
}

impl Cluster {
    /// Answers a call.
    ///
    /// # Errors
    /// The connection is lost.
    pub(crate) async fn answer(&self, request: Request) -> io::Result<Response> {
        let (parts, body) = request.into_parts();
        let body = axum::body::to_bytes(body, 64 << 20).await.unwrap();
        let body = serde_json::from_slice(&body).unwrap_or_default();
        let Some(place) = Place::of(&parts.uri) else {
            let asked = ("get", "discovery");
            let act = self.ask(When::Before, asked, &Value::Null).await;
            let discovered = self.discovery(parts.uri.path());
            return match act {
                Act::Cut | Act::Then(Lost::Cut | Lost::Tear) => Err(lost()),
                act => Ok(refused(act, &Value::Null).unwrap_or(discovered)),
            };
        };
        if !self.serves(&place.plural) {
            return Ok(page_not_found());
        }
        let call = Call::of(&parts, place, body);
        let (verb, plural) = (call.verb, call.place.plural.clone());
        let asked = (verb, &*plural);
        let act = self.ask(When::Before, asked, &call.body).await;
        if let Some(refused) = refused(act, &call.body) {
            return Ok(refused);
        }
        let lost_answer = match act {
            Act::Cut => return Err(lost()),
            Act::Then(lost) => Some(lost),
            _ => None,
        };
        let body = call.body.clone();
        let answer = self.execute(call);
        let done = self.ask(When::Done, asked, &body).await;
        if done == Act::Refuse {
            return Ok(status(503, "ServiceUnavailable"));
        }
        match lost_answer {
            None => Ok(answer),
            Some(Lost::Answer(code)) => Ok(failure(code)),
            Some(Lost::Hang) => std::future::pending().await,
            Some(Lost::Cut) => Err(lost()),
            Some(Lost::Tear) => Ok(torn(answer).await),
        }
    }

    /// Executes a call, and returns its answer.
    fn execute(&self, call: Call) -> Response {
        let Call {
            verb,
            place,
            body,
            partial,
            is_apply,
        } = call;
        let plural = place.plural.clone();
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
                _ => self.delete_if(&place.id(place.name.as_deref().unwrap()), &body),
            }
        };
        self.note(verb, &plural, value.to_string().len());
        match code {
            404 => status(404, "NotFound"),
            409 if verb == "create" => status(409, "AlreadyExists"),
            409 => status(409, "Conflict"),
            code => answer(code, &value),
        }
    }

    /// Deletes an object, if it is the one that the preconditions name.
    fn delete_if(&self, id: &Id, options: &Value) -> (u16, Value) {
        let wanted = &options["preconditions"];
        let found = self.state.lock().unwrap().objects.get(id).cloned();
        let differs = |found: &Value| {
            let differs =
                |key: &&str| !wanted[*key].is_null() && wanted[*key] != found["metadata"][*key];
            ["uid", "resourceVersion"].iter().any(differs)
        };
        if found.as_ref().is_some_and(differs) {
            return (409, Value::Null);
        }
        match self.remove(id) {
            true => (
                200,
                json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}),
            ),
            false => (404, Value::Null),
        }
    }

    pub(super) fn note(&self, verb: &str, plural: &str, bytes: usize) {
        let mut state = self.state.lock().unwrap();
        let traffic = state
            .traffic
            .entry((verb.to_owned(), plural.to_owned()))
            .or_default();
        traffic.calls += 1;
        traffic.bytes += bytes as u64;
    }

    pub(super) fn list(&self, place: &Place, partial: bool) -> Value {
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
            if !patch["metadata"]["uid"].is_null() {
                return (409, Value::Null);
            }
            // A subresource is never created.
            return if is_apply && patch["status"].is_null() {
                let applied = (id, place.query["fieldManager"].clone(), true);
                let mut state = self.state.lock().unwrap();
                state.applied.insert(applied, patch.clone());
                drop(state);
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
        let before = object.clone();
        if is_apply {
            // What was applied before and is not applied again is removed.
            let manager = place.query["fieldManager"].clone();
            let applied = (id.clone(), manager, patch["status"].is_null());
            let mut state = self.state.lock().unwrap();
            let last = state.applied.insert(applied, patch.clone());
            prune(&mut object, &last.unwrap_or_default(), patch);
        }
        let applied = patch["status"]["replicas"].as_array().filter(|_| is_apply);
        match applied {
            Some(entries) => apply_replicas(&mut object, entries, &place.query["fieldManager"]),
            None => json_patch::merge(&mut object, patch),
        }
        let admission = self.state.lock().unwrap().admission;
        if let Some(refusal) = admission.and_then(|admit| admit(&before, &object)) {
            return (422, refusal);
        }
        object["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
        if object == before {
            return (200, object);
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
}
