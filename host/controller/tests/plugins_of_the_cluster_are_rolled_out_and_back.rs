//! A change of a PolicyPlugin is compared, gets to a share of the namespaces and then to all, and goes back by itself if TrainJobs fail, whoever
//! leads. TrainJobs that have started keep what they were made with.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use trainyard_model::{
    call::Call,
    plugin::{CallFailure, Limit},
};

use crate::stub::{
    cluster::{Act, Cluster, When},
    controller::job,
    declared::{Artifact, EARLY, LATE, STAMP, World},
};

fn trap() -> CallFailure {
    CallFailure::Trap {
        kind: "unreachable".to_owned(),
        message: None,
    }
}

/// A version that sets the same annotation to other content, and fails for some TrainJobs.
fn failing() -> Artifact {
    failing_with(trap)
}

fn failing_with(failure: fn() -> CallFailure) -> Artifact {
    failing_as("2.0.0", failure)
}

fn failing_as(version: &'static str, failure: fn() -> CallFailure) -> Artifact {
    Artifact::new("stamp", version, "plugins", &[STAMP, "example.com/more"]).runs(
        move |call: &mut Call| {
            let info = call.context_info(Call::CONTEXT)?;
            call.info_set_annotation(info, STAMP, version)?;
            let job = call.context_job(Call::CONTEXT)?;
            match call.job_name(job)?.starts_with("late") {
                true => Err(failure()),
                false => Ok(()),
            }
        },
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_plugins_run_before_train_jobs_are_reconciled() {
    let world = World::half();
    let controller = world.start("one").await;
    for namespace in [EARLY, LATE] {
        let stamped = |_: &_| world.stamp(namespace, "queued").as_deref() == Some("1.0.0");
        world
            .until("the TrainJobs are rendered with the plugin", stamped)
            .await;
    }
    assert_eq!(
        world.revisions(),
        [(1, "Running".to_owned(), "First".to_owned())]
    );
    world
        .until_condition("stamp", "Active", "True", "Running")
        .await;
    world
        .until("the replica has reported", |cluster| {
            let object = cluster.get("policyplugins", "", "stamp").unwrap();
            object["status"]["replicas"] == json!({"current": 1, "total": 1, "summary": "1/1"})
        })
        .await;
    let status = world.cluster.get("policyplugins", "", "stamp").unwrap()["status"].clone();
    assert_eq!(
        (&status["version"], &status["signer"]),
        (&json!("1.0.0"), &json!("tests"))
    );
    assert_eq!(
        status["claims"],
        json!([format!("writes annotations[{STAMP}]")])
    );
    assert_eq!(status["observedGeneration"], 1);
    for [kind, wanted] in [
        ["Pulled", "True"],
        ["Verified", "True"],
        ["Loaded", "True"],
        ["Conflicting", "False"],
    ] {
        assert_eq!(world.condition("stamp", kind)[0], wanted, "{kind}");
    }
    assert!(world.events("queued").is_empty());
    assert_eq!(
        world.events("stamp"),
        BTreeSet::from(["RevisionRunning".to_owned()])
    );
    // Its own writes wake nothing.
    let writes = world.cluster.traffic("patch", "policyplugins").calls;
    assert!(writes <= 3, "{writes}");
    assert_eq!((world.registry.pins(), world.registry.loads()), (1, 1));
    controller.stop().await;
    // A replica that has ended is not counted.
    assert_eq!(
        world.cluster.all("pluginrevisions")[0]["status"]["replicas"],
        json!([])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_gets_to_a_share_of_the_namespaces_before_all() {
    let world = World::half();
    world.cluster.put(job(LATE, "runs", "stamped", false));
    let controller = world.start("one").await;
    for name in ["runs", "queued"] {
        world.until_stamped(LATE, name, "1.0.0").await;
    }
    let uid =
        |name: &str| world.cluster.get("jobsets", LATE, name).unwrap()["metadata"]["uid"].clone();
    let (runs, queued) = (uid("runs"), uid("queued"));
    let writes = |world: &World| {
        ["pluginrevisions", "policyplugins"].map(|kind| world.cluster.traffic("patch", kind).calls)
    };
    let before = writes(&world);
    world.upgrade(&Artifact::second());
    world.until_stage(2, "Share").await;
    world
        .until_condition("stamp", "Active", "False", "RollingOut")
        .await;
    world.until_stamped(EARLY, "queued", "2.0.0").await;
    assert_eq!(world.stamp(LATE, "queued").unwrap(), "1.0.0");
    let revisions = world.cluster.all("pluginrevisions");
    let shadow = &revisions[1]["status"]["shadow"];
    assert_eq!(
        (
            &shadow["runtimes"],
            &shadow["trainJobs"],
            &shadow["differing"]
        ),
        (&json!(1), &json!(2), &json!(3))
    );
    let fields: Vec<_> = shadow["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["field"].as_str().unwrap())
        .collect();
    assert_eq!(fields, ["JobSet: metadata.annotations[]",]);
    let page = world.metrics().plugins_page().unwrap();
    for part in [
        "Share (50 %), Progressing",
        "of 1 runtime and 2 TrainJobs, 3 would render differently",
        "3  stamp  JobSet: metadata.annotations[]  (such as ClusterTrainingRuntime stamped)",
    ] {
        assert!(page.contains(part), "{page}");
    }
    for text in [shadow.to_string(), page] {
        assert!(!text.contains("2.0.0"), "{text}");
    }
    let metrics = world.metrics().text().unwrap();
    assert!(
        metrics
            .contains(r#"trainyard_plugin_revision_stage{stage="Share",reason="Progressing"} 1"#)
    );
    world.until_stage(2, "Running").await;
    world.until_stamped(LATE, "queued", "2.0.0").await;
    world
        .until_condition("stamp", "Active", "True", "Running")
        .await;
    world.until_stage(1, "Previous").await;
    // It is counted which TrainJobs have which version.
    world
        .pass("both versions are counted", |cluster| {
            let count =
                cluster.get("policyplugins", "", "stamp").unwrap()["status"]["trainJobs"].clone();
            count["total"] == 3
                && count["digests"][0]["trainJobs"] == 2
                && count["digests"][1]["trainJobs"] == 1
        })
        .await;
    // Four stages, and an entry of the replica.
    let [revisions, policies] = writes(&world);
    let (revisions, policies) = (revisions - before[0], policies - before[1]);
    assert!(revisions <= 6 && policies <= 10, "{revisions} {policies}");
    // What runs keeps what it was made with, and nothing is recreated.
    assert_eq!(world.stamp(LATE, "runs").unwrap(), "1.0.0");
    assert_eq!((uid("runs"), uid("queued")), (runs, queued));
    let events = world.events("stamp");
    for reason in ["RevisionShadow", "RevisionShare", "RevisionRunning"] {
        assert!(events.contains(reason), "{events:?}");
    }
    controller.stop().await;
}

/// Tenants may create JobSets, and write what they want into the annotation that tells the plugins.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_job_sets_of_train_jobs_count_as_users_of_a_plugin() {
    let world = World::half();
    let controller = world.start("one").await;
    world.until_stamped(EARLY, "queued", "1.0.0").await;
    world.until_stamped(LATE, "queued", "1.0.0").await;
    controller.stop().await;
    let real = world.cluster.get("jobsets", LATE, "queued").unwrap();
    let forged = |name: &str, owner: Value| {
        let mut job_set = real.clone();
        job_set["metadata"] = json!({
            "namespace": LATE, "name": name,
            "annotations": {"trainyard.dev/plugins": "stamp@000000000000"},
            "ownerReferences": owner,
        });
        world.cluster.put(job_set);
    };
    let owner = &real["metadata"]["ownerReferences"];
    let mut other_uid = owner.clone();
    other_uid[0]["uid"] = "forged".into();
    forged("without-owner", Value::Null);
    forged("of-another-train-job", owner.clone());
    // The TrainJob of this name is another one than the owner.
    world.cluster.put(job(LATE, "taken", "stamped", true));
    forged("taken", other_uid);
    let status = |object: &mut Value| object["status"] = json!({});
    world.cluster.edit("policyplugins", ("", "stamp"), status);
    let controller = world.start("two").await;
    let counted = |cluster: &Cluster| {
        let object = cluster.get("policyplugins", "", "stamp").unwrap();
        object["status"]["trainJobs"]["total"].is_u64()
    };
    world.pass("TrainJobs are counted", counted).await;
    let object = world.cluster.get("policyplugins", "", "stamp").unwrap();
    let counts = &object["status"]["trainJobs"];
    assert_eq!(counts["total"], 2, "{counts}");
    assert_eq!(counts["digests"].as_array().unwrap().len(), 1, "{counts}");
    assert_ne!(counts["digests"][0]["digest"], "000000000000");
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_without_a_difference_runs_at_once() {
    let world = World::half();
    let controller = world.start("one").await;
    world.until_stamped(EARLY, "queued", "1.0.0").await;
    let unused = world.registry.push(&Artifact::new(
        "unused",
        "1.0.0",
        "plugins",
        &["example.com/unused"],
    ));
    world.declare("unused", &unused);
    world.until_stage(2, "Running").await;
    assert_eq!(world.revisions()[1].2, "NoDifference");
    controller.stop().await;
}

/// Its feature gate is off, so it has no effect, and the replicas lack nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_whose_feature_gate_is_off_stops_no_rollout() {
    let world = World::half();
    let controller = world.running().await;
    let gated = Artifact::new("gated", "1.0.0", "plugins", &["example.com/gated"]);
    world.registry.turn_off(&gated);
    world.declare("gated", &world.registry.push(&gated));
    world
        .until_condition("gated", "Active", "False", "GateOff")
        .await;
    let [_, _, message] = world.condition("gated", "Active");
    assert!(
        message.contains("the feature gate Tests is off; turn it on"),
        "{message}"
    );
    world.upgrade(&Artifact::stamp("stamp", "2.0.0"));
    world.until_stamped(LATE, "queued", "2.0.0").await;
    let problem = |revision: &Value| {
        revision["status"]["replicas"]
            .to_string()
            .contains("problem")
    };
    let revisions = world.cluster.all("pluginrevisions");
    assert!(!revisions.iter().any(problem), "{revisions:#?}");
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_refusals_stop_until_somebody_accepts_them() {
    let world = World::half();
    world.cluster.put(job(EARLY, "late", "stamped", true));
    let controller = world.start("one").await;
    world.until_stamped(EARLY, "late", "1.0.0").await;
    world.upgrade(&failing());
    world
        .until_condition("stamp", "Active", "False", "NewRefusals")
        .await;
    assert_eq!(world.stage(2), "Shadow");
    assert!(world.condition("stamp", "Active")[2].contains("trainyard.dev/accept="));
    assert_eq!(world.stamp(EARLY, "queued").unwrap(), "1.0.0");
    // It is accepted that it is refused, but not that a TrainJob fails.
    world.annotate(2, "trainyard.dev/accept", "");
    world.until_stage(2, "Share").await;
    world
        .until_condition("stamp", "Active", "False", "NewFailures")
        .await;
    world.annotate(2, "trainyard.dev/accept", "failures");
    world.until_stage(2, "Running").await;
    controller.stop().await;
}

/// Another namespace of the share has a TrainJob that does not fail, so the revision is not rolled back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_share_in_which_train_jobs_of_one_namespace_fail_waits_and_says_which() {
    for accepts in [true, false] {
        let world = World::half();
        world.cluster.put(job("rl", "queued", "stamped", true));
        let controller = world.start("one").await;
        for namespace in [EARLY, "rl"] {
            world.until_stamped(namespace, "queued", "1.0.0").await;
        }
        world.upgrade(&failing());
        world.until_used_in_a_share(2).await;
        let names = ["late-a", "late-b", "late-c"];
        for name in names {
            world.cluster.put(job(EARLY, name, "stamped", false));
        }
        world
            .until_condition("stamp", "Active", "False", "NewFailures")
            .await;
        let status = world.cluster.all("pluginrevisions")[1]["status"].clone();
        for message in [
            status["message"].as_str().unwrap(),
            &world.condition("stamp", "Active")[2],
        ] {
            for part in [
                "it makes 3 TrainJobs of 1 namespace fail",
                "such as default/late-a;",
                "trainyard.dev/accept=failures",
            ] {
                assert!(message.contains(part), "{message}");
            }
        }
        assert_eq!(
            (world.stage(2), &status["percent"]),
            ("Share".to_owned(), &json!(50))
        );
        assert_eq!(world.stamp(LATE, "queued").unwrap(), "1.0.0");
        match accepts {
            true => world.annotate(2, "trainyard.dev/accept", "failures"),
            false => names
                .into_iter()
                .for_each(|name| world.cluster.delete("trainjobs", EARLY, name)),
        }
        world.until_stage(2, "Running").await;
        controller.stop().await;
    }
}

/// So no namespace can stop a change of plugins by TrainJobs that no revision helps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn train_jobs_that_fail_with_both_revisions_hold_up_no_share() {
    let world = World::half();
    world.upgrade(&failing_as("1.0.0", trap));
    for name in ["late-a", "late-b", "late-c"] {
        world.cluster.put(job(EARLY, name, "stamped", false));
    }
    let controller = world.start("one").await;
    world.until_stamped(EARLY, "queued", "1.0.0").await;
    world.upgrade(&failing());
    world.until_stage(2, "Share").await;
    let has_ended = |_: &_| world.stage(2) != "Share";
    world.pass("the share has ended", has_ended).await;
    assert_eq!(world.stage(2), "Running");
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_share_in_which_train_jobs_fail_is_rolled_back() {
    let mut world = World::half();
    world.settings.plugins.rollout.interval = Duration::from_secs(3_600);
    world.cluster.delete("trainjobs", LATE, "queued");
    let controller = world.start("one").await;
    world.until_stamped(EARLY, "queued", "1.0.0").await;
    world.upgrade(&failing());
    world.until_used_in_a_share(2).await;
    for name in ["late-a", "late-b", "late-c"] {
        world.cluster.put(job(EARLY, name, "stamped", false));
    }
    world.until_stage(2, "RolledBack").await;
    assert_eq!(world.revisions()[1].2, "Failures");
    // They run with the earlier version.
    for name in ["late-a", "late-b", "late-c", "queued"] {
        world.until_stamped(EARLY, name, "1.0.0").await;
    }
    world
        .until_condition("stamp", "Active", "False", "RolledBack")
        .await;
    assert!(world.events("stamp").contains("RevisionRolledBack"));
    // It is said once how to try it again.
    let message = world.condition("stamp", "Active").concat();
    assert_eq!(message.matches("try it again").count(), 1, "{message}");
    assert!(message.contains("trainyard.dev/retry"), "{message}");
    // It is not tried again, unless somebody asks for it.
    world.clock.advance(Duration::from_secs(600));
    world.declare("stamp", &world.registry.push(&failing()));
    assert_eq!(world.revisions().len(), 2);
    world.annotate(2, "trainyard.dev/retry", "");
    world.until_stage(3, "Share").await;
    controller.stop().await;
}

/// The calls that judge the plugin are made, although those of reconciles are not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_share_whose_plugin_is_paused_in_a_namespace_is_rolled_back() {
    let mut world = World::half();
    world.settings.plugins.rollout.interval = Duration::from_secs(3_600);
    world.cluster.delete("trainjobs", LATE, "queued");
    let controller = world.start("one").await;
    world.until_stamped(EARLY, "queued", "1.0.0").await;
    let fuel = || CallFailure::Limit {
        limit: Limit::Fuel(1),
        method: None,
    };
    world.upgrade(&failing_with(fuel));
    world.until_used_in_a_share(2).await;
    let names: Vec<_> = (0..8).map(|number| format!("late-{number}")).collect();
    for name in &names {
        world.cluster.put(job(EARLY, name, "stamped", false));
    }
    world.until_stage(2, "RolledBack").await;
    for name in &names {
        world.until_stamped(EARLY, name, "1.0.0").await;
    }
    controller.stop().await;
}

/// Such as those of a TrainJob whose kind of PodGroup is not installed: no revision would help it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn train_jobs_that_the_api_server_refuses_with_both_revisions_roll_nothing_back() {
    let world = World::half();
    world.cluster.delete("trainjobs", LATE, "queued");
    world.cluster.set_rule(|_, when, (verb, plural), body| {
        let is_write = when == When::Before && verb != "get" && plural == "jobsets";
        match is_write && body.to_string().contains("odd-") {
            true => Act::Forbid,
            false => Act::GoOn,
        }
    });
    for name in ["odd-a", "odd-b", "odd-c"] {
        world.cluster.put(job(EARLY, name, "stamped", false));
    }
    let controller = world.start("one").await;
    world.until_stamped(EARLY, "queued", "1.0.0").await;
    world.upgrade(&Artifact::second());
    world.until_stage(2, "Share").await;
    let has_ended = |_: &_| world.stage(2) != "Share";
    world.pass("the share has ended", has_ended).await;
    assert_eq!(world.stage(2), "Running");
    controller.stop().await;
}

/// The objects are rendered without an error, and the API server refuses them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_share_whose_objects_the_api_server_refuses_is_rolled_back() {
    let mut world = World::half();
    world.settings.plugins.rollout.interval = Duration::from_secs(3_600);
    let controller = world.start("one").await;
    world.until_stamped(EARLY, "queued", "1.0.0").await;
    world.cluster.set_rule(|_, when, (verb, plural), body| {
        let is_write = when == When::Before && verb != "get" && plural == "jobsets";
        match is_write && body.to_string().contains("example.com/more") {
            true => Act::Forbid,
            false => Act::GoOn,
        }
    });
    world.upgrade(&Artifact::second());
    world.until_used_in_a_share(2).await;
    for name in ["new-a", "new-b", "new-c"] {
        world.cluster.put(job(EARLY, name, "stamped", false));
    }
    world.until_stage(2, "RolledBack").await;
    assert_eq!(world.revisions()[1].2, "Failures");
    for name in ["new-a", "new-b", "new-c", "queued"] {
        world.until_stamped(EARLY, name, "1.0.0").await;
    }
    controller.stop().await;
}

/// Otherwise, a share would grow during an outage although its TrainJobs fail. A quota is the users' own, and they could keep it full.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_share_waits_for_the_answer_of_a_dry_run_and_not_for_a_full_quota() {
    for (act, stage, reason) in [
        (Act::Refuse, "Share", "FailuresNotCompared"),
        (Act::OverQuota, "Running", "Completed"),
    ] {
        let world = World::half();
        let controller = world.start("one").await;
        world.until_stamped(EARLY, "queued", "1.0.0").await;
        world
            .cluster
            .set_rule(move |_, when, (verb, plural), body| {
                let is_write = when == When::Before && verb != "get" && plural == "jobsets";
                let text = body.to_string();
                match is_write && text.contains("new-a") {
                    true if text.contains("example.com/more") => Act::Forbid,
                    true => act,
                    false => Act::GoOn,
                }
            });
        world.upgrade(&Artifact::second());
        world.until_used_in_a_share(2).await;
        world.cluster.put(job(EARLY, "new-a", "stamped", false));
        let is_so = |_: &_| world.revisions()[1].1 == stage && world.revisions()[1].2 == reason;
        world.pass(reason, is_so).await;
        // It is asked again.
        if stage == "Share" {
            let forbids = |_: &Cluster, when, (verb, plural): (&str, &str), body: &Value| {
                let is_write = when == When::Before && verb != "get" && plural == "jobsets";
                match is_write && body.to_string().contains("example.com/more") {
                    true => Act::Forbid,
                    false => Act::GoOn,
                }
            };
            world.cluster.set_rule(forbids);
            let is_known = |_: &_| world.revisions()[1].2 == "NewFailures";
            world.pass("it is known", is_known).await;
        }
        controller.stop().await;
    }
}

/// Users could otherwise roll any revision back: by TrainJobs that were refused, and that they have replaced by others of the same name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_api_server_does_not_refuse_any_more_rolls_nothing_back() {
    let world = World::half();
    world.cluster.delete("trainjobs", LATE, "queued");
    let controller = world.start("one").await;
    world.until_stamped(EARLY, "queued", "1.0.0").await;
    // A dry run creates, and a reconcile applies.
    world.cluster.set_rule(|_, when, call, body| {
        let is_apply = when == When::Before && call == ("patch", "jobsets");
        match is_apply && body.to_string().contains("example.com/more") {
            true => Act::Forbid,
            false => Act::GoOn,
        }
    });
    world.upgrade(&Artifact::second());
    world.until_used_in_a_share(2).await;
    for name in ["new-a", "new-b", "new-c"] {
        world.cluster.put(job(EARLY, name, "stamped", false));
    }
    let waits = |_: &_| world.revisions()[1].2 == "FailuresNotCompared";
    world.pass("the share waits", waits).await;
    assert_eq!(world.stage(2), "Share");
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_revision_is_rolled_back_on_request() {
    let mut world = World::half();
    world.settings.plugins.rollout.steps = Vec::new();
    let controller = world.start("one").await;
    world.until_stamped(EARLY, "queued", "1.0.0").await;
    world.upgrade(&Artifact::second());
    world.until_stamped(LATE, "queued", "2.0.0").await;
    world.annotate(2, "trainyard.dev/roll-back", "");
    world.until_stamped(LATE, "queued", "1.0.0").await;
    world.until_stage(2, "RolledBack").await;
    assert_eq!(world.stage(1), "Running");
    world
        .until_condition("stamp", "Active", "False", "RolledBack")
        .await;
    // A newer version is tried.
    world.upgrade(&Artifact::stamp("stamp", "3.0.0"));
    world.until_stamped(LATE, "queued", "3.0.0").await;
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_change_takes_the_place_of_one_that_is_rolled_out() {
    let world = World::half();
    let controller = world.start("one").await;
    world.until_stamped(EARLY, "queued", "1.0.0").await;
    world.upgrade(&Artifact::second());
    world.until_stage(2, "Share").await;
    world.upgrade(&Artifact::stamp("stamp", "3.0.0"));
    world.until_stage(3, "Running").await;
    world.until_stage(1, "Previous").await;
    assert_eq!(world.stage(2), "Superseded");
    // So does the way back.
    world.upgrade(&Artifact::second());
    world.until_stage(4, "Share").await;
    world.upgrade(&Artifact::stamp("stamp", "3.0.0"));
    world.until_stage(4, "Superseded").await;
    world.until_stamped(EARLY, "queued", "3.0.0").await;
    assert_eq!(world.revisions().len(), 4);
    controller.stop().await;
}

/// It was suspended before the last two changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_started_train_job_is_resumed_with_the_plugins_that_ran_before_although_others_are_in_a_share()
 {
    let world = World::half();
    let controller = world.start("one").await;
    world.cluster.put(job(LATE, "started", "stamped", false));
    world.until_stamped(LATE, "started", "1.0.0").await;
    let suspend = |is: bool| {
        let change = json!({"spec": {"suspend": is}});
        world.cluster.merge("trainjobs", LATE, "started", &change);
    };
    let is_suspended = |is: bool| {
        move |cluster: &Cluster| {
            cluster.get("jobsets", LATE, "started").unwrap()["spec"]["suspend"] == is
        }
    };
    suspend(true);
    world.until("it is suspended", is_suspended(true)).await;
    world.upgrade(&Artifact::second());
    world.until_stage(2, "Running").await;
    world.upgrade(&Artifact::stamp("stamp", "3.0.0"));
    world.until_stage(3, "Share").await;
    suspend(false);
    world.pass("it is resumed", is_suspended(false)).await;
    controller.stop().await;
    assert_eq!(world.stamp(LATE, "started").as_deref(), Some("1.0.0"));
    assert!(!world.events("started").contains("PlanPinned"));
}

/// The registry does not have the plugin that runs any more, and the new one refuses every TrainJob.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_the_same_as_what_the_running_plugins_cannot_render() {
    let world = World::half();
    world.running().await.stop().await;
    world.registry.lose(&Artifact::stamp("stamp", "1.0.0"));
    let controller = world.start("two").await;
    world
        .until_condition("stamp", "Pulled", "False", "NotFound")
        .await;
    let before = world.cluster.get("jobsets", LATE, "queued");
    world.upgrade(&Artifact::second().runs(|_: &mut Call| Err(trap())));
    world
        .until_condition("stamp", "Active", "False", "NotWatched")
        .await;
    assert_eq!(world.stage(2), "Share");
    // The repair of it is not proven either, until a person says so.
    world.upgrade(&Artifact::stamp("stamp", "3.0.0"));
    world.until_stage(3, "Share").await;
    world
        .until_condition("stamp", "Active", "False", "NotWatched")
        .await;
    assert_eq!(world.cluster.get("jobsets", LATE, "queued"), before);
    world.annotate(3, "trainyard.dev/accept", "failures");
    world.until_stamped(LATE, "queued", "3.0.0").await;
    controller.stop().await;
}

/// If the write succeeded, its answer would have the change, and the watch nothing new.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_at_the_moment_of_a_write_of_the_status_is_not_missed() {
    let world = World::half();
    let reference = world.registry.push(&Artifact::second());
    let spec = json!({"source": {"oci": {"reference": reference}}});
    let changed = AtomicBool::new(false);
    let (unguarded, counted) = (Arc::new(AtomicUsize::new(0)), Arc::default());
    let counts = (unguarded.clone(), Arc::clone(&counted));
    world.cluster.set_rule(move |cluster, when, call, body| {
        if when != When::Before || call != ("patch", "policyplugins") {
            return Act::GoOn;
        }
        let is_guarded = body["metadata"]["resourceVersion"].is_string();
        let count: &AtomicUsize = if is_guarded { &counts.1 } else { &counts.0 };
        count.fetch_add(1, Ordering::SeqCst);
        let is_last = body["status"]["replicas"]["current"] == 1;
        if is_last && !changed.swap(true, Ordering::SeqCst) {
            let change = |object: &mut Value| object["spec"] = spec.clone();
            cluster.edit("policyplugins", ("", "stamp"), change);
        }
        Act::GoOn
    });
    let _controller = world.start("one").await;
    world.until_stage(2, "Share").await;
    let [guarded, unguarded] = [counted, unguarded].map(|count| count.load(Ordering::SeqCst));
    assert!(guarded > 1 && unguarded == 0, "{guarded} {unguarded}");
}

/// The leader cannot load all plugins that run, so it does not see whether TrainJobs fail with the new ones alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_share_that_nobody_watches_says_what_it_waits_for() {
    let (world, controller) = World::left_in_a_share().await;
    controller.stop().await;
    let first = Artifact::stamp("stamp", "1.0.0");
    world.registry.break_it(&first);
    let controller = world.start("two").await;
    world
        .until_condition("stamp", "Active", "False", "NotWatched")
        .await;
    let message = &world.cluster.all("pluginrevisions")[1]["status"]["message"];
    for text in [
        message.as_str().unwrap(),
        &world.condition("stamp", "Active")[2],
    ] {
        assert!(text.contains("plugin stamp is skipped"), "{text}");
    }
    assert_eq!(world.stage(2), "Share");
    assert!(world.events("stamp").contains("RevisionShare"));
    world.registry.mend(&first);
    world
        .until_condition("stamp", "Active", "False", "RollingOut")
        .await;
    controller.stop().await;
}

/// The leader is killed at each stage, and another one goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_leader_continues_at_any_stage() {
    for stage in ["", "Shadow", "Share", "Running"] {
        let world = World::half();
        let controller = world.start("one").await;
        world.until_stamped(LATE, "queued", "1.0.0").await;
        // The write after that stage is refused, so the leader cannot go on.
        let held = stage.to_owned();
        world
            .cluster
            .set_rule(move |cluster, when, (verb, plural), body| {
                use crate::stub::cluster::{Act, When};
                let is_stage = verb == "patch"
                    && plural == "pluginrevisions"
                    && body["status"]["stage"].is_string();
                let all = cluster.all("pluginrevisions");
                let second = all.iter().find(|it| it["spec"]["number"] == 2);
                let now = second.map(|it| it["status"]["stage"].as_str().unwrap_or_default());
                match when == When::Before && is_stage && now == Some(&*held) {
                    true => Act::Refuse,
                    false => Act::GoOn,
                }
            });
        world.upgrade(&Artifact::second());
        let is_held = |_: &_| {
            world
                .revisions()
                .iter()
                .any(|it| it.0 == 2 && it.1 == stage)
        };
        world
            .pass(&format!("revision 2 is at {stage:?}"), is_held)
            .await;
        controller.kill().await;
        world.cluster.forget_rule();
        let controller = world.start("two").await;
        world.until_stage(2, "Running").await;
        world.until_stage(1, "Previous").await;
        world.until_stamped(LATE, "queued", "2.0.0").await;
        assert_eq!(world.revisions().len(), 2, "{stage}");
        controller.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_replica_loads_what_runs_and_reports_it() {
    let world = World::half().with_leader_election();
    let first = world.start("one").await;
    world.until_stamped(LATE, "queued", "1.0.0").await;
    let second_replica = world.start("two").await;
    let summary = |wanted: &'static str| {
        let world = &world;
        move |_: &_| {
            let object = world.cluster.get("policyplugins", "", "stamp").unwrap();
            object["status"]["replicas"]["summary"] == wanted
        }
    };
    world.pass("both have loaded it", summary("2/2")).await;
    world.upgrade(&Artifact::second());
    world.until_stage(2, "Running").await;
    world
        .pass("both have loaded the new one", summary("2/2"))
        .await;
    let plans = |value: &Value| {
        let replicas = value["status"]["replicas"].as_array().unwrap().iter();
        replicas
            .map(|it| it["plan"].as_str().unwrap().to_owned())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(plans(&world.cluster.all("pluginrevisions")[1]).len(), 1);
    // The other one takes over.
    first.stop().await;
    world.upgrade(&Artifact::stamp("stamp", "3.0.0"));
    world.until_stamped(LATE, "queued", "3.0.0").await;
    world.pass("one is left", summary("1/1")).await;
    second_replica.stop().await;
}
