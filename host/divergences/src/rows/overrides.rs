//! Differences of overrides and counts.

use serde_json::{Map, Value, json};

use super::frameworks::is_of_accelerators;
use crate::{
    answer::Refusal,
    expected::{
        env,
        input::{self, at},
        is, nodes,
    },
    form::form,
    seen::{STEP, Seen, is_trainer, pod},
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
    // With MPI, the launcher has the label, and the number of nodes counts `node`.
    let is_counted = match seen.policy()["mpi"].is_null() {
        true => is_trainer(job) || label_of_pods(job) == "trainer",
        false => job["name"] == "node",
    };
    is_counted
        && [seen.trainer(), seen.policy()]
            .iter()
            .any(|from| !from["numNodes"].is_null())
}

/// Returns the label on the pods of a replicated job whose Job does not have it; otherwise null.
fn label_of_pods(job: &Value) -> &Value {
    match &job["template"]["metadata"]["labels"][STEP] {
        Value::Null => &job["template"]["spec"]["template"]["metadata"]["labels"][STEP],
        _ => &Value::Null,
    }
}

pub(super) fn empty_image(seen: &Seen<'_>) -> bool {
    seen.path().ends_with(".containers[node].image") && seen.trainer()["image"] == ""
}

/// The counts and overrides of a replicated job that has the label only on its pods, and the number of nodes in other containers.
pub(super) fn label_on_pod(seen: &Seen<'_>) -> bool {
    let labelled = |job: &&Value| label_of_pods(job).is_string();
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

/// The TrainJob's resources, over those of the runtime.
pub(super) fn given_resources(seen: &Seen<'_>) -> bool {
    match seen.path().contains(".resources.claims[") {
        true => used_claims(seen),
        false => is(seen, input::resources(seen, true).as_ref()),
    }
}

/// A claim of the pod, as the runtime's container or the TrainJob uses it, or as a whole if nothing uses it.
pub(super) fn used_claims(seen: &Seen<'_>) -> bool {
    let job = seen.made_job(seen.set_name());
    let of_pod = pod(job)["resourceClaims"].as_array();
    let names: Vec<_> = of_pod
        .into_iter()
        .flatten()
        .map(|claim| claim["name"].as_str().unwrap_or_default())
        .collect();
    let written =
        form(&json!({"resources": {"claims": seen.trainer()["resourcesPerNode"]["claims"]}}));
    let of_runtime = form(&seen.runtime["spec"]["template"]);
    let claim = |name: &str| {
        let place = format!("resources.claims[{name}]");
        let written = at(&written, &place).cloned();
        let container = seen
            .path()
            .split_once(".resources")
            .map_or("", |(before, _)| before);
        let of_runtime = at(&of_runtime, &format!("{container}.{place}")).cloned();
        of_runtime
            .or(written)
            .unwrap_or_else(|| json!({"name": name}))
    };
    match seen.path().rsplit_once(".claims[") {
        Some((_, name)) => {
            let name = name.trim_end_matches(']');
            names.contains(&name) && seen.ours() == Some(&claim(name))
        }
        None => {
            let claims: Map<_, _> = names
                .iter()
                .map(|name| (format!("[{name}]"), claim(name)))
                .collect();
            seen.ours() == Some(&json!({"claims": claims}))
        }
    }
}

/// These claims, or the processes that follow from them.
pub(super) fn used_claims_or_processes(seen: &Seen<'_>) -> bool {
    match is_of_accelerators(seen.path()) {
        true => env::is_right(seen),
        false => used_claims(seen),
    }
}

/// The counts of the runtime, and the number of nodes that follows from them.
pub(super) fn kept_counts(seen: &Seen<'_>) -> bool {
    match seen.path().contains(".env[") {
        true => env::is_right(seen),
        false => {
            let mut jobs = seen
                .replicated_jobs()
                .filter(|job| job["name"] == seen.set_name());
            let spec = jobs
                .next()
                .map_or(&Value::Null, |job| &job["template"]["spec"]);
            let (_, count) = seen.path().rsplit_once('.').unwrap_or_default();
            // Each count follows from the other one.
            let given = [&spec[count], &spec["parallelism"], &spec["completions"]];
            let given = given.into_iter().find(|count| !count.is_null());
            seen.ours() == Some(given.unwrap_or(&json!(1)))
        }
    }
}

/// What the container `node` of a trainer has, and the trainer's number of nodes.
pub(super) fn as_for_a_trainer(seen: &Seen<'_>) -> bool {
    let path = seen.path();
    if path.starts_with("data[") {
        // The row of the policy says what its file has.
        return false;
    }
    if path.contains(".env[") {
        return env::is_right(seen) || input::is_merged(seen);
    }
    if path.contains("].ports") {
        return env::is_right_port(seen);
    }
    if path.contains("].resources") {
        return given_resources(seen);
    }
    let field = path.rsplit_once("].").map_or("", |(_, field)| field);
    let given = || {
        Some(&seen.trainer()[field])
            .filter(|value| !value.is_null())
            .cloned()
    };
    is(
        seen,
        nodes(seen)
            .or_else(given)
            .or_else(|| input::of_runtime(seen))
            .as_ref(),
    )
}
