//! Differences of overrides and counts.

use serde_json::Value;

use super::frameworks::is_of_accelerators;
use crate::{
    answer::Refusal,
    seen::{STEP, Seen, is_trainer},
};

pub(super) fn resources_without_policy(seen: &Seen<'_>) -> bool {
    let given = seen.trainer()["resourcesPerNode"].is_object() && seen.policy().is_null();
    given && (seen.path().contains(".containers[node].resources") || seen.needs(".requests["))
}

pub(super) fn container_claims(seen: &Seen<'_>) -> bool {
    seen.path().contains(".resources.claims[")
        && seen.theirs().is_none()
        && seen.trainer()["resourcesPerNode"].is_object()
}

/// A claim that `node` uses, or the processes that its devices count as.
pub(super) fn claims_in_use(seen: &Seen<'_>) -> bool {
    let claimed = |pod: &Value| !pod["resourceClaims"].is_null();
    let has_claims = seen.pods().any(claimed) || seen.patched_pods().any(claimed);
    let path = seen.path();
    let claims_alone = |ours: &Value| {
        let members = ours.as_object();
        members.is_some_and(|members| members.keys().all(|member| member == "claims"))
    };
    let whole =
        path.ends_with(".containers[node].resources") && seen.ours().is_some_and(claims_alone);
    let used =
        (whole || path.contains(".containers[node].resources.claims[")) && seen.theirs().is_none();
    used || has_claims && is_of_accelerators(path)
}

/// Counts of a replicated job that the runtime sets and that no override changes: Trainyard keeps them, and the number of nodes follows.
pub(super) fn counts(seen: &Seen<'_>) -> bool {
    let path = seen.path();
    let ends_with = |ends: [&str; 3]| ends.iter().any(|end| path.ends_with(end));
    let of_pods = ends_with([
        "].template.spec.parallelism",
        "].template.spec.completions",
        "].count",
    ]);
    // `envInjection` sets it in other replicated jobs as well.
    let of_nodes = ends_with([
        ".env[PET_NNODES].value",
        ".env[JAX_NUM_PROCESSES].value",
        ".env[DMLC_NUM_WORKER].value",
    ]);
    let mut kept = seen
        .replicated_jobs()
        .filter(|job| !is_overridden(seen, job));
    kept.any(|job| {
        of_pods && seen.is_of(job) && has_written(seen, job)
            || of_nodes && is_trainer(job) && has_written(seen, job)
    })
}

/// Returns the counts of a replicated job, each as text or `null`.
fn written(job: &Value) -> [String; 2] {
    ["parallelism", "completions"].map(|count| job["template"]["spec"][count].to_string())
}

/// Returns whether Trainyard's value is a count of this replicated job, or a number of workers that follows from it.
fn has_written(seen: &Seen<'_>, job: &Value) -> bool {
    let ours = seen.ours().map(|ours| {
        ours.as_str()
            .map_or_else(|| ours.to_string(), str::to_owned)
    });
    let workers = |ours: &str, nodes: &String| {
        // As many workers for each of these nodes as the TrainJob sets, or as they have for their only node.
        let (ours, nodes) = (ours.parse::<u64>().ok()?, nodes.parse::<u64>().ok()?);
        let theirs = seen.theirs().and_then(Value::as_str);
        let of_one = theirs.and_then(|theirs| theirs.parse().ok());
        let set = seen.trainer()["numProcPerNode"].as_u64();
        seen.path().contains(".env[DMLC_NUM_WORKER]").then(|| {
            let is_of_nodes = |workers: u64| nodes > 1 && ours == nodes * workers;
            [set, of_one].into_iter().flatten().any(is_of_nodes)
        })
    };
    ours.is_some_and(|ours| {
        let is_written = |nodes| workers(&ours, nodes).unwrap_or(*nodes == ours);
        written(job).iter().any(is_written)
    })
}

/// Returns whether a number of nodes replaces the counts of this replicated job.
fn is_overridden(seen: &Seen<'_>, job: &Value) -> bool {
    // With MPI, the launcher has the label, and no number of nodes counts it.
    is_trainer(job)
        && seen.policy()["mpi"].is_null()
        && [seen.trainer(), seen.policy()]
            .iter()
            .any(|from| !from["numNodes"].is_null())
}

pub(super) fn empty_image(seen: &Seen<'_>) -> bool {
    seen.path().ends_with(".containers[node].image") && seen.trainer()["image"] == ""
}

/// The counts and overrides of a replicated job that has the label only on its pods, and the number of nodes in other containers.
pub(super) fn label_on_pod(seen: &Seen<'_>) -> bool {
    let labelled = |job: &&Value| {
        let on_pod = &job["template"]["spec"]["template"]["metadata"]["labels"][STEP];
        on_pod.is_string() && job["template"]["metadata"]["labels"][STEP].is_null()
    };
    let path = seen.path();
    let changed = [".parallelism", ".completions", ".replicas", "].count"]
        .iter()
        .any(|end| path.ends_with(end))
        || [
            "command",
            "args",
            "image",
            "env",
            "envFrom",
            "ports",
            "resources",
            "fluxRuns",
        ]
        .iter()
        .any(|field| path.contains(&format!("].{field}")))
        || seen.needs(".requests[");
    // In this case, the reference counts one node, because it finds no replicated job.
    let is_one = |value: &Value| value == "1";
    let nodes = path.ends_with(".env[PET_NNODES].value") && seen.theirs().is_some_and(is_one);
    // The release of the reference in Kueue looks for the replicated job without checking that there is one.
    let panics = seen
        .their_refusal()
        .is_some_and(|refusal| refusal.by == "panic" && seen.policy()["jax"].is_object());
    let everywhere = path.starts_with("data[") || nodes || panics;
    seen.replicated_jobs()
        .filter(labelled)
        .any(|job| everywhere || changed && seen.is_of(job))
}

pub(super) fn count_below_one(seen: &Seen<'_>) -> bool {
    let counted = [
        "spec.mlPolicy.numNodes",
        "spec.trainer.numNodes",
        "spec.trainer.numProcPerNode",
    ];
    let low = |refusal: &Refusal| {
        refusal
            .error
            .contains("should be greater than or equal to 1")
    };
    counted.iter().any(|field| seen.we_refuse(field)) && seen.our_refusal().is_some_and(low)
}

pub(super) fn nodes_of_the_template(seen: &Seen<'_>) -> bool {
    let texts = ["needs at least one node", "of the pods run at once"];
    seen.our_refusal()
        .is_some_and(|refusal| texts.iter().any(|text| refusal.error.contains(text)))
}

pub(super) fn override_without_place(seen: &Seen<'_>) -> bool {
    let reasons = ["cannot be applied", "has no effect: no replicated job"];
    seen.our_refusal().is_some_and(|refusal| {
        reasons
            .iter()
            .any(|reason| refusal.error.starts_with(reason))
    })
}

pub(super) fn request_above_limit(seen: &Seen<'_>) -> bool {
    seen.our_refusal()
        .is_some_and(|refusal| refusal.error.contains("is above the container's limit"))
}

pub(super) fn invalid_pods(seen: &Seen<'_>) -> bool {
    seen.our_refusal()
        .is_some_and(|refusal| refusal.error.contains("the API server would refuse the "))
}

pub(super) fn name_too_long(seen: &Seen<'_>) -> bool {
    seen.our_refusal().is_some_and(|refusal| {
        refusal.field == "metadata.name" && refusal.error.starts_with("is too long")
    })
}

pub(super) fn too_many_entries(seen: &Seen<'_>) -> bool {
    seen.our_refusal().is_some_and(|refusal| {
        refusal
            .error
            .contains("API servers write larger objects slowly")
    })
}
