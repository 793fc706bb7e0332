//! A registry that is down, slow or without a plugin delays what needs that plugin, and changes nothing for other TrainJobs, whenever the
//! process starts.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use trainyard_controller::plugins::PluginCondition;
use trainyard_model::call::Call;

use crate::stub::{
    cluster::Cluster,
    controller::{job, runtime},
    declared::{Artifact, STAMP, World},
};

fn has_job_set(name: &'static str) -> impl Fn(&Cluster) -> bool {
    move |cluster| cluster.get("jobsets", "ml", name).is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_that_is_down_delays_only_changes() {
    let world = World::stamped();
    let controller = world.running().await;
    world.registry.set_down(true);
    let reference = world.registry.push(&Artifact::stamp("stamp", "2.0.0"));
    world.declare("stamp", &reference);
    world
        .until_condition("stamp", "Pulled", "False", "Retrying")
        .await;
    assert!(world.condition("stamp", "Pulled")[2].contains("does not answer"));
    world.cluster.put(job("ml", "new", "stamped", true));
    world.until_stamped("ml", "new", "1.0.0").await;
    world.registry.set_down(false);
    world.until_stamped("ml", "queued", "2.0.0").await;
    controller.stop().await;
}

/// A process that starts while the registry is down reconciles nothing until it has the plugins in use, for a limited time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_that_is_down_at_the_start_is_waited_for() {
    let world = World::stamped();
    world.running().await.stop().await;
    world.registry.set_down(true);
    let controller = world.start("two").await;
    world.cluster.put(job("ml", "waits", "stamped", true));
    let watches = |cluster: &Cluster| cluster.traffic("watch", "trainjobs").calls >= 2;
    world.until("the controller watches", watches).await;
    world.clock.advance(Duration::from_secs(60));
    assert_eq!(world.stamp("ml", "waits"), None);
    world.registry.set_down(false);
    world.clock.advance(Duration::from_secs(30));
    world.until_stamped("ml", "waits", "1.0.0").await;
    controller.stop().await;
    // After the limit, TrainJobs that do not need the plugin are reconciled.
    world.registry.set_down(true);
    world.cluster.put(runtime("plain", &[]));
    world.cluster.put(job("ml", "plain", "plain", true));
    world.cluster.put(job("ml", "needs", "stamped", true));
    let loads = world.registry.loads();
    let controller = world.start("three").await;
    world
        .pass("the TrainJob without the plugin is reconciled", |cluster| {
            cluster.get("jobsets", "ml", "plain").is_some()
        })
        .await;
    assert_eq!(world.stamp("ml", "needs"), None);
    assert_eq!(world.stamp("ml", "queued").as_deref(), Some("1.0.0"));
    world.registry.set_down(false);
    // The leader has resolved it again, and still skips it.
    world
        .until_condition("stamp", "Active", "False", "Skipped")
        .await;
    assert_eq!(world.condition("stamp", "Pulled")[0], "True");
    assert_eq!(
        world.condition("stamp", "Loaded")[..2],
        ["False", "Skipped"]
    );
    world.clock.advance(Duration::from_secs(30));
    world.until_stamped("ml", "needs", "1.0.0").await;
    world
        .until_condition("stamp", "Active", "True", "Running")
        .await;
    // While it was skipped, it was not loaded again and again.
    let loads = world.registry.loads() - loads;
    assert!(loads <= 6, "{loads}");
    controller.stop().await;
}

/// A replica starts that cannot load one of two plugins, until it can.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_cannot_be_loaded_changes_nothing_for_train_jobs_without_it() {
    let world = World::stamped();
    let rendered: Arc<Mutex<Vec<String>>> = Arc::default();
    let names = rendered.clone();
    let counting = Artifact::stamp("stamp", "1.0.0").runs(move |call: &mut Call| {
        let job = call.context_job(Call::CONTEXT)?;
        names.lock().unwrap().push(call.job_name(job)?.to_owned());
        let info = call.context_info(Call::CONTEXT)?;
        Ok(call.info_set_annotation(info, STAMP, "1.0.0")?)
    });
    world.declare("stamp", &world.registry.push(&counting));
    let other = Artifact::new("other", "1.0.0", "plugins", &["example.com/other"]);
    world.declare("other", &world.registry.push(&other));
    world.cluster.put(runtime("others", &["other"]));
    world.cluster.put(job("ml", "waits", "others", true));
    let controller = world.running().await;
    world.until("both have one", has_job_set("waits")).await;
    controller.stop().await;
    let job_sets = || ["queued", "waits"].map(|name| world.cluster.get("jobsets", "ml", name));
    let before = job_sets();
    rendered.lock().unwrap().clear();
    world.registry.break_it(&other);
    world.cluster.put(job("ml", "needs", "others", true));
    world.cluster.put(job("ml", "new", "stamped", true));
    let controller = world.start("two").await;
    world.until_stamped("ml", "new", "1.0.0").await;
    let says_why = |_: &_| !world.events("needs").is_empty();
    world.pass("the one that needs it waits", says_why).await;
    assert_eq!(world.cluster.get("jobsets", "ml", "needs"), None);
    assert_eq!(job_sets(), before);
    world.registry.mend(&other);
    world.pass("it goes on", has_job_set("needs")).await;
    controller.stop().await;
    assert_eq!(job_sets(), before);
    // It was not even rendered.
    let rendered = rendered.lock().unwrap();
    assert!(rendered.iter().all(|name| name == "new"), "{rendered:?}");
}

/// The content of a plugin that runs was deleted from the registry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_the_registry_does_not_have_any_more_is_said_and_concerns_those_that_use_it()
{
    let world = World::stamped();
    let first = Artifact::stamp("stamp", "1.0.0");
    world.running().await.stop().await;
    world.registry.lose(&first);
    world.cluster.put(runtime("plain", &[]));
    world.cluster.put(job("ml", "plain", "plain", true));
    world.cluster.put(job("ml", "needs", "stamped", true));
    let before = world.cluster.get("jobsets", "ml", "queued");
    let controller = world.start("two").await;
    // A retry does not help, so nothing is waited for.
    world
        .until("others are reconciled", has_job_set("plain"))
        .await;
    let says_why = |cluster: &Cluster| {
        let status = cluster.all("pluginrevisions")[0]["status"].to_string();
        status.contains("plugin stamp is skipped") && status.contains("push it")
    };
    world.until("the replica says why", says_why).await;
    world
        .until_condition("stamp", "Pulled", "False", "NotFound")
        .await;
    let message = world.condition("stamp", "Active").concat();
    assert!(
        message.contains("keeps running, and it is skipped"),
        "{message}"
    );
    assert_eq!(world.cluster.get("jobsets", "ml", "needs"), None);
    assert_eq!(world.cluster.get("jobsets", "ml", "queued"), before);
    world
        .registry
        .refuse(&first, PluginCondition::Verified, "NotSigned");
    let renewed = |cluster: &Cluster| {
        let status = cluster.all("pluginrevisions")[0]["status"].to_string();
        status.contains("plugin stamp is skipped") && status.contains("NotSigned of 1.0.0")
    };
    world
        .pass("the replica says what is wrong now", renewed)
        .await;
    assert_eq!(world.cluster.get("jobsets", "ml", "queued"), before);
    world.registry.accept(&first);
    world.registry.push(&first);
    world.pass("it goes on", has_job_set("needs")).await;
    controller.stop().await;
}

/// Before the first revision, a leader waits for the plugins that are declared, and then uses the built-in ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_plugins_are_waited_for_for_a_limited_time() {
    let world = World::stamped();
    world.registry.set_down(true);
    world.cluster.put(runtime("plain", &[]));
    world.cluster.put(job("ml", "plain", "plain", true));
    let controller = world.start("one").await;
    world
        .until_condition("stamp", "Pulled", "False", "Retrying")
        .await;
    let attempts = world.registry.pins();
    world.clock.advance(Duration::from_secs(60));
    let tries = |_: &Cluster| world.registry.pins() > attempts;
    world.until("it is tried again", tries).await;
    assert_eq!(world.cluster.count("jobsets"), 0);
    world.clock.advance(Duration::from_secs(60));
    world.until("the limit is over", has_job_set("plain")).await;
    assert_eq!(world.stamp("ml", "queued"), None);
    world.registry.set_down(false);
    world.until_stamped("ml", "queued", "1.0.0").await;
    controller.stop().await;
}

/// After plugins have run, nothing is reconciled without them, however long that takes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_revision_that_ran_nothing_is_reconciled_before_there_is_another_one() {
    let world = World::stamped();
    world.running().await.stop().await;
    let name = world.cluster.all("pluginrevisions")[0]["metadata"]["name"].clone();
    world
        .cluster
        .delete("pluginrevisions", "", name.as_str().unwrap());
    world.registry.set_down(true);
    world.cluster.put(runtime("plain", &[]));
    world.cluster.put(job("ml", "plain", "plain", true));
    let controller = world.start("two").await;
    for _ in 0..5 {
        let attempts = world.registry.pins();
        let tries = |_: &Cluster| world.registry.pins() > attempts;
        world.pass("it is tried again", tries).await;
        world.clock.advance(Duration::from_secs(300));
    }
    assert!(!has_job_set("plain")(&world.cluster));
    let second = world.registry.push(&Artifact::stamp("stamp", "2.0.0"));
    world.declare("stamp", &second);
    let is_seen = |cluster: &Cluster| {
        let policy = cluster.get("policyplugins", "", "stamp").unwrap();
        policy["status"]["observedGeneration"] == policy["metadata"]["generation"]
    };
    world.pass("the change is seen", is_seen).await;
    world.registry.set_down(false);
    world.pass("it goes on", has_job_set("plain")).await;
    let revision = (1, "Running".to_owned(), "NothingToCompareWith".to_owned());
    assert_eq!(world.revisions(), [revision]);
    controller.stop().await;
}
