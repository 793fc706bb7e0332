//! The status of a PolicyPlugin is about the revision that is used, and its condition `Active` says why the plugin is not used.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::time::Duration;

use serde_json::Value;
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
        world.annotate(2, "trainyard.dev/roll-back");
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
