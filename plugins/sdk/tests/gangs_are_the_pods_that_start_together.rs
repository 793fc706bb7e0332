//! A gang contains the pods that start together: the nodes, and pods that neither wait for them nor are waited for.

#![allow(clippy::unwrap_used)]

use trainyard_sdk::{
    Context, Failure, Phases, PluginParts, Transform,
    mock::{MockJob, MockPodSet},
};

/// Logs the members of the gang and its size, and sets a scheduler.
struct Scheduler;

impl Transform for Scheduler {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let gang = ctx.gang()?;
        let members: Vec<_> = gang.pod_sets().iter().map(|set| set.name()).collect();
        ctx.log("info", &format!("{} {}", members.join(","), gang.size()));
        ctx.log("info", &gang.requests_json());
        gang.default_scheduler("batch");
        Ok(())
    }
}

const PLUGIN: PluginParts = PluginParts {
    manifest: r#"{"name":"scheduler","activeWhen":"plugins","claims":{
        "reads":["pod-sets[*].containers[*].requests[*]","pod-sets[*].containers[*].limits[*]",
            "pod-sets[*].init-containers[*].requests[*]","pod-sets[*].init-containers[*].limits[*]",
            "pod-sets[*].init-containers[*].restart-policy","pod-sets[*].raw[resources]","pod-sets[*].raw[overhead]",
            "pod-sets[*].raw[runtimeClassName]","lookups[v1/LimitRange/*]"],
        "writes":["pod-sets[*].scheduler-name"]}}"#,
    parts: r#"{"version":"0.1.0","contract":"1.0.0","phases":["transform"]}"#,
    phases: Phases {
        transform: Some(Scheduler::transform),
        ..Phases::NONE
    },
};

fn train_job() -> MockJob {
    MockJob::new("bert").all_granted()
}

fn container(set: MockPodSet) -> MockPodSet {
    set.container("node", |c| c.limit("cpu", "2"))
}

/// The names of the members and the number of their pods, or the error.
fn members(job: MockJob) -> Result<String, String> {
    let outcome = job.transform(&PLUGIN).map_err(|error| error.to_string())?;
    let log = outcome.log();
    let line = log.first().unwrap().strip_prefix("info: ").unwrap();
    Ok(line.to_owned())
}

#[test]
fn pods_that_run_first_are_not_members() {
    let job = train_job()
        .pod_set("dataset-initializer", container)
        .pod_set("model-initializer", |set| {
            container(set).depends_on("dataset-initializer", "Complete")
        })
        .pod_set("node", |set| {
            let set = container(set).ancestor("trainer").count(4);
            set.depends_on("model-initializer", "Complete")
        });
    assert_eq!(members(job).unwrap(), "node 4");
}

#[test]
fn pods_that_neither_wait_nor_are_waited_for_are_members() {
    let job = train_job()
        .pod_set("observer", container)
        .pod_set("node", |set| container(set).ancestor("trainer").count(4))
        .pod_set("report", |set| {
            container(set).depends_on("observer", "Ready")
        });
    assert_eq!(members(job).unwrap(), "observer,node 5");
}

#[test]
fn pods_that_wait_for_other_members_are_not_members() {
    let job = train_job()
        .pod_set("node", |set| container(set).ancestor("trainer").count(4))
        .pod_set("launcher", |set| {
            container(set)
                .ancestor("trainer")
                .depends_on("node", "Ready")
        });
    assert_eq!(members(job).unwrap(), "node 4");
}

#[test]
fn pods_of_several_jobs_all_count() {
    let job = train_job().pod_set("node", |set| {
        container(set).ancestor("trainer").count(4).replicas(3)
    });
    assert_eq!(members(job).unwrap(), "node 12");
}

#[test]
fn pod_sets_without_pods_are_passed_over() {
    let job = train_job()
        .pod_set("node", |set| container(set).ancestor("trainer").replicas(0))
        .pod_set("launcher", |set| {
            container(set)
                .ancestor("trainer")
                .depends_on("node", "Ready")
        });
    assert_eq!(members(job).unwrap(), "launcher 1");
}

#[test]
fn runtime_without_nodes_has_a_gang() {
    let job = train_job()
        .pod_set("fetch", container)
        .pod_set("workers", |set| {
            container(set).count(3).depends_on("fetch", "Complete")
        })
        .pod_set("driver", |set| {
            container(set).depends_on("workers", "Ready")
        });
    assert_eq!(members(job).unwrap(), "workers 3");
}

#[test]
fn pod_sets_that_wait_for_each_other_are_refused() {
    let job = train_job()
        .pod_set("node", |set| {
            container(set)
                .ancestor("trainer")
                .depends_on("other", "Ready")
        })
        .pod_set("other", |set| {
            container(set)
                .ancestor("trainer")
                .depends_on("node", "Ready")
        });
    let error = members(job).unwrap_err();
    assert!(
        error.contains("spec.template.spec.replicatedJobs: no pods start first"),
        "{error}"
    );
}

#[test]
fn requests_are_those_of_all_members() {
    let outcome = train_job()
        .pod_set("fetch", container)
        .pod_set("node", |set| {
            let set = container(set).ancestor("trainer").count(4);
            set.depends_on("fetch", "Complete")
        })
        .transform(&PLUGIN)
        .unwrap();
    assert_eq!(outcome.log().last().unwrap(), r#"info: {"cpu":"8"}"#);
}

#[test]
fn scheduler_of_the_runtime_is_kept() {
    let outcome = train_job()
        .pod_set("fetch", container)
        .pod_set("node", |set| {
            container(set)
                .ancestor("trainer")
                .depends_on("fetch", "Complete")
        })
        .pod_set("observer", |set| container(set).scheduler_name("own"))
        .transform(&PLUGIN)
        .unwrap();
    let writes: Vec<_> = outcome.writes().into_iter().map(|(path, _)| path).collect();
    assert_eq!(writes, ["pod-sets[node].scheduler-name"]);
}
