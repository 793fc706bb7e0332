//! The rows of the table "What a TrainJob becomes" in divergences.md, each with what shows it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{difference::Refusal, seen::Seen};

/// A row of the table.
pub(super) struct Row {
    /// Its name, which stands in its first column.
    pub(super) id: &'static str,
    /// Whether a difference is the one that the row lists.
    pub(super) lists: fn(&Seen<'_>) -> bool,
}

/// Every row, in the order of the table.
pub(super) const ROWS: &[Row] = &[
    Row {
        id: "env-without-trainer",
        lists: env_without_trainer,
    },
    Row {
        id: "partial-override",
        lists: partial_override,
    },
    Row {
        id: "accelerators",
        lists: accelerators,
    },
    Row {
        id: "master-address",
        lists: master_address,
    },
    Row {
        id: "ports",
        lists: ports,
    },
    Row {
        id: "port-name",
        lists: |seen| seen.path().contains(".ports[29500]."),
    },
    Row {
        id: "env-sources",
        lists: env_sources,
    },
    Row {
        id: "env-reference",
        lists: |seen| seen.path().ends_with("].expands"),
    },
    Row {
        id: "runtime-processes",
        lists: runtime_processes,
    },
    Row {
        id: "resources-without-policy",
        lists: resources_without_policy,
    },
    Row {
        id: "container-claims",
        lists: container_claims,
    },
    Row {
        id: "claims-in-use",
        lists: claims_in_use,
    },
    Row {
        id: "counts",
        lists: counts,
    },
    Row {
        id: "empty-image",
        lists: empty_image,
    },
    Row {
        id: "label-on-pod",
        lists: label_on_pod,
    },
    Row {
        id: "name-too-long",
        lists: |seen| seen.we_refuse("metadata.name"),
    },
    Row {
        id: "too-many-entries",
        lists: |seen| {
            seen.our_refusal()
                .is_some_and(|refusal| refusal.error.contains("needs very long to write more than"))
        },
    },
    Row {
        id: "count-below-one",
        lists: count_below_one,
    },
    Row {
        id: "override-without-place",
        lists: override_without_place,
    },
    Row {
        id: "torch-without-trainer",
        lists: |seen| {
            seen.our_refusal()
                .is_some_and(|refusal| refusal.error.starts_with("torch needs a container"))
        },
    },
    Row {
        id: "request-above-limit",
        lists: request_above_limit,
    },
    Row {
        id: "patch-finds-nothing",
        lists: patch_finds_nothing,
    },
    Row {
        id: "init-order",
        lists: |seen| seen.path().ends_with("initContainers.order") && is_reordered(seen),
    },
    Row {
        id: "two-sources",
        lists: two_sources,
    },
    Row {
        id: "read-only-false",
        lists: |seen| seen.path().ends_with(".readOnly") && seen.ours() == Some(&false.into()),
    },
    Row {
        id: "patch-of-two-minds",
        lists: patch_of_two_minds,
    },
    Row {
        id: "patch-mounts-nothing",
        lists: |seen| refuses_patch(seen, "mounts the volume"),
    },
    Row {
        id: "patch-breaks-runtime",
        lists: |seen| refuses_patch(seen, "in the template with this patch"),
    },
    Row {
        id: "patch-env",
        lists: patch_env,
    },
    Row {
        id: "patch-claims",
        lists: patch_claims,
    },
    Row {
        id: "old-overrides",
        lists: old_overrides,
    },
    Row {
        id: "old-metadata",
        lists: old_metadata,
    },
    Row {
        id: "old-processes",
        lists: old_processes,
    },
    Row {
        id: "old-versions",
        lists: |seen| {
            seen.their_refusal()
                .is_some_and(|refusal| refusal.field == "apiVersion")
        },
    },
    Row {
        id: "same-name",
        lists: |seen| {
            seen.our_refusal()
                .is_some_and(|refusal| refusal.error.starts_with("is there twice"))
        },
    },
    Row {
        id: "plugins-by-name",
        lists: plugins_by_name,
    },
    Row {
        id: "not-yet",
        lists: not_yet,
    },
];

/// An env var that Torch sets.
fn is_pet(path: &str) -> bool {
    path.contains(".env[PET_")
}

fn is_processes(seen: &Seen<'_>) -> bool {
    seen.path().contains(".env[PET_NPROC_PER_NODE]")
}

fn env_without_trainer(seen: &Seen<'_>) -> bool {
    let path = seen.path();
    let of_node = path.contains(".containers[node].env[PET_")
        || path.contains(".containers[node].ports[29500]");
    of_node && seen.policy()["torch"].is_object() && seen.trainer().is_null()
}

/// The lists and names of the resources that requirements name.
fn named(requirements: &Value) -> BTreeSet<(&'static str, &str)> {
    let names = |list| {
        requirements[list]
            .as_object()
            .into_iter()
            .flatten()
            .map(move |(name, _)| (list, name.as_str()))
    };
    ["requests", "limits"].into_iter().flat_map(names).collect()
}

fn partial_override(seen: &Seen<'_>) -> bool {
    let given = &seen.trainer()["resourcesPerNode"];
    let forgotten = |container: &Value| {
        named(&container["resources"])
            .difference(&named(given))
            .count()
            > 0
    };
    is_processes(seen) && given.is_object() && seen.node_containers().any(forgotten)
}

fn accelerators(seen: &Seen<'_>) -> bool {
    // What one of the two takes for accelerators, and the other does not.
    let disputed = |name: &str| {
        let known = name.starts_with("nvidia.com/mig-")
            || name.starts_with("google.com/")
            || name.starts_with("habana.ai/");
        name.contains("gpu") && name != "nvidia.com/gpu" || known
    };
    let of_container = seen
        .node_containers()
        .flat_map(|container| named(&container["resources"]));
    let mut all = of_container.chain(named(&seen.trainer()["resourcesPerNode"]));
    is_processes(seen) && all.any(|(_, name)| disputed(name))
}

fn master_address(seen: &Seen<'_>) -> bool {
    let subdomain = &seen.runtime["spec"]["template"]["spec"]["network"]["subdomain"];
    let renamed = !seen.path().starts_with("spec.replicatedJobs[node]");
    seen.path().ends_with(".env[PET_MASTER_ADDR].value") && (subdomain.is_string() || renamed)
}

fn ports(seen: &Seen<'_>) -> bool {
    // One of them twice, or one less.
    let path = seen.path();
    let twice = path.ends_with(".ports") && seen.theirs().is_some_and(Value::is_array);
    let lost = path.ends_with(']') && path.contains(".ports[") && seen.theirs().is_none();
    twice || lost && seen.policy()["torch"].is_object() && !env_without_trainer(seen)
}

fn env_sources(seen: &Seen<'_>) -> bool {
    let lost = [
        ".valueFrom.fieldRef.apiVersion",
        ".valueFrom.fileKeyRef",
        ".valueFrom",
    ];
    seen.theirs().is_none() && lost.iter().any(|end| seen.path().ends_with(end))
}

fn runtime_processes(seen: &Seen<'_>) -> bool {
    let field = "spec.mlPolicy.torch.";
    let fields = ["numProcPerNode", "elasticPolicy"];
    let of_value = is_processes(seen) && seen.policy()["torch"]["numProcPerNode"] != Value::Null;
    of_value
        || fields.iter().any(|name| {
            seen.they_drop(&format!("{field}{name}")) || seen.we_refuse(&format!("{field}{name}"))
        })
}

fn resources_without_policy(seen: &Seen<'_>) -> bool {
    let given = seen.trainer()["resourcesPerNode"].is_object() && seen.policy().is_null();
    given && seen.path().contains(".containers[node].resources")
}

fn container_claims(seen: &Seen<'_>) -> bool {
    seen.path().contains(".resources.claims[")
        && seen.theirs().is_none()
        && seen.trainer()["resourcesPerNode"].is_object()
}

fn claims_in_use(seen: &Seen<'_>) -> bool {
    seen.path().contains(".containers[node].resources.claims[") && seen.theirs().is_none()
}

/// Counts of a replicated job that the runtime's author wrote, and that nobody overrides.
fn counts(seen: &Seen<'_>) -> bool {
    let path = seen.path();
    let ends = [
        "].template.spec.parallelism",
        "].template.spec.completions",
        ".env[PET_NNODES].value",
    ];
    let counted = |job: &&Value| {
        let spec = &job["template"]["spec"];
        let written = ["parallelism", "completions"]
            .iter()
            .any(|count| !spec[*count].is_null());
        let is_trainer = job["template"]["metadata"]["labels"][STEP] == "trainer";
        let overridden = [seen.trainer(), seen.policy()]
            .iter()
            .any(|from| !from["numNodes"].is_null());
        written && !(is_trainer && overridden) && is_of(path, job)
    };
    ends.iter().any(|end| path.ends_with(end)) && seen.replicated_jobs().any(|job| counted(&job))
}

/// Whether a path of a JobSet is below that replicated job.
fn is_of(path: &str, job: &Value) -> bool {
    let name = job["name"].as_str().unwrap_or_default();
    path.starts_with(&format!("spec.replicatedJobs[{name}]"))
}

fn empty_image(seen: &Seen<'_>) -> bool {
    seen.path().ends_with(".containers[node].image") && seen.trainer()["image"] == ""
}

const STEP: &str = "trainer.kubeflow.org/trainjob-ancestor-step";

/// What the label makes of a replicated job that has it on its pods alone: the step's counts and overrides.
fn label_on_pod(seen: &Seen<'_>) -> bool {
    let labelled = |job: &&Value| {
        let on_pod = &job["template"]["spec"]["template"]["metadata"]["labels"][STEP];
        on_pod.is_string() && job["template"]["metadata"]["labels"][STEP].is_null()
    };
    let path = seen.path();
    let changed = [".parallelism", ".completions", ".replicas"]
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
        ]
        .iter()
        .any(|field| path.contains(&format!("].{field}")));
    let replicas = seen
        .our_refusal()
        .is_some_and(|refusal| refusal.field.ends_with(".replicas"));
    seen.replicated_jobs()
        .filter(labelled)
        .any(|job| replicas || changed && is_of(path, job))
}

fn count_below_one(seen: &Seen<'_>) -> bool {
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

fn override_without_place(seen: &Seen<'_>) -> bool {
    let reasons = ["has nowhere to go", "counts nothing"];
    seen.our_refusal().is_some_and(|refusal| {
        reasons
            .iter()
            .any(|reason| refusal.error.starts_with(reason))
    })
}

fn request_above_limit(seen: &Seen<'_>) -> bool {
    seen.our_refusal()
        .is_some_and(|refusal| refusal.error.contains("is above the limit"))
}

/// Whether Trainyard alone refuses a runtime patch, in these words.
fn refuses_patch(seen: &Seen<'_>, words: &str) -> bool {
    seen.we_refuse("spec.runtimePatches[")
        && seen
            .our_refusal()
            .is_some_and(|refusal| refusal.error.contains(words))
}

fn patch_finds_nothing(seen: &Seen<'_>) -> bool {
    let added = seen.theirs().is_some() && seen.ours().is_none() && seen.patches().next().is_some();
    let whole = |list: &str| {
        seen.path()
            .rsplit_once('[')
            .is_some_and(|(before, _)| before.ends_with(list))
    };
    let item = ["replicatedJobs", "containers", "initContainers"]
        .into_iter()
        .any(whole);
    let order = seen.path().ends_with(".order") && !is_reordered(seen);
    added && item || order || refuses_patch(seen, "the runtime") && refuses_patch(seen, " has no ")
}

/// Whether a list has the same members in another order.
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

fn two_sources(seen: &Seen<'_>) -> bool {
    let path = seen.path();
    let kept = seen.theirs().is_some() && seen.ours().is_none();
    kept && (path.contains(".volumes[") || path.contains(".env["))
        && seen.patches().next().is_some()
}

fn patch_of_two_minds(seen: &Seen<'_>) -> bool {
    refuses_patch(seen, "give one of them") || refuses_patch(seen, "of an earlier item")
}

fn patch_env(seen: &Seen<'_>) -> bool {
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

fn patch_claims(seen: &Seen<'_>) -> bool {
    let given = seen
        .patched_pods()
        .any(|pod| pod["resourceClaims"].is_array());
    given && (seen.path().contains(".resourceClaims[") || seen.they_drop("spec.runtimePatches["))
}

const OLD_OVERRIDES: [&str; 2] = ["podTemplateOverrides", "podSpecOverrides"];

fn old_overrides(seen: &Seen<'_>) -> bool {
    let spec = &seen.job["spec"];
    let given = OLD_OVERRIDES.iter().any(|field| !spec[*field].is_null());
    let path = seen.path();
    // What an override can set: fields of pods and of their containers, and no env of the framework.
    let of_pod =
        path.contains("].template.spec.template.") && !is_pet(path) && !path.contains(".ports");
    let said = OLD_OVERRIDES.iter().any(|field| {
        let field = format!("spec.{field}");
        seen.they_drop(&field) || seen.we_refuse(&field)
    });
    given && of_pod || said
}

fn old_metadata(seen: &Seen<'_>) -> bool {
    let fields = ["labels", "annotations"];
    fields.iter().any(|field| {
        let given = seen.job["spec"][*field].is_object();
        let path = format!("spec.{field}");
        given && seen.path().starts_with(&format!("metadata.{field}"))
            || seen.they_drop(&path)
            || seen.we_refuse(&path)
    })
}

fn old_processes(seen: &Seen<'_>) -> bool {
    let field = "spec.trainer.numProcPerNode";
    seen.trainer()["numProcPerNode"].is_string()
        && seen.their_refusal().is_some_and(|refusal| {
            refusal.field == field || refusal.error.contains("some validation rules")
        })
}

fn plugins_by_name(seen: &Seen<'_>) -> bool {
    let fields = ["spec.mlPolicy.plugin", "spec.plugins"];
    let member = seen.policy()["plugin"].is_object() && seen.we_refuse("spec.mlPolicy");
    member
        || fields
            .iter()
            .any(|field| seen.they_drop(field) || seen.we_refuse(field))
}

fn not_yet(seen: &Seen<'_>) -> bool {
    let policies = ["mpi", "flux", "jax", "xgboost"];
    let unhandled = policies
        .iter()
        .any(|policy| seen.policy()[*policy].is_object());
    let said = seen
        .our_refusal()
        .is_some_and(|refusal| refusal.error.contains("not supported yet"));
    let of_policy = |refusal: &Refusal| refusal.field.starts_with("spec.mlPolicy.");
    let torchtune = seen.trainer()["command"][0] == "tune" && seen.their_refusal().is_some();
    said || torchtune
        || unhandled
            && (seen.our_refusal().is_some_and(of_policy) || seen.their_refusal().is_some())
}
