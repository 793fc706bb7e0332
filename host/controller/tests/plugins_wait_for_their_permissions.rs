//! A plugin whose lookups the controller may not make is not used before it may. Its condition says which ClusterRole is missing, and what runs
//! keeps running.

use crate::stub::{
    cluster::{Act, When},
    controller::{Controller, job, runtime},
    declared::{Artifact, World},
};

const LOOKUP: &str = "lookups[v1/Node/*]";

/// A cluster in which a plugin without lookups runs.
async fn running() -> (World, Controller) {
    let world = World::new();
    world.cluster.put(runtime("stamped", &["stamp"]));
    world.cluster.put(job("ml", "queued", "stamped", true));
    let reference = world.registry.push(&Artifact::stamp("stamp", "1.0.0"));
    world.declare("stamp", &reference);
    let controller = world.start("one").await;
    world.until_stamped("ml", "queued", "1.0.0").await;
    (world, controller)
}

/// Declares a version that looks up Nodes.
fn upgrade(world: &World) {
    upgrade_to(world, LOOKUP);
}

fn upgrade_to(world: &World, lookup: &str) {
    let newer = Artifact::stamp("stamp", "2.0.0").looks_up(lookup);
    let reference = world.registry.push(&newer);
    world.declare("stamp", &reference);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_permissions_are_named_and_what_runs_stays() {
    let (world, controller) = running().await;
    world.cluster.deny("nodes");
    upgrade(&world);
    world
        .until_condition("stamp", "Permitted", "False", "MissingPermissions")
        .await;
    let [_, _, message] = world.condition("stamp", "Permitted");
    for part in [
        "ClusterRole trainyard:plugin:stamp",
        "`trainyard rbac -f FILE`",
        r#"[{"apiGroups":[""],"resources":["nodes"],"verbs":["get","list","watch"]}]"#,
    ] {
        assert!(message.contains(part), "{message}");
    }
    for (kind, status) in [
        ("Pulled", "True"),
        ("Loaded", "True"),
        ("Conflicting", "False"),
    ] {
        assert_eq!(world.condition("stamp", kind)[0], status, "{kind}");
    }
    let [status, reason, message] = world.condition("stamp", "Active");
    assert_eq!((&*status, &*reason), ("False", "MissingPermissions"));
    assert!(
        message.contains("keeps running with version 1.0.0"),
        "{message}"
    );
    assert_eq!(world.revisions().len(), 1);
    let inactive =
        "trainyard_policy_plugin_inactive{plugin=\"stamp\",reason=\"MissingPermissions\"} 1";
    assert!(world.metrics().text().unwrap().contains(inactive));
    world.cluster.put(job("ml", "new", "stamped", true));
    world.until_stamped("ml", "new", "1.0.0").await;
    // Nobody changes the PolicyPlugin.
    world.cluster.permit("nodes");
    world.until_stamped("ml", "new", "2.0.0").await;
    world
        .until_condition("stamp", "Active", "True", "Running")
        .await;
    assert_eq!(
        world.condition("stamp", "Permitted")[..2],
        ["True", "Permitted"]
    );
    let text = world.metrics().text().unwrap();
    assert!(
        !text.contains("trainyard_policy_plugin_inactive{"),
        "{text}"
    );
    controller.stop().await;
}

/// `trainyard rbac` guesses `queues`, which the operator corrects.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permissions_are_asked_for_by_the_name_of_the_resource_that_is_served() {
    let (world, controller) = running().await;
    world.cluster.deny("queues");
    world.cluster.deny("kai-queues");
    upgrade_to(&world, "lookups[scheduling.run.ai/v2/Queue/*]");
    world
        .until_condition("stamp", "Permitted", "False", "MissingPermissions")
        .await;
    let [_, _, message] = world.condition("stamp", "Permitted");
    let rule = r#"{"apiGroups":["scheduling.run.ai"],"resources":["kai-queues"],"verbs":["get","list","watch"]}"#;
    assert!(message.contains(rule), "{message}");
    world.cluster.permit("kai-queues");
    world.until_stamped("ml", "queued", "2.0.0").await;
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_used_while_the_api_server_does_not_say() {
    let (world, controller) = running().await;
    world
        .cluster
        .set_rule(|_, when, (verb, plural), _| match (when, verb, plural) {
            (When::Before, "create", "selfsubjectaccessreviews") => Act::Forbid,
            _ => Act::GoOn,
        });
    upgrade(&world);
    world
        .until_condition("stamp", "Permitted", "False", "Unknown")
        .await;
    assert_eq!(world.revisions().len(), 1);
    world.cluster.forget_rule();
    world.until_stamped("ml", "queued", "2.0.0").await;
    controller.stop().await;
}
