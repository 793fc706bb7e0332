//! A comparison of two revisions can be interrupted at any time, and another leader makes it anew. It depends on the plugins alone, and no
//! namespace takes the time of all.

use std::{
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
    controller::{job, runtime},
    declared::{Artifact, EARLY, STAMP, World},
};

/// A cluster in which a plugin runs.
fn world(first: &Artifact) -> World {
    let mut world = World::new();
    world.settings.plugins.rollout.steps = vec![50];
    world.cluster.put(runtime("stamped", &["stamp"]));
    world.cluster.put(job("ml", "queued", "stamped", true));
    world.upgrade(first);
    world
}

/// A version that differs, and does not end before it is let go.
fn blocked(has_begun: &Arc<AtomicBool>, may_end: &Arc<AtomicBool>) -> Artifact {
    let (has_begun, may_end) = (has_begun.clone(), may_end.clone());
    Artifact::stamp("stamp", "2.0.0").runs(move |call: &mut Call| {
        has_begun.store(true, Ordering::SeqCst);
        while !may_end.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let info = call.context_info(Call::CONTEXT)?;
        Ok(call.info_set_annotation(info, STAMP, "2.0.0")?)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_leader_makes_an_interrupted_comparison_anew() {
    for loses_lease in [false, true] {
        let world = world(&Artifact::stamp("stamp", "1.0.0")).with_leader_election();
        let [has_begun, may_end] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let controller = world.start("one").await;
        world.until_stamped("ml", "queued", "1.0.0").await;
        world.upgrade(&blocked(&has_begun, &may_end));
        let begins = |_: &_| has_begun.load(Ordering::SeqCst);
        world.pass("the comparison has begun", begins).await;
        let lease = world.cluster.all("leases").remove(0);
        let name = lease["metadata"]["name"].as_str().unwrap();
        let namespace = lease["metadata"]["namespace"].as_str().unwrap();
        if loses_lease {
            let other = json!({"spec": {"holderIdentity": "other"}});
            world.cluster.merge("leases", namespace, name, &other);
            let error = controller.ended().await.to_string();
            assert!(error.contains("Lease"), "{error}");
        } else {
            controller.kill().await;
        }
        assert_eq!(world.stage(2), "Shadow");
        let status = &world.cluster.all("pluginrevisions")[1]["status"];
        assert_eq!(
            (&status["reason"], &status["shadow"]),
            (&json!("Comparing"), &Value::Null)
        );
        world.cluster.delete("leases", namespace, name);
        may_end.store(true, Ordering::SeqCst);
        let controller = world.start("two").await;
        world.until_stage(2, "Share").await;
        let shadow = &world.cluster.all("pluginrevisions")[1]["status"]["shadow"];
        assert_eq!(
            (&shadow["runtimes"], &shadow["trainJobs"]),
            (&json!(1), &json!(1))
        );
        controller.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_namespace_and_of_a_runtime_a_limited_number_is_compared() {
    let world = world(&Artifact::stamp("stamp", "1.0.0"));
    // 12 of one runtime, and 25 of runtimes of their own, in one namespace.
    for number in 0..25 {
        let name = format!("own-{number}");
        let mut of_namespace = runtime(&name, &["stamp"]);
        of_namespace["kind"] = "TrainingRuntime".into();
        of_namespace["metadata"]["namespace"] = "crowded".into();
        world.cluster.put(of_namespace);
        let mut train_job = job("crowded", &name, &name, true);
        train_job["spec"]["runtimeRef"]["kind"] = "TrainingRuntime".into();
        world.cluster.put(train_job);
    }
    for number in 0..12 {
        let name = format!("shared-{number}");
        world.cluster.put(job("busy", &name, "stamped", true));
    }
    let controller = world.start("one").await;
    world.until_stamped("ml", "queued", "1.0.0").await;
    let all = |cluster: &Cluster| cluster.count("jobsets") == 38;
    world.pass("all are rendered", all).await;
    world.upgrade(&Artifact::new(
        "stamp",
        "2.0.0",
        "plugins",
        &[STAMP, "example.com/more"],
    ));
    world.until_stage(2, "Share").await;
    let shadow = &world.cluster.all("pluginrevisions")[1]["status"]["shadow"];
    // 20 runtimes and 20 TrainJobs of the crowded namespace, and 10 TrainJobs of the runtime that the others share.
    assert_eq!(
        (&shadow["runtimes"], &shadow["trainJobs"]),
        (&json!(1 + 20), &json!(20 + 10)),
    );
    controller.stop().await;
}

/// Puts TrainJobs into a namespace, with a runtime there.
fn put_with_own_runtime(world: &World, namespace: &str, name: &str, count: usize) {
    let mut of_namespace = runtime("own", &["stamp"]);
    of_namespace["kind"] = "TrainingRuntime".into();
    of_namespace["metadata"]["namespace"] = namespace.into();
    world.cluster.put(of_namespace);
    for number in 0..count {
        let mut train_job = job(namespace, &format!("{name}-{number}"), "own", true);
        train_job["spec"]["runtimeRef"]["kind"] = "TrainingRuntime".into();
        world.cluster.put(train_job);
    }
}

/// The plugin exhausts its limits for TrainJobs named `slow`, and refuses those of another name.
fn slow(version: &'static str, refused: &'static str) -> Artifact {
    Artifact::stamp("stamp", version).runs(move |call: &mut Call| {
        let job = call.context_job(Call::CONTEXT)?;
        let name = call.job_name(job)?;
        if name.starts_with("slow") {
            let limit = Limit::Fuel(1);
            return Err(CallFailure::Limit {
                limit,
                method: None,
            });
        }
        if name.starts_with(refused) {
            return Err(CallFailure::Trap {
                kind: "unreachable".to_owned(),
                message: None,
            });
        }
        let info = call.context_info(Call::CONTEXT)?;
        Ok(call.info_set_annotation(info, STAMP, version)?)
    })
}

/// TrainJobs of others whose calls exhaust their limits with both revisions cannot hide what only the new one refuses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_is_found_beside_namespaces_that_exhaust_all_limits() {
    let world = world(&slow("1.0.0", "nothing"));
    for number in 0..6 {
        put_with_own_runtime(&world, &format!("a-{number}"), "slow", 7);
    }
    put_with_own_runtime(&world, "z", "victim", 1);
    let controller = world.start("one").await;
    world.until_stamped("z", "victim-0", "1.0.0").await;
    world.upgrade(&slow("2.0.0", "victim"));
    world
        .until_condition("stamp", "Active", "False", "NewRefusals")
        .await;
    let shadow = &world.cluster.all("pluginrevisions")[1]["status"]["shadow"];
    assert_eq!(shadow["refused"], 1);
    controller.stop().await;
}

/// Each of these renderings takes as long as the limits allow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_calls_that_exhaust_their_limits_a_limited_number_is_made() {
    for (namespaces, wanted) in [(1, 5), (3, 15), (6, 20)] {
        let world = world(&Artifact::stamp("stamp", "1.0.0"));
        for number in 0..namespaces {
            put_with_own_runtime(&world, &format!("slow-{number}"), "slow", 7);
        }
        let controller = world.start("one").await;
        let count = 1 + 7 * namespaces;
        let all = |cluster: &Cluster| cluster.count("jobsets") == count;
        world.pass("all are rendered", all).await;
        let calls = Arc::new(AtomicUsize::new(0));
        let counts = calls.clone();
        let slow = Artifact::stamp("stamp", "2.0.0").runs(move |call: &mut Call| {
            let job = call.context_job(Call::CONTEXT)?;
            if call.job_name(job)?.starts_with("slow") {
                counts.fetch_add(1, Ordering::SeqCst);
                let limit = Limit::Fuel(1);
                return Err(CallFailure::Limit {
                    limit,
                    method: None,
                });
            }
            Ok(())
        });
        world.upgrade(&slow);
        world
            .until_condition("stamp", "Active", "False", "NewRefusals")
            .await;
        assert_eq!(calls.load(Ordering::SeqCst), wanted, "{namespaces}");
        let shadow = &world.cluster.all("pluginrevisions")[1]["status"]["shadow"];
        assert_eq!(shadow["refused"], wanted);
        controller.stop().await;
    }
}

/// Such as a Node that two versions of a plugin read one after the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_changes_during_a_comparison_is_no_difference() {
    let looks = |version: &str, annotations: &[&str]| {
        let looks = Artifact::new("stamp", version, "plugins", annotations);
        looks
            .looks_up("lookups[v1/Node/moves]")
            .runs(|call: &mut Call| {
                let lookups = call.context_lookups(Call::CONTEXT)?;
                let found = call.lookups_find(lookups, "v1", "Node", "moves")?;
                let info = call.context_info(Call::CONTEXT)?;
                Ok(call.info_set_annotation(info, STAMP, &found.is_some().to_string())?)
            })
    };
    let world = world(&looks("1.0.0", &[STAMP]));
    let controller = world.start("one").await;
    world.until_stamped("ml", "queued", "false").await;
    let changes = Arc::new(AtomicUsize::new(0));
    let counts = changes.clone();
    world.cluster.set_rule(move |cluster, when, call, _| {
        let all = cluster.all("pluginrevisions");
        let is_compared = all.iter().any(|it| it["status"]["reason"] == "Comparing");
        if is_compared && when == When::Done && call == ("get", "nodes") {
            counts.fetch_add(1, Ordering::SeqCst);
            match cluster.get("nodes", "", "moves") {
                Some(_) => cluster.delete("nodes", "", "moves"),
                None => cluster.put(
                    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "moves"}}),
                ),
            }
        }
        Act::GoOn
    });
    world.upgrade(&looks("2.0.0", &[STAMP, "example.com/more"]));
    world.until_stage(2, "Running").await;
    assert_eq!(world.revisions()[1].2, "NoDifference");
    assert!(changes.load(Ordering::SeqCst) > 0);
    controller.stop().await;
}

/// A version that refuses TrainJobs named `late`.
fn refusing() -> Artifact {
    Artifact::new("stamp", "2.0.0", "plugins", &[STAMP, "example.com/more"]).runs(
        |call: &mut Call| {
            let info = call.context_info(Call::CONTEXT)?;
            call.info_set_annotation(info, STAMP, "2.0.0")?;
            let job = call.context_job(Call::CONTEXT)?;
            match call.job_name(job)?.starts_with("late") {
                true => Err(CallFailure::Trap {
                    kind: "unreachable".to_owned(),
                    message: None,
                }),
                false => Ok(()),
            }
        },
    )
}

/// The running version does not end for TrainJobs that are checked because they fail, and each of them takes as long as the limits allow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_share_is_rolled_back_on_request_while_its_failures_are_checked() {
    let [has_begun, may_end] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let (begins, ends) = (has_begun.clone(), may_end.clone());
    let first = Artifact::stamp("stamp", "1.0.0").runs(move |call: &mut Call| {
        let job = call.context_job(Call::CONTEXT)?;
        if call.job_name(job)?.starts_with("late") {
            begins.store(true, Ordering::SeqCst);
            while !ends.load(Ordering::SeqCst) {
                std::thread::park_timeout(Duration::from_millis(10));
            }
        }
        let info = call.context_info(Call::CONTEXT)?;
        Ok(call.info_set_annotation(info, STAMP, "1.0.0")?)
    });
    let mut world = World::half();
    world.settings.plugins.rollout.interval = Duration::from_secs(36_000);
    world.upgrade(&first);
    let controller = world.start("one").await;
    world.until_stamped(EARLY, "queued", "1.0.0").await;
    world.upgrade(&refusing());
    world.until_used_in_a_share(2).await;
    for number in 0..5 {
        let name = format!("late-{number}");
        world.cluster.put(job(EARLY, &name, "stamped", false));
    }
    let is_checked = |_: &_| has_begun.load(Ordering::SeqCst);
    world.pass("the failures are checked", is_checked).await;
    world.annotate(2, "trainyard.dev/roll-back", "");
    // In no time of the clock.
    let is_back = |_: &_| world.stage(2) == "RolledBack";
    world.until("it is rolled back", is_back).await;
    assert_eq!(world.revisions()[1].2, "Requested");
    may_end.store(true, Ordering::SeqCst);
    controller.stop().await;
}
