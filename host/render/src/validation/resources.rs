//! The resources of a container.

use std::cmp::Ordering;

use serde_json::{Map, Value};
use trainyard_api::StackPath;
use trainyard_model::{names::is_qualified_name, pod_requests::is_hugepages, quantity::Quantity};

use super::FieldProblems;
use crate::json::{get_at, items, object, text};

/// Checks the requests and limits of a container. Its resource claims are checked by the plugin `dra`.
pub(super) fn check(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    resources: &Value,
    _: &Map<String, Value>,
) {
    let limits = object(resources, "limits");
    let requests = object(resources, "requests");
    for (member, amounts) in [("limits", limits), ("requests", requests)] {
        let at = at.field(member);
        for (name, value) in amounts.into_iter().flatten() {
            amount(problems, &at.key(name), name, value);
        }
    }
    for (name, value) in requests.into_iter().flatten() {
        request(problems, at, name, value, limits);
    }
    let all = || limits.into_iter().chain(requests).flat_map(Map::keys);
    let has_base = all().any(|name| matches!(name.as_str(), "cpu" | "memory"));
    if !has_base && all().any(|name| is_hugepages(name)) {
        problems.add(at, "huge pages require `cpu` or `memory`; add one of them");
    }
}

/// Checks the requests and limits of a pod as a whole.
pub(super) fn of_pod(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    resources: &Value,
    pod: &Map<String, Value>,
) {
    if !items(resources, "claims").is_empty() {
        let message = "cannot be set for a pod as a whole; set them in a container";
        problems.add(&at.field("claims"), message);
    }
    for member in ["limits", "requests"] {
        let at = at.field(member);
        for name in object(resources, member).into_iter().flat_map(Map::keys) {
            if !matches!(name.as_str(), "cpu" | "memory") && !is_hugepages(name) {
                let message = "cannot be set for a pod as a whole, which can have only `cpu`, `memory` and huge pages; set it in a container";
                problems.add(&at.key(name), message);
            }
        }
    }
    check(problems, at, resources, pod);
    let containers = pod.get("containers").and_then(Value::as_array);
    let containers = containers.map(Vec::as_slice).unwrap_or_default();
    total(problems, at, resources, containers);
    for container in containers {
        limits_of(problems, at, resources, container);
    }
}

/// Checks that the containers together request at most what the pod does. Limits without a request do not count here. Init containers are
/// ignored, although the API server counts some of them.
fn total(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    resources: &Value,
    containers: &[Value],
) {
    let at = at.field("requests");
    for (name, value) in object(resources, "requests").into_iter().flatten() {
        let requested =
            |container| Quantity::read(get_at(container, &["resources", "requests", name])?);
        let total = containers.iter().filter_map(requested);
        let total = total.fold(Quantity::ZERO, Quantity::plus);
        let Some(request) = Quantity::read(value) else {
            continue;
        };
        if request.compare(total) == Ordering::Less {
            let message = format!(
                "is {request}, but the containers request {total} together; raise it, or lower theirs"
            );
            problems.add(&at.key(name), message);
        }
    }
}

/// Checks that a container has no higher limit than the pod.
fn limits_of(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    resources: &Value,
    container: &Value,
) {
    let at = at.field("limits");
    for (name, value) in object(resources, "limits").into_iter().flatten() {
        let own = get_at(container, &["resources", "limits", name]);
        let (Some(limit), Some(own)) = (Quantity::read(value), own.and_then(Quantity::read)) else {
            continue;
        };
        if limit.compare(own) == Ordering::Less {
            let container = text(container, "name");
            let message = format!(
                "is {limit}, but the container `{container}` has {own}; raise it, or lower the container's"
            );
            problems.add(&at.key(name), message);
        }
    }
}

/// Checks a name and its amount.
fn amount(problems: &mut FieldProblems, at: &StackPath<'_>, name: &str, value: &Value) {
    if !is_qualified_name(name) {
        problems.add(
            at,
            "is not the name of a resource; use one such as `cpu` or `nvidia.com/gpu`",
        );
        return;
    }
    let standard = ["cpu", "memory", "ephemeral-storage"];
    if !name.contains('/') && !standard.contains(&name) && !is_hugepages(name) {
        problems.add(
            at,
            "is not a resource of containers; use `cpu`, `memory`, `ephemeral-storage`, or the whole name of a device, such as `nvidia.com/gpu`",
        );
    }
    if name.contains('/') && !is_native(name) && !is_extended(name) {
        problems.add(
            at,
            "is not the name of an extended resource; use one such as `nvidia.com/gpu`",
        );
    }
    let Some(quantity) = Quantity::read(value) else {
        return;
    };
    if quantity.compare(Quantity::ZERO) == Ordering::Less {
        problems.add(at, format!("is {quantity}, but must not be negative"));
    }
    if is_extended(name) && quantity.milli().is_some_and(|milli| milli % 1000 != 0) {
        problems.add(
            at,
            format!("is {quantity}, but devices are counted in whole numbers"),
        );
    }
}

/// Checks that a request is not above its limit; one of devices or huge pages is equal to it.
fn request(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    name: &str,
    value: &Value,
    limits: Option<&Map<String, Value>>,
) {
    let may_differ = is_native(name) && !is_hugepages(name);
    let at = at.field("requests");
    let at = at.key(name);
    let Some(limit) = limits.and_then(|limits| limits.get(name)) else {
        if !may_differ {
            problems.add(
                &at,
                "is requested without a limit, but cannot be overcommitted; set the same amount in `limits`",
            );
        }
        return;
    };
    let (Some(request), Some(limit)) = (Quantity::read(value), Quantity::read(limit)) else {
        return;
    };
    let order = request.compare(limit);
    if !may_differ && order != Ordering::Equal {
        problems.add(
            &at,
            format!("is {request}, but the limit is {limit}, and it cannot be overcommitted; set both to the same amount"),
        );
    } else if order == Ordering::Greater {
        problems.add(
            &at,
            format!("is {request}, which is above the limit {limit}; raise the limit or lower the request"),
        );
    }
}

/// Whether Kubernetes itself defines the resource.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether it is a device or another countable resource. Quotas prefix its name with `requests.`, which has to fit.
fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && is_qualified_name(&format!("requests.{name}"))
}
