//! Differences that only Kueue sees, because it contains an earlier release of the reference, or does not know a policy.

use serde_json::Value;

use super::frameworks::named;
use crate::seen::Seen;

/// A request of the runtime's container that the TrainJob's override does not mention.
pub(super) fn override_replaces(seen: &Seen<'_>) -> bool {
    let given = &seen.trainer()["resourcesPerNode"];
    let resource = in_last_brackets(seen.path());
    let is_given = named(given).contains(&("requests", resource));
    seen.needs(".requests[") && given.is_object() && !is_given
}

/// A limit of a pod as a whole, which the API server makes a request.
pub(super) fn pod_limits(seen: &Seen<'_>) -> bool {
    let resource = in_last_brackets(seen.path());
    let limits = |pod: &Value| pod["resources"]["limits"].get(resource).is_some();
    requests_less(seen) && seen.pods().any(limits)
}

/// A limit of a container, which the API server makes a request before a LimitRange's default.
pub(super) fn limit_range(seen: &Seen<'_>) -> bool {
    let resource = in_last_brackets(seen.path());
    let is_limited = |container: &Value| container["resources"]["limits"].get(resource).is_some();
    let has_default = |object: &Value| {
        let items = object["spec"]["limits"].as_array().into_iter().flatten();
        let fields = ["min", "max", "default", "defaultRequest"];
        let sets = |item: &Value| {
            fields
                .iter()
                .any(|field| item[*field].get(resource).is_some())
        };
        object["kind"] == "LimitRange" && items.into_iter().any(sets)
    };
    // The default may be more than the limit.
    let mut containers = seen.pods().flat_map(|pod| {
        let lists = ["initContainers", "containers"].into_iter();
        lists.flat_map(|list| pod[list].as_array().into_iter().flatten())
    });
    seen.needs(".requests[") && containers.any(is_limited) && seen.documents.iter().any(has_default)
}

/// Returns whether Kueue counts smaller requests than Trainyard.
fn requests_less(seen: &Seen<'_>) -> bool {
    let amount = |side: Option<&Value>| side.and_then(Value::as_i64).unwrap_or_default();
    seen.needs(".requests[") && amount(seen.theirs()) < amount(seen.ours())
}

/// A claim for the pods of each node, from the TrainJob's field or an annotation.
pub(super) fn claims_per_node(seen: &Seen<'_>) -> bool {
    let annotated = [seen.job, seen.runtime].map(|object| {
        let annotation = &object["metadata"]["annotations"][CLAIMS_PER_NODE];
        serde_json::from_str(annotation.as_str().unwrap_or_default()).unwrap_or_default()
    });
    let lists = [&seen.trainer()["resourceClaimsPerNode"]].into_iter();
    let mut claims = lists
        .chain(&annotated)
        .flat_map(|list| list.as_array().into_iter().flatten());
    let name = in_last_brackets(seen.path());
    seen.needs(".claims[") && claims.any(|claim| claim["name"] == name)
}

const CLAIMS_PER_NODE: &str = "trainyard.dev/resource-claims-per-node";

/// A claim of the runtime that the TrainJob excludes.
pub(super) fn claims_excluded(seen: &Seen<'_>) -> bool {
    let annotation = &seen.job["metadata"]["annotations"]["trainyard.dev/exclude-resource-claims"];
    let mut excluded = annotation.as_str().unwrap_or_default().split(',');
    let name = in_last_brackets(seen.path());
    seen.needs(".claims[") && seen.ours().is_none() && excluded.any(|claim| claim.trim() == name)
}

/// A claim of devices whose number Kueue does not compute.
pub(super) fn claims_without_quota(seen: &Seen<'_>) -> bool {
    let unsupported = [
        "AdminAccess is not supported",
        "AllocationMode 'All' is not supported",
        "FirstAvailable device selection is not supported",
    ];
    seen.their_refusal().is_some_and(|refusal| {
        refusal.by == "kueue" && unsupported.iter().any(|text| refusal.error.contains(text))
    })
}

/// A command that Kueue changes in the TrainJob that it updates.
pub(super) fn immutable_trainer(seen: &Seen<'_>) -> bool {
    seen.their_refusal().is_some_and(|refusal| {
        refusal.by == "kueue" && refusal.error.contains("spec.trainer, which is immutable")
    })
}

/// Returns the key at the end of a path, such as `cpu` of `requests[cpu]`.
fn in_last_brackets(path: &str) -> &str {
    let path = path.trim_end_matches(']');
    path.rsplit_once('[').map_or("", |(_, key)| key)
}
