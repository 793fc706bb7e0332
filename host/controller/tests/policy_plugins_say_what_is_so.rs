//! The status of a PolicyPlugin is about the revision that is used, and its condition `Active` says why the plugin is not used.

use std::time::Duration;

use serde_json::{Value, json};
use trainyard_controller::plugins::PluginCondition;

use crate::stub::declared::{Artifact, World};

/// A plugin that changes every TrainJob.
fn other() -> Artifact {
    Artifact::new("other", "1.0.0", "always", &["example.com/other"])
}

/// Returns the number of the revision in the status of the plugin `stamp`, its plan and the replicas that have it.
fn shown(world: &World) -> (u64, Value, String) {
    let status = world.cluster.get("policyplugins", "", "stamp").unwrap()["status"].clone();
    let revisions = world.cluster.all("pluginrevisions");
    let is_it = |it: &&Value| it["metadata"]["name"] == status["revision"];
    let revision = revisions.iter().find(is_it).unwrap();
    assert_eq!(status["plan"], revision["status"]["plan"]);
    let replicas = status["replicas"]["summary"].as_str().unwrap().to_owned();
    let number = revision["spec"]["number"].as_u64().unwrap();
    (number, status["plan"].clone(), replicas)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_runs_shows_the_running_revision_whatever_becomes_of_others() {
    let mut world = World::half();
    world.settings.plugins.rollout.interval = Duration::from_secs(3_600);
    let controller = world.running().await;
    let has_reported = |_: &_| shown(&world).2 == "1/1";
    world.pass("the replica has reported", has_reported).await;
    let before = shown(&world);
    assert_eq!(before.0, 1);
    world.declare("other", &world.registry.push(&other()));
    for (stage, reason) in [("Share", "RollingOut"), ("RolledBack", "RolledBack")] {
        world.until_stage(2, stage).await;
        world
            .until_condition("other", "Active", "False", reason)
            .await;
        assert_eq!(shown(&world), before, "{stage}");
        assert_eq!(world.condition("stamp", "Active")[1], "Running");
        world.annotate(2, "trainyard.dev/roll-back", "");
    }
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_another_plugin_blocks_says_so_although_an_old_revision_has_it() {
    let mut world = World::half();
    world.settings.plugins.rollout.interval = Duration::from_secs(3_600);
    let controller = world.running().await;
    world.upgrade(&Artifact::second());
    world.until_stage(2, "Share").await;
    world.upgrade(&Artifact::stamp("stamp", "3.0.0"));
    world.until_stage(2, "Superseded").await;
    let (other, condition) = (other(), PluginCondition::Verified);
    world.registry.refuse(&other, condition, "NotSigned");
    world.declare("other", &world.registry.push(&other));
    world.upgrade(&Artifact::second());
    world
        .until_condition("stamp", "Active", "False", "OthersFail")
        .await;
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_is_changed_back_while_another_one_fails_is_rolled_out_no_further() {
    let world = World::half();
    let controller = world.running().await;
    world.upgrade(&Artifact::second());
    world.until_stage(2, "Share").await;
    let (other, condition) = (other(), PluginCondition::Verified);
    world.registry.refuse(&other, condition, "NotSigned");
    world.declare("other", &world.registry.push(&other));
    world.upgrade(&Artifact::stamp("stamp", "1.0.0"));
    let waits = |_: &_| world.revisions()[1].2 == "OthersFail";
    world.pass("the share waits", waits).await;
    world
        .until_condition("stamp", "Active", "False", "RollingOut")
        .await;
    assert_eq!(world.stage(2), "Share");
    world.cluster.delete("policyplugins", "", "other");
    world
        .until_condition("stamp", "Active", "True", "Running")
        .await;
    assert_eq!(world.stage(2), "Superseded");
    controller.stop().await;
}

/// Such as one that is not allowed any more, and one that never was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disabled_plugin_that_cannot_be_pulled_stops_no_other_one() {
    let world = World::stamped();
    world.running().await.stop().await;
    let first = Artifact::stamp("stamp", "1.0.0");
    let never = Artifact::new("never", "1.0.0", "plugins", &["example.com/never"]);
    let sources = [&first, &never].map(|artifact| {
        let condition = PluginCondition::Pulled;
        let reason = "RepositoryNotAllowed";
        world.registry.refuse(artifact, condition, reason);
        json!({"oci": {"reference": world.registry.push(artifact)}})
    });
    world.declare_with("never", json!({"source": sources[1]}));
    let controller = world.start("two").await;
    world.declare("other", &world.registry.push(&other()));
    world
        .until_condition("other", "Active", "False", "OthersFail")
        .await;
    for (name, source) in ["stamp", "never"].iter().zip(&sources) {
        world.declare_with(name, json!({"source": source, "disabled": true}));
    }
    world
        .until_condition("other", "Active", "True", "Running")
        .await;
    for name in ["stamp", "never"] {
        world
            .until_condition(name, "Active", "False", "Disabled")
            .await;
        // It is said what will be wrong when it is enabled.
        let pulled = world.condition(name, "Pulled");
        assert_eq!(pulled[..2], ["False", "RepositoryNotAllowed"], "{name}");
    }
    // One that is built in is disabled even if its content was never available.
    let newest = world.cluster.all("pluginrevisions").pop().unwrap();
    let plugins = newest["spec"]["plugins"].as_array().unwrap().iter();
    let mut disabled = plugins.filter(|it| it["settings"]["disabled"] == true);
    assert!(disabled.any(|it| it["name"] == "never"), "{newest:#}");
    world.registry.accept(&first);
    world.declare_with("stamp", json!({"source": sources[0]}));
    world
        .until_condition("stamp", "Active", "True", "Running")
        .await;
    controller.stop().await;
}

/// Such as one that a later release wrote, or that was stored before its CRD had the field.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disabled_plugin_with_an_invalid_object_stops_no_other_one() {
    let world = World::stamped();
    let controller = world.running().await;
    world.declare_with("third", json!({"disabled": false, "mistyped": 1}));
    world.declare("other", &world.registry.push(&other()));
    world
        .until_condition("other", "Active", "False", "OthersFail")
        .await;
    world.declare_with("third", json!({"disabled": true, "mistyped": 1}));
    world
        .until_condition("other", "Active", "True", "Running")
        .await;
    world
        .until_condition("third", "Active", "False", "Disabled")
        .await;
    let [status, reason, message] = world.condition("third", "Loaded");
    assert_eq!([&*status, &*reason], ["False", "Invalid"]);
    assert!(message.contains("spec.mistyped"), "{message}");
    assert_eq!(world.condition("third", "Pulled")[1], "NotReached");
    controller.stop().await;
}

#[test]
fn every_reason_is_in_the_table_of_the_page() {
    let page = include_str!("../../../docs/plugins-in-the-cluster.md");
    let table: Vec<_> = page.lines().filter(|line| line.starts_with("| ")).collect();
    let sources = [
        include_str!("../src/plugins/status/active.rs"),
        include_str!("../src/plugins/status/conditions.rs"),
        include_str!("../src/plugins/status/found.rs"),
    ];
    let texts = sources
        .iter()
        .flat_map(|it| it.split('"').skip(1).step_by(2));
    let is_word = |text: &&str| {
        text.starts_with(char::is_uppercase) && text.chars().all(char::is_alphanumeric)
    };
    let reasons: Vec<_> = texts.filter(is_word).collect();
    assert!(reasons.contains(&"NotReached"), "{reasons:?}");
    for reason in reasons {
        let word = format!("`{reason}`");
        assert!(table.iter().any(|row| row.contains(&word)), "{reason}");
    }
}
