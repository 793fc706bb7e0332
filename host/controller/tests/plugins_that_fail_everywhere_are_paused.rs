//! A plugin whose calls fail in three namespaces and succeed in none is paused for all, which is reported. One success, or an annotation, ends the
//! pause, so a namespace cannot stop the others.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use trainyard_model::{
    call::Call,
    names::short_digest,
    plugin::{Busy, CallFailure},
};

use crate::stub::{
    controller::{job, runtime},
    declared::{Artifact, STAMP, World},
};

const TEAMS: [&str; 3] = ["team-a", "team-b", "team-c"];

/// Three namespaces whose places are before 50 %.
const EARLY: [&str; 3] = ["default", "team-e", "team-g"];

fn world() -> World {
    let world = World::new();
    world.cluster.put(runtime("stamped", &["stamp"]));
    world
}

/// A plugin that fails for TrainJobs whose names begin with `bad`, and the names of the TrainJobs that it was called for.
fn artifact(version: &str, failure: fn() -> CallFailure) -> (Artifact, Arc<Mutex<Vec<String>>>) {
    let calls = Arc::<Mutex<Vec<String>>>::default();
    let (counted, stamp) = (calls.clone(), version.to_owned());
    let artifact = Artifact::stamp("stamp", version).runs(move |call: &mut Call| {
        let job = call.context_job(Call::CONTEXT)?;
        let name = call.job_name(job)?.to_owned();
        let is_bad = name.starts_with("bad");
        counted.lock().unwrap().push(name);
        if is_bad {
            return Err(failure());
        }
        let info = call.context_info(Call::CONTEXT)?;
        call.info_set_annotation(info, STAMP, &stamp)?;
        Ok(())
    });
    (artifact, calls)
}

fn trap() -> CallFailure {
    CallFailure::Trap {
        kind: "wasm `unreachable` instruction executed".to_owned(),
        message: Some("the image registry.secret is not known".to_owned()),
    }
}

fn put(world: &World, namespace: &str, name: &str) {
    world.cluster.put(job(namespace, name, "stamped", false));
}

/// Returns the annotation about the error of a TrainJob.
fn error(world: &World, namespace: &str, name: &str) -> String {
    let job = world.cluster.get("trainjobs", namespace, name).unwrap();
    let error = &job["metadata"]["annotations"]["trainyard.dev/reconcile-error"];
    error.as_str().unwrap_or_default().to_owned()
}

async fn until_error(world: &World, namespace: &str, name: &str, reason: &str) {
    let what = format!("{namespace}/{name} has the error {reason}");
    let holds = |_: &_| error(world, namespace, name).starts_with(reason);
    world.until(&what, holds).await;
}

/// Creates TrainJobs with which the plugin fails, so that the last namespace waits.
async fn fail_everywhere(world: &World) {
    for team in TEAMS {
        put(world, team, "bad");
        until_error(world, team, "bad", "Refused").await;
    }
    world
        .until_condition("stamp", "Paused", "True", "FailsEverywhere")
        .await;
}

fn shows(world: &World, digest: &str, value: u8) {
    let text = world.metrics().text().unwrap();
    let line = format!("trainyard_plugin_paused{{plugin=\"stamp\",digest=\"{digest}\"}} {value}");
    assert!(text.lines().any(|it| it == line), "{line}\n{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_is_reported_and_ends_with_the_first_success() {
    let world = world();
    let (artifact, calls) = artifact("1.0.0", trap);
    let reference = world.registry.push(&artifact);
    let digest = short_digest(reference.split_once('@').unwrap().1).to_owned();
    world.declare("stamp", &reference);
    let controller = world.start("one").await;
    world
        .until_condition("stamp", "Paused", "False", "NotPaused")
        .await;
    fail_everywhere(&world).await;
    let [_, _, message] = world.condition("stamp", "Paused");
    for part in [
        "calls of stamp 1.0.0 (sha256:",
        "in transform have failed in 3 namespaces and succeeded in none",
        "(trap): trapped: wasm `unreachable` instruction executed;",
        "the annotation trainyard.dev/retry",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    for hidden in ["team-", "bad", "secret"] {
        assert!(!message.contains(hidden), "{hidden}: {message}");
    }
    world
        .until("there is an Event", |_| {
            world.events("stamp").contains("PluginPaused")
        })
        .await;
    shows(&world, &digest, 1);
    // Another TrainJob of that namespace waits, and its error says why.
    put(&world, "team-c", "good");
    until_error(&world, "team-c", "good", "PluginPaused").await;
    let said = error(&world, "team-c", "good");
    assert!(said.contains("plugin stamp is paused for all"), "{said}");
    let is_good = |name: &String| name == "good";
    assert!(!calls.lock().unwrap().iter().any(is_good));
    // Another namespace is not affected, and its success ends the pause for all.
    put(&world, "team-e", "good");
    world.until_stamped("team-e", "good", "1.0.0").await;
    world
        .until_condition("stamp", "Paused", "False", "NotPaused")
        .await;
    world
        .until("there is an Event", |_| {
            world.events("stamp").contains("PluginResumed")
        })
        .await;
    shows(&world, &digest, 0);
    world.until_stamped("team-c", "good", "1.0.0").await;
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_annotation_resumes_a_paused_plugin() {
    let world = world();
    let (artifact, calls) = artifact("1.0.0", trap);
    world.declare("stamp", &world.registry.push(&artifact));
    let controller = world.start("one").await;
    fail_everywhere(&world).await;
    let before = calls.lock().unwrap().len();
    let annotate = |value: &str| {
        let patch = json!({"metadata": {"annotations": {"trainyard.dev/retry": value}}});
        world.cluster.merge("policyplugins", "", "stamp", &patch);
    };
    annotate("false");
    annotate("1");
    // No call succeeds, so nothing else can have ended it.
    world
        .until("it is called again", |_| {
            world.events("stamp").contains("PluginResumed")
        })
        .await;
    // All TrainJobs are tried at once, and fail as before.
    world
        .until_condition("stamp", "Paused", "True", "FailsEverywhere")
        .await;
    assert!(calls.lock().unwrap().len() >= before + TEAMS.len());
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_version_of_it_is_not_paused() {
    let mut world = world();
    world.settings.plugins.rollout.steps = Vec::new();
    let (broken, _) = artifact("1.0.0", trap);
    let reference = world.registry.push(&broken);
    let digest = short_digest(reference.split_once('@').unwrap().1).to_owned();
    world.declare("stamp", &reference);
    let controller = world.start("one").await;
    fail_everywhere(&world).await;
    let has_series = |world: &World, series: &str| {
        let text = world.metrics().text().unwrap();
        let digest = format!("digest=\"{digest}\"");
        let mut lines = text.lines();
        lines.any(|line| line.starts_with(series) && line.contains(&digest))
    };
    let all = [
        "trainyard_plugin_call_duration_seconds",
        "trainyard_plugin_errors",
        "trainyard_plugin_writes",
        "trainyard_plugin_paused",
    ];
    for series in all {
        assert!(has_series(&world, series), "{series}");
    }
    let corrected = Artifact::stamp("stamp", "2.0.0");
    world.declare("stamp", &world.registry.push(&corrected));
    for team in TEAMS {
        world.until_stamped(team, "bad", "2.0.0").await;
    }
    let newer = Artifact::stamp("stamp", "3.0.0");
    world.declare("stamp", &world.registry.push(&newer));
    world.until_stage(3, "Running").await;
    world
        .until_condition("stamp", "Paused", "False", "NotPaused")
        .await;
    // No generation has the first one any more, so its series are gone.
    world
        .pass("the series are gone", |_| {
            !all.iter().any(|series| has_series(&world, series))
        })
        .await;
    controller.stop().await;
}

/// Calls that time out may be the fault of a busy machine, unless they do so everywhere and those of the running version do not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_share_that_fails_everywhere_is_rolled_back() {
    for failure in [trap, || CallFailure::Busy(Busy::WallClock(2_000))] {
        let mut world = world();
        world.settings.plugins.rollout.steps = vec![50];
        world.settings.plugins.rollout.interval = Duration::from_secs(3_600);
        world.declare(
            "stamp",
            &world.registry.push(&Artifact::stamp("stamp", "1.0.0")),
        );
        let controller = world.start("one").await;
        // TrainJobs are reconciled, so the leader also acts on changes of PolicyPlugins.
        put(&world, "ml", "first");
        world.until_stamped("ml", "first", "1.0.0").await;
        let (broken, _) = artifact("2.0.0", failure);
        world.declare("stamp", &world.registry.push(&broken));
        world.until_used_in_a_share(2).await;
        for team in EARLY {
            put(&world, team, "bad");
        }
        world.until_stage(2, "RolledBack").await;
        assert_eq!(world.revisions()[1].2, "Failures");
        for team in EARLY {
            world.until_stamped(team, "bad", "1.0.0").await;
        }
        controller.stop().await;
    }
}
