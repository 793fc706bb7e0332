//! A PodGroup counts the pods and requests of its JobSet. Both are computed here from the rendered objects alone, without the code of the
//! policies and the host: a JobSet is started step by step as Kubernetes does, with a scheduler that holds the group's pods back until
//! `minMember` of them exist.

mod requests;
mod start;

use std::fs;

use serde_json::{Value, json};
use trainyard_api::yaml;

use self::{
    requests::{Amounts, Cluster, amounts, is_equal},
    start::{Job, Start},
};
use super::trainyard;
use crate::common::case;

/// The list and the key of the mark of a group's pods, by the group's API.
const MARKS: [(&str, &str, &str); 2] = [
    (
        "scheduling.x-k8s.io/v1alpha1",
        "labels",
        "scheduling.x-k8s.io/pod-group",
    ),
    (
        "scheduling.volcano.sh/v1beta1",
        "annotations",
        "scheduling.k8s.io/group-name",
    ),
];

/// Returns what is wrong with the PodGroups that were rendered for an input.
pub(super) fn wrong_counts(input: &str, objects: &[Value]) -> Vec<String> {
    let documents: Vec<_> = yaml::read(input).into_iter().flatten().collect();
    let documents: Vec<_> = documents.into_iter().map(|one| one.value).collect();
    let groups = objects.iter().filter(|object| object["kind"] == "PodGroup");
    groups
        .filter_map(|group| {
            Some(format!(
                "{}: {}",
                group["metadata"]["name"],
                check(group, objects, &documents).err()?
            ))
        })
        .collect()
}

fn check(group: &Value, objects: &[Value], documents: &[Value]) -> Result<(), String> {
    let is_its = |object: &&Value| {
        let is_named = |field: &str| object["metadata"][field] == group["metadata"][field];
        object["kind"] == "JobSet" && is_named("name") && is_named("namespace")
    };
    let job_set = objects.iter().find(is_its).ok_or("no JobSet")?;
    let (_, list, key) = MARKS
        .iter()
        .find(|(api, ..)| group["apiVersion"] == *api)
        .ok_or("an unknown API")?;
    let is_marked = |job: &Value| {
        job["template"]["spec"]["template"]["metadata"][list][key] == group["metadata"]["name"]
    };
    let jobs = Job::all(job_set, is_marked);
    let start = Start::of(&jobs);

    check_marks(&jobs, &start)?;
    let members = start.members.iter().map(|job| job.pods).sum::<u64>();
    if members == 0 || group["spec"]["minMember"] != members {
        let found = &group["spec"]["minMember"];
        return Err(format!(
            "`minMember` is {found}, but {members} pods are created first: {start:?}"
        ));
    }

    let cluster = Cluster {
        documents,
        namespace: &group["metadata"]["namespace"],
    };
    let mut sum = Amounts::new();
    for job in start.members.iter().chain(&start.followers) {
        requests::add(&mut sum, &cluster.requests(job.pod), job.pods);
    }
    let counted = amounts(&group["spec"]["minResources"]);
    match is_equal(&counted, &sum) {
        true => Ok(()),
        false => Err(format!(
            "`minResources` is {}, but the pods request {}: {start:?}",
            requests::text(&counted),
            requests::text(&sum)
        )),
    }
}

/// Checks which pods have the group's mark.
fn check_marks(jobs: &[Job<'_>], start: &Start<'_>) -> Result<(), String> {
    let group = start.members.iter().chain(&start.followers);
    let mut expected: Vec<_> = group.map(|job| job.name).collect();
    let marked = jobs.iter().filter(|job| job.is_marked && job.pods > 0);
    let mut marked: Vec<_> = marked.map(|job| job.name).collect();
    expected.sort_unstable();
    marked.sort_unstable();
    if marked != expected {
        return Err(format!(
            "{marked:?} have the group's mark, but {expected:?} run at the same time"
        ));
    }
    let mut nodes = jobs
        .iter()
        .filter(|job| job.is_node && job.pods > 0)
        .peekable();
    if nodes.peek().is_some() && !nodes.any(|job| job.is_marked) {
        return Err("no nodes have the group's mark".to_owned());
    }
    let missing = start.first.iter().find(|job| {
        let mut members = start.members.iter();
        !members.any(|member| start::waits_for(jobs, member, job))
    });
    match missing {
        Some(job) => Err(format!(
            "`{}` starts with the members and has no mark",
            job.name
        )),
        None => Ok(()),
    }
}

#[test]
fn wrong_counts_and_marks_are_found() {
    let folder = case("coscheduling-followers");
    let input = fs::read_to_string(folder.join("input.yaml")).unwrap();
    let rendered = trainyard::of_case(&folder).objects;
    assert_eq!(wrong_counts(&input, &rendered), [""; 0]);
    let of_group = "/0/spec";
    let labels = |at: usize| format!("/1/spec/replicatedJobs/{at}/template/spec/template/metadata");
    let mark = json!({"labels": {"scheduling.x-k8s.io/pod-group": "bert"}});
    for (path, value, problem) in [
        (
            format!("{of_group}/minMember"),
            json!(5),
            "`minMember` is 5, but 4 pods",
        ),
        (
            format!("{of_group}/minResources/cpu"),
            json!("19001m"),
            "`minResources` is",
        ),
        (
            format!("{of_group}/minResources/cpu"),
            json!(16),
            "`minResources` is",
        ),
        (labels(1), json!({}), "run at the same time"),
        (labels(3), mark, "run at the same time"),
    ] {
        let mut wrong = json!(rendered);
        let (parent, field) = path.rsplit_once('/').unwrap();
        wrong.pointer_mut(parent).unwrap()[field] = value;
        let found = wrong_counts(&input, wrong.as_array().unwrap());
        assert!(
            found.len() == 1 && found[0].contains(problem),
            "{path}: {found:?}"
        );
    }
}
