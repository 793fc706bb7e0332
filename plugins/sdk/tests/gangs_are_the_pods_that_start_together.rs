//! A gang contains the pods that start together: the nodes, and pods that neither wait for them nor are waited for. Its resources include
//! those of pods that are created later and run at the same time.

use trainyard_sdk::{
    Context, Failure, Phases, PluginParts, PodSet, Transform,
    mock::{MockJob, MockPodSet},
};

/// Logs the members of the gang and its size, its followers, and its resources, and sets a scheduler.
struct Scheduler;

impl Transform for Scheduler {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let gang = ctx.gang()?;
        let names = |sets: &[PodSet]| {
            let names: Vec<_> = sets.iter().map(PodSet::name).collect();
            names.join(",")
        };
        ctx.log(
            "info",
            &format!("{} {}", names(gang.pod_sets()), gang.size()),
        );
        ctx.log("info", &names(gang.followers()));
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

/// What the plugin logs, or the error.
fn logged(job: MockJob) -> Result<[String; 3], String> {
    let outcome = job.transform(&PLUGIN).map_err(|error| error.to_string())?;
    let log = outcome.log();
    let lines = log.iter().map(|line| line.strip_prefix("info: ").unwrap());
    let lines: Vec<_> = lines.map(str::to_owned).collect();
    Ok(lines.try_into().unwrap())
}

/// The names of the members and the number of their pods, or the error.
fn members(job: MockJob) -> Result<String, String> {
    logged(job).map(|[members, ..]| members)
}

/// The names of the followers, and the CPUs of the gang.
fn followers(job: MockJob) -> (String, String) {
    let [_, followers, resources] = logged(job).unwrap();
    (followers, resources)
}

/// Four nodes with two CPUs each.
fn nodes() -> MockJob {
    train_job().pod_set("node", |set| container(set).ancestor("trainer").count(4))
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
fn pods_that_wait_for_members_to_be_ready_follow() {
    let job = nodes()
        .pod_set("monitor", |set| {
            container(set).count(2).depends_on("node", "Ready")
        })
        .pod_set("launcher", |set| {
            container(set).depends_on("monitor", "Ready")
        });
    let expected = ("monitor,launcher", r#"{"cpu":"14"}"#);
    let found = followers(job);
    assert_eq!((&*found.0, &*found.1), expected);
}

#[test]
fn pods_that_wait_for_members_to_end_do_not_follow() {
    let job = nodes()
        .pod_set("fetch", container)
        .pod_set("report", |set| {
            container(set).depends_on("node", "Complete")
        })
        .pod_set("upload", |set| container(set).depends_on("report", "Ready"));
    assert_eq!(
        followers(job),
        (String::new(), r#"{"cpu":"10"}"#.to_owned())
    );
}

#[test]
fn pods_that_end_before_a_follower_starts_are_not_counted_with_it() {
    let job = nodes()
        .pod_set("check", |set| {
            container(set).count(3).depends_on("node", "Ready")
        })
        .pod_set("launcher", |set| {
            container(set).depends_on("check", "Complete")
        });
    let expected = ("launcher".to_owned(), r#"{"cpu":"10"}"#.to_owned());
    assert_eq!(followers(job), expected);
}

#[test]
fn followers_that_others_wait_for_after_the_members_are_counted() {
    let job = nodes()
        .pod_set("check", |set| container(set).depends_on("node", "Ready"))
        .pod_set("report", |set| {
            let set = container(set).depends_on("node", "Complete");
            set.depends_on("check", "Complete")
        });
    let expected = ("check".to_owned(), r#"{"cpu":"10"}"#.to_owned());
    assert_eq!(followers(job), expected);
}

#[test]
fn followers_without_pods_are_passed_over() {
    let job = nodes().pod_set("launcher", |set| {
        container(set).replicas(0).depends_on("node", "Ready")
    });
    assert_eq!(followers(job), (String::new(), r#"{"cpu":"8"}"#.to_owned()));
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
        .pod_set("launcher", |set| container(set).depends_on("node", "Ready"))
        .transform(&PLUGIN)
        .unwrap();
    let writes: Vec<_> = outcome.writes().into_iter().map(|(path, _)| path).collect();
    let of_group = [
        "pod-sets[node].scheduler-name",
        "pod-sets[launcher].scheduler-name",
    ];
    assert_eq!(writes, of_group);
}

/// A runtime's pod sets in a chain, of which each waits for the one before it.
#[test]
fn gangs_of_hundreds_of_pod_sets_are_found() {
    const SETS: usize = 5_000;
    let mut job = nodes();
    for at in 0..SETS {
        let before = match at {
            0 => "node".to_owned(),
            at => format!("helper-{}", at - 1),
        };
        job = job.pod_set(&format!("helper-{at}"), |set| {
            container(set).depends_on(&before, "Ready")
        });
    }
    let outcome = job.transform(&PLUGIN).unwrap();
    assert_eq!(outcome.log().first().unwrap(), "info: node 4");
    let last = format!("pod-sets[helper-{}].scheduler-name", SETS - 1);
    assert_eq!(outcome.value(&last).unwrap(), "batch");
}
