//! Differences of gangs: the PodGroup of a TrainJob, and the pods that belong to it. Whether its counts are right is checked in
//! `gang_counts_are_those_of_the_job_set`.

use serde_json::{Value, json};

use crate::seen::Seen;

/// The label and the annotation of the group's pods.
const MARKS: [(&str, &str); 2] = [
    ("labels", "scheduling.x-k8s.io/pod-group"),
    ("annotations", "scheduling.k8s.io/group-name"),
];

const MIN_RESOURCES: &str = "spec.minResources";

/// The annotation with the name of the queue.
const QUEUE: &str = "scheduling.volcano.sh/queue-name";

fn is_gang(seen: &Seen<'_>) -> bool {
    seen.runtime["spec"]["podGroupPolicy"].is_object()
}

/// Returns whether the difference is in the counts of the PodGroup.
fn is_count(seen: &Seen<'_>) -> bool {
    is_gang(seen) && (seen.path() == "spec.minMember" || seen.path().starts_with(MIN_RESOURCES))
}

/// Returns whether a replicated job waits for another one, or is waited for.
fn is_ordered(seen: &Seen<'_>, job: &Value) -> bool {
    let spec = &seen.runtime["spec"]["template"]["spec"];
    let waits_for = |job: &Value| {
        let list = job["dependsOn"].as_array().cloned().unwrap_or_default();
        list.into_iter().map(|one| one["name"].clone())
    };
    let mut others = seen.replicated_jobs();
    spec["startupPolicy"]["startupPolicyOrder"] == "InOrder"
        || waits_for(job).next().is_some()
        || others.any(|other| waits_for(other).any(|name| name == job["name"]))
}

/// Returns whether the pods of a replicated job can be outside of the group. If the launcher is the only node, the other one has no pods.
fn can_be_outside(seen: &Seen<'_>, job: &Value) -> bool {
    is_ordered(seen, job) || seen.launcher_is_the_only_node() && job["name"] == "node"
}

/// Returns whether only the reference adds these pods to the group, and changes nothing else.
fn is_mark_of_theirs(seen: &Seen<'_>, pods: &str) -> bool {
    let group = &seen.job["metadata"]["name"];
    let theirs = seen.theirs();
    let is_mark = |(list, key): &(&str, &str)| {
        let whole = [
            (format!("{pods}.metadata"), json!({*list: {*key: group}})),
            (format!("{pods}.metadata.{list}"), json!({*key: group})),
            (format!("{pods}.metadata.{list}[{key}]"), group.clone()),
        ];
        let mut places = whole.iter();
        places.any(|(path, value)| seen.path() == path && theirs == Some(value))
    };
    is_gang(seen) && seen.ours().is_none() && MARKS.iter().any(is_mark)
}

/// Pods that wait for members, or that members wait for, are not members. Those that do not run at the same time are not in the group.
pub(super) fn members(seen: &Seen<'_>) -> bool {
    let mut ordered = seen.replicated_jobs().filter(|job| is_ordered(seen, job));
    ordered.any(|job| {
        let name = job["name"].as_str().unwrap_or_default();
        let pods = format!("spec.replicatedJobs[{name}].template.spec.template");
        is_count(seen) || is_mark_of_theirs(seen, &pods)
    })
}

/// The counts are those of Trainyard's JobSet, where other rows change its pods, and of all Jobs of a replicated job. Pods that do not exist
/// have no mark.
pub(super) fn pods(seen: &Seen<'_>) -> bool {
    let step = "trainer.kubeflow.org/trainjob-ancestor-step";
    let policy = seen.policy();
    let changed = |job: &Value| {
        let spec = &job["template"]["spec"];
        let replicas = job["replicas"].as_u64().unwrap_or(1);
        let label_on_pod = spec["template"]["metadata"]["labels"][step].is_string();
        let has_counts = !spec["parallelism"].is_null() || !spec["completions"].is_null();
        replicas != 1 || label_on_pod || has_counts
    };
    let is_mpi = policy["mpi"].is_object();
    let of_launcher = is_mpi
        && (policy["numNodes"].is_u64()
            || policy["mpi"]["runLauncherAsNode"] == true
            || seen.trainer()["resourcesPerNode"].is_object());
    let without_policy = policy.is_null() && seen.trainer()["resourcesPerNode"].is_object();
    let has_more = seen.replicated_jobs().any(changed) || adds_job(seen);
    let no_pods = "spec.replicatedJobs[node].template.spec.template";
    is_count(seen) && (has_more || of_launcher || without_policy)
        || seen.launcher_is_the_only_node() && is_mark_of_theirs(seen, no_pods)
}

/// Returns whether a patch is for a replicated job that the runtime does not have, which the reference adds.
fn adds_job(seen: &Seen<'_>) -> bool {
    let is_known = |job: &Value| {
        let mut known = seen.replicated_jobs();
        known.any(|known| known["name"] == job["name"])
    };
    seen.patches().any(|patch| {
        let jobs = &patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"];
        !jobs.as_array().into_iter().flatten().all(is_known)
    })
}

/// Limits without requests, the overhead of RuntimeClasses and the defaults of LimitRanges count.
pub(super) fn requests(seen: &Seen<'_>) -> bool {
    if !(is_gang(seen) && seen.path().starts_with(MIN_RESOURCES)) {
        return false;
    }
    let resource = seen.path().strip_prefix("spec.minResources[");
    let resource = resource.and_then(|resource| resource.strip_suffix(']'));
    let is_limit_alone = |resources: &Value| {
        let limits = resources["limits"].as_object().into_iter().flatten();
        let mut alone = limits.filter(|(name, _)| resources["requests"][*name].is_null());
        alone.any(|(name, _)| resource.is_none_or(|resource| resource == name))
    };
    let of_pod = |pod: &Value| {
        let lists = ["containers", "initContainers"].into_iter();
        let mut all = lists.flat_map(|list| pod[list].as_array().into_iter().flatten());
        all.any(|container| is_limit_alone(&container["resources"]))
            || !pod["runtimeClassName"].is_null()
    };
    let mut documents = seen.documents.iter();
    seen.pods().any(of_pod)
        || is_limit_alone(&seen.trainer()["resourcesPerNode"])
        || documents.any(|document| document["kind"] == "LimitRange")
}

/// Pods that are not members do not set the group's PriorityClass.
pub(super) fn priority(seen: &Seen<'_>) -> bool {
    let has_class =
        |job: &&Value| !job["template"]["spec"]["template"]["spec"]["priorityClassName"].is_null();
    let mut with_class = seen.replicated_jobs().filter(has_class);
    is_gang(seen)
        && seen.path() == "spec.priorityClassName"
        && with_class.any(|job| can_be_outside(seen, job))
}

/// Objects that the counts and the priority need must exist.
pub(super) fn lookups(seen: &Seen<'_>) -> bool {
    let kinds = [" needs RuntimeClass `", " needs PriorityClass `"];
    is_gang_refusal(seen, &kinds)
}

/// A time or a tier below zero.
pub(super) fn bounds(seen: &Seen<'_>) -> bool {
    seen.we_refuse("spec.podGroupPolicy.")
        && is_gang_refusal(seen, &["must be at least 0; found -"])
}

/// A queue that no Queue can have as its name, or a field that the reference reports elsewhere.
pub(super) fn queue(seen: &Seen<'_>) -> bool {
    let field = format!("template.metadata.annotations[{QUEUE}]");
    seen.our_refusal()
        .is_some_and(|refusal| refusal.field.ends_with(&field))
}

/// Pods outside of the group have the queue of the JobSet.
pub(super) fn queue_of_others(seen: &Seen<'_>) -> bool {
    let queue = |metadata: &'_ Value| metadata["annotations"][QUEUE].as_str().map(str::to_owned);
    let of_patches = seen.patches().filter_map(|patch| {
        let template = &patch["trainingRuntimeSpec"]["template"];
        queue(&template["metadata"])
    });
    let of_job_set = of_patches
        .last()
        .or_else(|| queue(&seen.runtime["spec"]["template"]["metadata"]));
    let is_it = |job: &Value| {
        let name = job["name"].as_str().unwrap_or_default();
        let pods = format!("spec.replicatedJobs[{name}].template.spec.template");
        let path = format!("{pods}.metadata.annotations[{QUEUE}]");
        seen.path() == path
            && can_be_outside(seen, job)
            && queue(&job["template"]["spec"]["template"]["metadata"]).is_none()
    };
    seen.runtime["spec"]["podGroupPolicy"]["volcano"].is_object()
        && seen.theirs().is_none()
        && seen
            .ours()
            .is_some_and(|ours| ours.as_str() == of_job_set.as_deref())
        && seen.replicated_jobs().any(is_it)
}

/// Counts, amounts and names that the API server would reject.
pub(super) fn unfit(seen: &Seen<'_>) -> bool {
    let template = "spec.template.spec.replicatedJobs[";
    let fields: [(&str, &[&str], &str); 4] = [
        (
            ".runtimeClassName",
            &[],
            "must be the name of a RuntimeClass: ",
        ),
        (
            ".priorityClassName",
            &[],
            "must be the name of a PriorityClass: ",
        ),
        (
            "",
            &["requests[", "limits[", "overhead["],
            "must be a quantity of 0 or more, ",
        ),
        (
            "",
            &[".parallelism", ".replicas"],
            " pods would start together; ",
        ),
    ];
    let of_nodes = is_gang_refusal(seen, &[" pods would start together; "])
        && seen.we_refuse("spec.trainer.numNodes");
    let is_field = |field: &str| {
        fields.iter().any(|(end, parts, error)| {
            let has_part = parts.is_empty() || parts.iter().any(|part| field.contains(part));
            field.ends_with(end) && has_part && is_gang_refusal(seen, &[error])
        })
    };
    let refusal = seen.our_refusal();
    let of_template = refusal
        .is_some_and(|refusal| refusal.field.starts_with(template) && is_field(&refusal.field));
    is_gang(seen) && (of_nodes || of_template)
}

/// Both schedulers at once.
pub(super) fn exclusive(seen: &Seen<'_>) -> bool {
    is_gang_refusal(seen, &["after the first one is scheduled"])
}

pub(super) fn two_schedulers(seen: &Seen<'_>) -> bool {
    seen.we_refuse("spec.podGroupPolicy") && is_gang_refusal(seen, &["at most one gang scheduler"])
}

fn is_gang_refusal(seen: &Seen<'_>, texts: &[&str]) -> bool {
    seen.our_refusal()
        .is_some_and(|refusal| texts.iter().any(|text| refusal.error.contains(text)))
}

/// Counts, which `gang_counts_are_those_of_the_job_set` computes from the JobSet, or no mark.
pub(super) fn counted_or_nothing(seen: &Seen<'_>) -> bool {
    is_count(seen) || seen.ours().is_none()
}

/// The PriorityClass of the last pods of the group that have one and wait for no others of it.
pub(super) fn priority_of_members(seen: &Seen<'_>) -> bool {
    let template = |job: &'_ Value| job["template"]["spec"]["template"].clone();
    let is_marked = |job: &&Value| {
        let metadata = &template(job)["metadata"];
        let mut marks = MARKS.iter();
        marks.any(|(list, key)| metadata[*list][*key].is_string())
    };
    let marked: Vec<_> = seen.made_jobs().filter(is_marked).collect();
    let is_first = |job: &&&Value| {
        let mut others = job["dependsOn"].as_array().into_iter().flatten();
        !others.any(|other| marked.iter().any(|job| job["name"] == other["name"]))
    };
    let mut classes = marked
        .iter()
        .filter(is_first)
        .map(|job| template(job)["spec"]["priorityClassName"].clone());
    let last = classes.rfind(|class| !class.is_null());
    seen.ours() == last.as_ref()
}

/// The queue of the JobSet.
pub(super) fn queue_of_job_set(seen: &Seen<'_>) -> bool {
    let annotations = &seen.job_set()["metadata"]["annotations"];
    seen.ours().is_some() && seen.ours() == annotations.get(QUEUE)
}
