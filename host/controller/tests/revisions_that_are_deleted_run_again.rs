//! If the running revision is deleted, the one before runs again, or that one itself, as long as a replica has it in memory. What has only been
//! tried in a share does not run everywhere because of it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::stub::{
    cluster::{Act, Cluster, When},
    declared::{Artifact, EARLY, LATE, World},
};

/// Answers the creation of revisions with 503, before or after it is executed. Returns whether there was such a call.
fn refuse_creation(world: &World, at: When) -> Arc<AtomicBool> {
    let was_called = Arc::new(AtomicBool::new(false));
    let notes = was_called.clone();
    world.cluster.set_rule(move |_, when, call, _| {
        let is_it = (when, call) == (at, ("create", "pluginrevisions"));
        notes.fetch_or(is_it, Ordering::SeqCst);
        match is_it {
            true => Act::Refuse,
            false => Act::GoOn,
        }
    });
    was_called
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn if_the_running_revision_is_deleted_the_one_before_runs_again() {
    for is_killed in [false, true] {
        let world = World::half();
        let mut controller = world.start("one").await;
        world.until_stamped(LATE, "queued", "1.0.0").await;
        world.upgrade(&Artifact::second());
        world.until_stage(2, "Share").await;
        world.until_stage(2, "Running").await;
        world.until_stage(1, "Previous").await;
        let name = world.cluster.all("pluginrevisions")[1]["metadata"]["name"].clone();
        let delete = || {
            world
                .cluster
                .delete("pluginrevisions", "", name.as_str().unwrap());
        };
        if is_killed {
            controller.kill().await;
            delete();
            controller = world.start("two").await;
        } else {
            delete();
        }
        let is_restored = |_: &_| world.revisions()[0].2 == "Restored";
        world.until("the first one runs", is_restored).await;
        // What is lost is rolled out again, and not at once.
        let is_share = |_: &_| world.revisions().iter().any(|it| it.1 == "Share");
        world.pass("it is rolled out again", is_share).await;
        world.until_stage(1, "Previous").await;
        world.until_stamped(LATE, "queued", "2.0.0").await;
        controller.stop().await;
    }
}

/// What is rolled out is not used everywhere because the only revision that ran is deleted. Replicas have that one in memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn if_the_only_revision_that_ran_is_deleted_it_runs_again() {
    for (is_killed, is_answer_lost) in [(false, false), (false, true), (true, false)] {
        let (world, mut controller) = World::left_in_a_share().await;
        world.until_stamped(EARLY, "queued", "2.0.0").await;
        if is_answer_lost {
            refuse_creation(&world, When::Done);
        }
        if is_killed {
            // Between the creation and the stage.
            world
                .cluster
                .set_rule(|cluster, when, (verb, plural), body| {
                    let is_stage = (verb, plural) == ("patch", "pluginrevisions")
                        && body["status"]["stage"] == "Running";
                    let is_created = cluster.all("pluginrevisions").len() == 2;
                    match when == When::Before && is_stage && is_created {
                        true => Act::Refuse,
                        false => Act::GoOn,
                    }
                });
        }
        let first = world.cluster.all("pluginrevisions")[0].clone();
        let name = first["metadata"]["name"].as_str().unwrap();
        world.cluster.delete("pluginrevisions", "", name);
        let is_created = |_: &_| world.revisions().iter().any(|it| it.0 == 1);
        world.pass("it is created again", is_created).await;
        if is_killed {
            controller.kill().await;
            world.cluster.forget_rule();
            controller = world.start("two").await;
        }
        world.until_stage(1, "Running").await;
        let restored = [
            (1, "Running".to_owned(), "Restored".to_owned()),
            (2, "Share".to_owned(), "Progressing".to_owned()),
        ];
        assert_eq!(world.revisions(), restored);
        assert_eq!(
            world.cluster.get("pluginrevisions", "", name).unwrap()["spec"],
            first["spec"]
        );
        assert_eq!(world.stamp(LATE, "queued").unwrap(), "1.0.0");
        controller.stop().await;
    }
}

/// The leader ends before it can create what it holds again. Another replica holds it, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_replica_that_has_what_ran_creates_it_again() {
    let mut world = World::half().with_leader_election();
    world.settings.plugins.rollout.interval = Duration::from_secs(3_600);
    let first = world.start("one").await;
    world.until_stamped(LATE, "queued", "1.0.0").await;
    let second_replica = world.start("two").await;
    let is_held = |_: &Cluster| {
        let object = world.cluster.get("policyplugins", "", "stamp").unwrap();
        object["status"]["replicas"]["summary"] == "2/2"
    };
    world.pass("both have loaded it", is_held).await;
    world.upgrade(&Artifact::second());
    world.until_stage(2, "Share").await;
    let is_tried = refuse_creation(&world, When::Before);
    let name = world.cluster.all("pluginrevisions")[0]["metadata"]["name"].clone();
    let name = name.as_str().unwrap();
    world.cluster.delete("pluginrevisions", "", name);
    let is_tried = |_: &Cluster| is_tried.load(Ordering::SeqCst);
    world.pass("the leader tries it", is_tried).await;
    first.stop().await;
    world.cluster.forget_rule();
    world.until_stage(1, "Running").await;
    assert_eq!(world.revisions()[0].2, "Restored");
    assert_eq!(world.stage(2), "Share");
    second_replica.stop().await;
}

/// No process has what ran.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn if_nobody_has_what_ran_the_newest_plugins_run_and_an_event_says_so() {
    let (world, controller) = World::left_in_a_share().await;
    controller.stop().await;
    let first = world.cluster.all("pluginrevisions")[0]["metadata"]["name"].clone();
    let name = first.as_str().unwrap();
    world.cluster.delete("pluginrevisions", "", name);
    let controller = world.start("two").await;
    world.until_stage(2, "Running").await;
    assert_eq!(world.revisions()[0].2, "NothingToCompareWith");
    world.until_stamped(LATE, "queued", "2.0.0").await;
    controller.stop().await;
    let events = world.cluster.all("events");
    let mut said = events.iter().filter(|it| it["type"] == "Warning");
    assert!(said.any(|it| it["message"].to_string().contains("without a comparison")));
}

/// Its number is not used again, so nothing that was found out about it counts for the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_that_is_deleted_is_made_again_and_another_one_is_compared_itself() {
    let (world, controller) = World::left_in_a_share().await;
    let delete = |number: u64| {
        let all = world.cluster.all("pluginrevisions");
        let mut of = all.iter().filter(|it| it["spec"]["number"] == number);
        let name = of.next().unwrap()["metadata"]["name"].clone();
        world
            .cluster
            .delete("pluginrevisions", "", name.as_str().unwrap());
    };
    let share = |number: u64| (number, "Share".to_owned(), "Progressing".to_owned());
    delete(2);
    // PolicyPlugins settle for some seconds before they become a revision again.
    let says_so = |_: &Cluster| world.condition("stamp", "Active")[1] == "NoRevision";
    world.until("the condition says so", says_so).await;
    let [status, _, message] = world.condition("stamp", "Active");
    assert_eq!(status, "False");
    assert!(message.contains("version 1.0.0 of it"), "{message}");
    world.until_stage(3, "Share").await;
    assert_eq!(world.revisions()[1..], [share(3)]);
    // It has no difference, unlike the one that is deleted with its change.
    delete(3);
    let unused = Artifact::new("unused", "1.0.0", "plugins", &["example.com/unused"]);
    world.declare("unused", &world.registry.push(&unused));
    world.upgrade(&Artifact::stamp("stamp", "1.0.0"));
    world.until_stage(4, "Running").await;
    assert_eq!(world.revisions()[1].2, "NoDifference");
    controller.stop().await;
}
