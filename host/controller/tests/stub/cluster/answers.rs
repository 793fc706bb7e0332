//! Objects as they are changed and answered.

use axum::response::Response;
use serde_json::{Map, Value, json};

use crate::stub::answer;

/// Applies the entries of a replica, which is named as its manager.
pub(super) fn apply_replicas(object: &mut Value, entries: &[Value], manager: &str) {
    let status = object["status"].as_object_mut().unwrap();
    let known = status.entry("replicas").or_insert(json!([]));
    let known = known.as_array_mut().unwrap();
    known.retain(|entry| entry["pod"] != manager);
    known.extend(entries.iter().cloned());
}

/// The current time, as an API server writes it.
pub(super) fn now() -> String {
    let now = k8s_openapi::jiff::Timestamp::now();
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The object as it is answered.
pub(super) fn shown(object: &Value, partial: bool) -> Value {
    if partial {
        json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"]})
    } else {
        object.clone()
    }
}

/// A 404 about an object.
pub(super) fn not_found(message: &str) -> Response {
    answer(
        404,
        &json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "message": message}),
    )
}

/// The answer of an API server to a path that it does not serve.
pub(super) fn page_not_found() -> Response {
    Response::builder()
        .status(404)
        .header("content-type", "text/plain; charset=utf-8")
        .body("404 page not found\n".into())
        .unwrap()
}

/// Removes what a manager has applied before and does not apply any longer. Lists are replaced as a whole.
pub(super) fn prune(object: &mut Value, before: &Value, now: &Value) {
    let (Some(object), Some(before)) = (object.as_object_mut(), before.as_object()) else {
        return;
    };
    for (key, before) in before {
        let (Some(found), now) = (object.get_mut(key), &now[key]) else {
            continue;
        };
        if before.is_object() && found.is_object() {
            prune(found, before, now);
            if now.is_null() && found.as_object().is_some_and(Map::is_empty) {
                object.remove(key);
            }
        } else if now.is_null() {
            object.remove(key);
        }
    }
}
