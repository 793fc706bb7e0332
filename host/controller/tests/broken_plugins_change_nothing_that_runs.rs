//! PolicyPlugins that conflict, cannot be pulled or cannot be loaded say so in their conditions. What runs keeps running, and so it does if the
//! objects or their kinds are removed, or a revision was not written by a controller of this release.

use std::time::Duration;

use serde_json::{Value, json};
use trainyard_config::policy_plugin::PluginRevisionSpec;
use trainyard_controller::{
    certificate::Clock as _, plugins::PluginCondition, settings::PluginsSource,
};

use crate::stub::{
    cluster::{Act, Cluster, When},
    controller::{job, runtime},
    declared::{Artifact, STAMP, World},
};

/// TrainJobs that are created now are rendered with the first revision.
async fn assert_running(world: &World, name: &str) {
    world.cluster.put(job("ml", name, "stamped", true));
    world.until_stamped("ml", name, "1.0.0").await;
    assert_eq!(world.stage(1), "Running");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_conflicts_with_two_others_names_both() {
    let world = World::stamped();
    let controller = world.running().await;
    for name in ["other", "third"] {
        let artifact = Artifact::stamp(name, "1.0.0");
        world.declare(name, &world.registry.push(&artifact));
    }
    let names_both = |_: &Cluster| {
        let [status, _, message] = world.condition("stamp", "Conflicting");
        let mut others = ["other", "third"].iter();
        status == "True" && others.all(|name| message.contains(name))
    };
    world.pass("both are named", names_both).await;
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_plugins_that_conflict_both_name_the_path() {
    let world = World::stamped();
    let controller = world.running().await;
    let other = world.registry.push(&Artifact::stamp("other", "1.0.0"));
    world.declare("other", &other);
    for name in ["stamp", "other"] {
        world
            .until_condition(name, "Conflicting", "True", "Conflict")
            .await;
        let [_, _, message] = world.condition(name, "Conflicting");
        for part in ["stamp", "other", "annotations[example.com/stamp]"] {
            assert!(message.contains(part), "{message}");
        }
    }
    assert_eq!(world.condition("other", "Pulled")[0], "True");
    let [status, reason, message] = world.condition("stamp", "Active");
    assert_eq!((&*status, &*reason), ("False", "Conflict"));
    assert!(message.contains("keeps running"), "{message}");
    assert_eq!(world.revisions().len(), 1);
    assert_running(&world, "new").await;
    // It ends with the cause.
    world.cluster.delete("policyplugins", "", "other");
    world
        .until_condition("stamp", "Active", "True", "Running")
        .await;
    controller.stop().await;
}

/// Nothing is said of what nobody has found out.
fn assert_not_reached(world: &World, kinds: &[&str]) {
    for kind in kinds {
        let condition = world.condition("stamp", kind);
        assert_eq!(condition[..2], ["Unknown", "NotReached"], "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_plugin_says_why() {
    let world = World::stamped();
    let controller = world.running().await;
    let unsigned = Artifact::stamp("stamp", "2.0.0");
    let reference = world.registry.push(&unsigned);
    world
        .registry
        .refuse(&unsigned, PluginCondition::Verified, "WrongSigner");
    world.declare("stamp", &reference);
    world
        .until_condition("stamp", "Verified", "False", "WrongSigner")
        .await;
    assert_eq!(world.condition("stamp", "Loaded")[1], "NotReached");
    assert_eq!(
        world.condition("stamp", "Pulled")[..2],
        ["Unknown", "NotReached"]
    );
    // It has the name of another plugin, and what came before is not known.
    let misnamed = Artifact::stamp("stamp", "2.1.0");
    let reference = world.registry.push(&misnamed);
    world
        .registry
        .refuse(&misnamed, PluginCondition::Loaded, "WrongName");
    world.declare("stamp", &reference);
    world
        .until_condition("stamp", "Loaded", "False", "WrongName")
        .await;
    assert_not_reached(&world, &["Pulled", "Verified", "Conflicting", "Permitted"]);
    let broken = Artifact::stamp("stamp", "3.0.0");
    let reference = world.registry.push(&broken);
    world.registry.break_it(&broken);
    world.declare("stamp", &reference);
    world
        .until_condition("stamp", "Loaded", "False", "NotAComponent")
        .await;
    assert_eq!(world.condition("stamp", "Pulled")[..2], ["True", "Pulled"]);
    assert_eq!(world.condition("stamp", "Verified")[1], "Signed");
    world.declare("stamp", "registry.example/stamp@sha256:0000000000000000000000000000000000000000000000000000000000000000");
    world
        .until_condition("stamp", "Pulled", "False", "NotFound")
        .await;
    // What a CRD cannot check.
    world.declare("stamp", "registry.example/stamp:latest");
    world
        .until_condition("stamp", "Loaded", "False", "Invalid")
        .await;
    assert!(world.condition("stamp", "Loaded")[2].contains("follow: true"));
    assert_not_reached(&world, &["Pulled", "Verified", "Conflicting", "Permitted"]);
    assert_eq!(world.revisions().len(), 1);
    assert_running(&world, "new").await;
    controller.stop().await;
}

/// Such as a grant for a version of the plugin that has not been declared yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_a_plugin_does_not_claim_is_a_warning() {
    let world = World::stamped();
    let controller = world.running().await;
    let reference = world.registry.push(&Artifact::stamp("stamp", "2.0.0"));
    let source = json!({"oci": {"reference": reference}});
    let unused = "labels[example.com/unused]";
    world.declare_with("stamp", json!({"source": source, "grants": [unused]}));
    let warns = ("stamp", "Loaded", "True", "LoadedWithWarnings");
    world
        .until_condition(warns.0, warns.1, warns.2, warns.3)
        .await;
    let message = world.condition("stamp", "Loaded").concat();
    assert!(message.contains(unused), "{message}");
    // It stops nothing.
    world.until_stamped("ml", "queued", "2.0.0").await;
    world
        .until_condition("stamp", "Active", "True", "Running")
        .await;
    controller.stop().await;
    // Another leader finds it out again.
    world
        .cluster
        .edit("policyplugins", ("", "stamp"), |object: &mut Value| {
            object["status"] = json!({});
        });
    let controller = world.start("two").await;
    world
        .until_condition(warns.0, warns.1, warns.2, warns.3)
        .await;
    world.declare("stamp", &reference);
    world
        .until_condition("stamp", "Loaded", "True", "Loaded")
        .await;
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tag_is_followed_to_newer_versions_only() {
    let world = World::stamped();
    let tag = "registry.example/stamp:stable";
    world.registry.tag(tag, &Artifact::stamp("stamp", "1.0.0"));
    world.declare_with(
        "stamp",
        json!({"source": {"oci": {"reference": tag, "follow": true}}}),
    );
    let controller = world.running().await;
    // The same version with other content, and an older one.
    for moved in [
        Artifact::new("stamp", "1.0.0", "plugins", &[STAMP, "example.com/stolen"]),
        Artifact::stamp("stamp", "0.9.0"),
    ] {
        world.registry.tag(tag, &moved);
        world.clock.advance(Duration::from_secs(400));
        world
            .until_condition("stamp", "Pulled", "True", "NotFollowed")
            .await;
        assert_eq!(world.revisions().len(), 1);
        world.registry.tag(tag, &Artifact::stamp("stamp", "1.0.0"));
        world.clock.advance(Duration::from_secs(400));
        world
            .until_condition("stamp", "Pulled", "True", "Pulled")
            .await;
    }
    world.registry.tag(tag, &Artifact::stamp("stamp", "1.1.0"));
    world.clock.advance(Duration::from_secs(400));
    world.until_stamped("ml", "queued", "1.1.0").await;
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_that_are_deleted_change_nothing() {
    let world = World::stamped();
    let controller = world.running().await;
    // The revision is created again.
    let name = world.cluster.all("pluginrevisions")[0]["metadata"]["name"].clone();
    let delete = || {
        let name = name.as_str().unwrap();
        world.cluster.delete("pluginrevisions", "", name);
    };
    let restored = [(1, "Running".to_owned(), "Restored".to_owned())];
    let is_restored = |_: &Cluster| world.revisions() == restored;
    delete();
    world.pass("it runs again", is_restored).await;
    let is_told = |_: &Cluster| world.events("stamp").contains("RevisionRunning");
    world.pass("it is told", is_told).await;
    // As if the CRD were removed.
    world.cluster.delete("policyplugins", "", "stamp");
    world.until_stage(2, "Shadow").await;
    world
        .pass("the revision waits", |_| {
            world.revisions().iter().any(|it| it.2 == "RemovesPlugins")
        })
        .await;
    world.cluster.put(job("ml", "new", "stamped", true));
    world.until_stamped("ml", "new", "1.0.0").await;
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kinds_that_are_not_served_any_more_change_nothing() {
    let world = World::stamped();
    let controller = world.running().await;
    for kind in ["policyplugins", "pluginrevisions"] {
        world.cluster.stop_serving(kind);
    }
    world.clock.advance(Duration::from_secs(600));
    world.cluster.put(job("ml", "new", "stamped", true));
    world.until_stamped("ml", "new", "1.0.0").await;
    controller.stop().await;
}

/// The kinds are missing when the process starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_reconciled_before_the_kinds_are_served() {
    let world = World::stamped();
    for kind in ["policyplugins", "pluginrevisions"] {
        world.cluster.stop_serving(kind);
    }
    let controller = world.start("one").await;
    let watches = |cluster: &Cluster| cluster.traffic("watch", "trainjobs").calls >= 1;
    world.until("the controller watches", watches).await;
    assert_eq!(world.cluster.count("jobsets"), 0);
    for kind in ["policyplugins", "pluginrevisions"] {
        world.cluster.start_serving(kind);
    }
    world.until_stamped("ml", "queued", "1.0.0").await;
    controller.stop().await;
}

fn revision_with(world: &World, change: impl FnOnce(&mut Value)) -> Value {
    let mut revision = world.cluster.all("pluginrevisions")[0].clone();
    revision["metadata"] = json!({"name": revision["metadata"]["name"]});
    revision["spec"]["number"] = 7.into();
    change(&mut revision);
    revision
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revision_that_no_controller_wrote_is_ignored() {
    let world = World::stamped();
    let controller = world.running().await;
    let forged = revision_with(&world, |revision| {
        revision["metadata"]["name"] = "rev-7-0000000000000000".into();
        revision["spec"]["plugins"] = json!([]);
        revision["status"] = json!({"stage": "Running", "percent": 100});
    });
    world.cluster.put(forged);
    world
        .until("an Event says so", |_| {
            !world.events("rev-7-0000000000000000").is_empty()
        })
        .await;
    assert!(
        world
            .events("rev-7-0000000000000000")
            .contains("RevisionIgnored")
    );
    assert_running(&world, "new").await;
    controller.stop().await;
}

/// A later release has led.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_does_not_lead_with_a_revision_of_a_later_release() {
    for change in [
        (|spec: &mut Value| spec["format"] = 2.into()) as fn(&mut Value),
        |spec: &mut Value| spec["later"] = json!({"a": 1}),
    ] {
        let world = World::stamped();
        let controller = world.running().await;
        let later = revision_with(&world, |revision| {
            let spec: PluginRevisionSpec =
                serde_json::from_value(revision["spec"].clone()).unwrap();
            revision["metadata"]["name"] = spec.name().into();
            change(&mut revision["spec"]);
            revision["status"] = json!({"stage": "Running", "percent": 100});
        });
        world.cluster.put(later);
        let error = controller.ended().await.to_string();
        assert!(
            error.contains("upgrade")
                && error.ends_with("; this replica does not reconcile TrainJobs"),
            "{error}"
        );
        // Nor does it after a restart.
        let controller = world.start("two").await;
        world.cluster.put(job("ml", "new", "stamped", true));
        let watches = |cluster: &Cluster| cluster.traffic("watch", "trainjobs").calls >= 2;
        world.until("the controller watches", watches).await;
        assert_eq!(world.stamp("ml", "new"), None);
        controller.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_permissions_are_a_condition() {
    let world = World::stamped();
    world.cluster.set_rule(|_, when, call, _| {
        match when == When::Before && call == ("create", "pluginrevisions") {
            true => Act::Forbid,
            false => Act::GoOn,
        }
    });
    let controller = world.start("one").await;
    world
        .until_condition("stamp", "Active", "False", "NotCreated")
        .await;
    assert_eq!(world.condition("stamp", "Loaded")[0], "True");
    world.cluster.forget_rule();
    world.until_stamped("ml", "queued", "1.0.0").await;
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_setting_the_kinds_are_not_requested() {
    let mut world = World::stamped();
    world.settings.plugins.source = PluginsSource::File;
    world.cluster.put(runtime("plain", &[]));
    world.cluster.put(job("ml", "plain", "plain", true));
    let controller = world.start("one").await;
    world
        .pass("the TrainJob is reconciled", |cluster| {
            cluster.get("jobsets", "ml", "plain").is_some()
        })
        .await;
    controller.stop().await;
    let traffic = world.cluster.all_traffic();
    let asked: Vec<_> = traffic
        .keys()
        .filter(|(_, plural)| plural.contains("plugin"))
        .collect();
    assert!(asked.is_empty(), "{asked:?}");
}

/// Nobody waits for the next attempt after a plugin was signed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_annotation_resolves_a_source_again_at_once() {
    let world = World::stamped();
    let controller = world.running().await;
    let signed_later = Artifact::stamp("stamp", "2.0.0");
    let reference = world.registry.push(&signed_later);
    world
        .registry
        .refuse(&signed_later, PluginCondition::Verified, "NotSigned");
    world.declare("stamp", &reference);
    world
        .until_condition("stamp", "Verified", "False", "NotSigned")
        .await;
    world.registry.accept(&signed_later);
    let patch = json!({"metadata": {"annotations": {"trainyard.dev/retry": "1"}}});
    world.cluster.merge("policyplugins", "", "stamp", &patch);
    // PolicyPlugins settle for some seconds; the next attempt of its own is after minutes.
    let limit = world.clock.now() + Duration::from_secs(200);
    let is_signed = |_: &Cluster| {
        if world.clock.now() < limit {
            world.clock.advance(Duration::from_secs(1));
        }
        world.condition("stamp", "Verified")[1] == "Signed"
    };
    world.until("it is resolved again", is_signed).await;
    controller.stop().await;
}
