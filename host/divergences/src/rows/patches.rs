//! Differences of runtime patches.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    answer::Refusal,
    expected::{nothing, order},
    seen::Seen,
};

/// Returns whether only Trainyard refuses a runtime patch, with this message.
fn refuses_patch(seen: &Seen<'_>, words: &str) -> bool {
    seen.we_refuse("spec.runtimePatches[")
        && seen
            .our_refusal()
            .is_some_and(|refusal| refusal.error.contains(words))
}

pub(super) fn patch_finds_nothing(seen: &Seen<'_>) -> bool {
    let added = seen.theirs().is_some() && seen.ours().is_none() && seen.patches().next().is_some();
    let whole = |list: &str| {
        let before = seen.path().strip_suffix(']');
        let before = before.and_then(|path| path.rsplit_once('['));
        before.is_some_and(|(before, _)| before.ends_with(list))
    };
    let item = ["replicatedJobs", "containers", "initContainers"]
        .into_iter()
        .any(whole);
    let order = seen.path().ends_with(".order") && !is_reordered(seen);
    added && item
        || order && seen.patches().next().is_some()
        || refuses_patch(seen, "the runtime") && refuses_patch(seen, " has no ")
        || misses_patched_container(seen)
        || counts_patched_container(seen)
}

/// Whether Kueue counts the default request of a LimitRange for a container that only a patch has.
fn counts_patched_container(seen: &Seen<'_>) -> bool {
    let mut documents = seen.documents.iter();
    let has_defaults = documents.any(|document| document["kind"] == "LimitRange");
    let names = |job: &Value| -> BTreeSet<String> {
        let pod = &job["template"]["spec"]["template"]["spec"];
        let lists = ["containers", "initContainers"].into_iter();
        lists
            .flat_map(|list| pod[list].as_array().into_iter().flatten())
            .map(|container| container["name"].to_string())
            .collect()
    };
    let known: BTreeSet<_> = seen
        .replicated_jobs()
        .filter(|job| seen.is_of(job))
        .flat_map(names)
        .collect();
    let mut patched = seen.patches().flat_map(|patch| {
        let jobs = &patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"];
        jobs.as_array().into_iter().flatten()
    });
    seen.needs(".requests[")
        && has_defaults
        && patched.any(|job| seen.is_of(job) && !names(job).is_subset(&known))
}

/// Whether `envInjection` names a container that only a patch has, so that it was not added.
fn misses_patched_container(seen: &Seen<'_>) -> bool {
    let refusal = seen.our_refusal();
    let is_missing = |container: &Value| {
        let name = container["name"].as_str().unwrap_or_default();
        let message = format!(" has no container `{name}`");
        refusal.is_some_and(|refusal| refusal.error.contains(&message))
    };
    let mut patched = seen.patched_pods().flat_map(|pod| {
        let lists = ["containers", "initContainers"].into_iter();
        lists.flat_map(|list| pod[list].as_array().into_iter().flatten())
    });
    seen.we_refuse("spec.mlPolicy.torch.envInjection.") && patched.any(is_missing)
}

/// Returns whether a list has the same members in another order.
fn is_reordered(seen: &Seen<'_>) -> bool {
    let members = |list: Option<&Value>| -> BTreeSet<String> {
        list.and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(Value::to_string)
            .collect()
    };
    members(seen.theirs()) == members(seen.ours())
}

pub(super) fn two_sources(seen: &Seen<'_>) -> bool {
    let path = seen.path();
    let kept = seen.theirs().is_some() && seen.ours().is_none();
    kept && (path.contains(".volumes[") || path.contains(".env["))
        && seen.patches().next().is_some()
}

pub(super) fn ambiguous_patch(seen: &Seen<'_>) -> bool {
    refuses_patch(seen, "set only one of them") || refuses_patch(seen, "duplicate `")
}

pub(super) fn patch_env(seen: &Seen<'_>) -> bool {
    let patched = seen
        .patched_pods()
        .flat_map(|pod| pod["containers"].as_array().into_iter().flatten());
    let with_env = patched.filter(|container| container["env"].is_array());
    let own = ["node", "dataset-initializer", "model-initializer"];
    let refused = |refusal: &Refusal| refusal.error.contains("must not have envs for the");
    seen.their_refusal().is_some_and(refused)
        && with_env
            .into_iter()
            .any(|container| own.iter().any(|name| container["name"] == *name))
}

pub(super) fn patch_claims(seen: &Seen<'_>) -> bool {
    let given = seen
        .patched_pods()
        .any(|pod| pod["resourceClaims"].is_array());
    let of_pod = seen.path().contains(".resourceClaims[") || seen.needs(".claims[");
    given && (of_pod || seen.they_drop("spec.runtimePatches["))
}

pub(super) fn init_order(seen: &Seen<'_>) -> bool {
    seen.path().ends_with("initContainers.order") && is_reordered(seen)
}

pub(super) fn read_only_false(seen: &Seen<'_>) -> bool {
    seen.path().ends_with(".readOnly") && seen.ours() == Some(&false.into())
}

pub(super) fn patch_mounts_nothing(seen: &Seen<'_>) -> bool {
    refuses_patch(seen, "mounts the volume")
}

pub(super) fn patch_breaks_runtime(seen: &Seen<'_>) -> bool {
    let has_two_trainers = |refusal: &Refusal| {
        refusal
            .error
            .starts_with("another replicated job also has the label")
    };
    refuses_patch(seen, "in the template with this patch")
        || seen.our_refusal().is_some_and(has_two_trainers)
}

/// Nothing is added for a patch of what the runtime does not have.
pub(super) fn nothing_added(seen: &Seen<'_>) -> bool {
    match seen.path().ends_with(".order") {
        true => order::is_of_runtime(seen),
        false => nothing(seen),
    }
}
