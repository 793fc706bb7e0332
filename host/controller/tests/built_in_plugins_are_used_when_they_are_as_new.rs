//! A plugin that replaces a built-in one is not used any more when an image ships a built-in plugin that is as new, and is used again when the
//! image is rolled back. Neither stops other changes of plugins.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::stub::{
    controller::{job, runtime},
    declared::{Artifact, World},
};

const NAMESPACE: &str = "ml";

/// A cluster with a queued TrainJob, whose runtime uses the built-in plugin `stamp`.
fn world() -> World {
    let world = World::new();
    world.registry.ship(&Artifact::stamp("stamp", "1.0.0"));
    world.cluster.put(runtime("stamped", &["stamp"]));
    let queued = job(NAMESPACE, "queued", "stamped", true);
    world.cluster.put(queued);
    let reference = world.registry.push(&Artifact::stamp("stamp", "2.0.0"));
    world.declare("stamp", &reference);
    world
}

fn job_set(world: &World, name: &str) -> Value {
    world.cluster.get("jobsets", NAMESPACE, name).unwrap()
}

async fn until_built_in_is_used(world: &World) {
    let reason = "BuiltInIsNewer";
    world
        .until_condition("stamp", "Loaded", "False", reason)
        .await;
    world
        .until_condition("stamp", "Active", "False", reason)
        .await;
}

/// Nothing was pulled or verified.
fn assert_not_used(world: &World) {
    for kind in ["Pulled", "Verified"] {
        let condition = world.condition("stamp", kind);
        assert_eq!(condition[..2], ["Unknown", "NotUsed"], "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upgrade_of_the_image_and_back_changes_which_one_is_used_and_no_revision() {
    let world = world();
    let controller = world.start("one").await;
    world.until_stamped(NAMESPACE, "queued", "2.0.0").await;
    world
        .until_condition("stamp", "Active", "True", "Running")
        .await;
    let (revisions, first) = (world.revisions(), job_set(&world, "queued"));
    controller.stop().await;

    // The image is upgraded.
    world.registry.ship(&Artifact::stamp("stamp", "2.0.0"));
    let controller = world.start("two").await;
    until_built_in_is_used(&world).await;
    let message = world.condition("stamp", "Loaded").concat();
    assert!(message.contains("is not newer than 2.0.0"), "{message}");
    assert_not_used(&world);
    controller.stop().await;

    world.registry.ship(&Artifact::stamp("stamp", "3.0.0"));
    let controller = world.start("three").await;
    world.until_stamped(NAMESPACE, "queued", "3.0.0").await;
    until_built_in_is_used(&world).await;
    assert_eq!(world.revisions(), revisions);
    assert!(world.events("queued").is_empty());
    let upgraded = job_set(&world, "queued");
    assert_eq!(upgraded["metadata"]["uid"], first["metadata"]["uid"]);
    // Its annotations tell what it was rendered with.
    let annotation = |job_set: &Value, name: &str| {
        let name = format!("trainyard.dev/{name}");
        job_set["metadata"]["annotations"][name].clone()
    };
    for name in ["inputs", "plugins"] {
        assert_ne!(
            annotation(&upgraded, name),
            annotation(&first, name),
            "{name}"
        );
    }
    controller.stop().await;

    // The same image again, without the registry: nothing of the plugin is needed, and nothing is written.
    world.registry.set_down(true);
    let controller = world.start("four").await;
    let later = job(NAMESPACE, "later", "stamped", true);
    world.cluster.put(later);
    world.until_stamped(NAMESPACE, "later", "3.0.0").await;
    assert_eq!(job_set(&world, "queued"), upgraded);
    controller.stop().await;
    world.registry.set_down(false);

    // The image is rolled back.
    world.registry.ship(&Artifact::stamp("stamp", "1.0.0"));
    let controller = world.start("five").await;
    world.until_stamped(NAMESPACE, "queued", "2.0.0").await;
    world
        .until_condition("stamp", "Active", "True", "Running")
        .await;
    assert_eq!(world.condition("stamp", "Loaded")[1], "Loaded");
    let back = job_set(&world, "queued");
    for name in ["inputs", "plugins"] {
        assert_eq!(annotation(&back, name), annotation(&first, name), "{name}");
    }
    assert_eq!(world.revisions(), revisions);
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_plugins_change_while_a_built_in_one_is_used() {
    let world = world();
    world.registry.ship(&Artifact::stamp("stamp", "3.0.0"));
    let controller = world.start("one").await;
    world.until_stamped(NAMESPACE, "queued", "3.0.0").await;
    until_built_in_is_used(&world).await;
    let other = Artifact::new("other", "1.0.0", "plugins", &["example.com/other"]);
    let reference = world.registry.push(&other);
    world.declare("other", &reference);
    world.until_stage(2, "Running").await;
    world
        .until_condition("other", "Active", "True", "Running")
        .await;
    until_built_in_is_used(&world).await;
    // The operator uses a newer one.
    let reference = world.registry.push(&Artifact::stamp("stamp", "4.0.0"));
    world.declare("stamp", &reference);
    world.until_stamped(NAMESPACE, "queued", "4.0.0").await;
    world
        .until_condition("stamp", "Active", "True", "Running")
        .await;
    let reasons: BTreeSet<_> = world.events("stamp");
    assert!(reasons.contains("RevisionRunning"), "{reasons:?}");
    controller.stop().await;
}

/// The registry is not asked for what is not used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_plugins_change_although_the_registry_lost_the_one_that_is_not_used() {
    let world = world();
    let controller = world.start("one").await;
    world.until_stamped(NAMESPACE, "queued", "2.0.0").await;
    controller.stop().await;
    world.registry.ship(&Artifact::stamp("stamp", "3.0.0"));
    world.registry.lose(&Artifact::stamp("stamp", "2.0.0"));
    let controller = world.start("two").await;
    until_built_in_is_used(&world).await;
    assert_not_used(&world);
    let other = Artifact::new("other", "1.0.0", "plugins", &["example.com/other"]);
    world.declare("other", &world.registry.push(&other));
    world
        .until_condition("other", "Active", "True", "Running")
        .await;
    controller.stop().await;
}
