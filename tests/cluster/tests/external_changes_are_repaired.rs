//! Whoever deletes, suspends or makes anew what belongs to a TrainJob: it comes to where it should be, and what has ended never
//! runs again.
#![allow(clippy::indexing_slicing)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{Case, Disturbed, Place, is, is_running, kind, runtime};
use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};
use trainyard_cluster::{Act, Call, Resource, Test, Write, eventually};
use trainyard_schema::documents::Kind;

const DEADLINE: Duration = Duration::from_secs(3600);

async fn externally_suspended_job_set_is_unsuspended(shared: &Disturbed) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller().await?;
    let place = Place::new(&shared.cluster, DEADLINE).await?;
    Case::Suspended.prepare(&place).await?;
    let job_sets = Resource::jobsets();
    let (job_sets, name) = (place.api(&job_sets), Case::Suspended.name());
    let suspended = json!({"spec": {"suspend": true}});
    let suspended = job_sets.merge(name, &suspended, &Write::strict()).await?;
    let suspended = suspended.accepted()?["metadata"]["generation"].as_u64();
    let goes_on = |job_set: &Value| {
        job_set["spec"]["suspend"] == false
            && job_set["metadata"]["generation"].as_u64() > suspended
    };
    job_sets.until(name, "it goes on", goes_on).await?;
    place.until(Case::Suspended, "it runs", is_running).await?;
    controller.until_idle().await?;
    place.seen.made_once().await?;
    controller.kill().map(drop)
}

async fn finished_train_job_never_runs_again(shared: &Disturbed) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller().await?;
    let place = Place::new(&shared.cluster, DEADLINE).await?;
    let case = Case::Completes;
    case.prepare(&place).await?;
    // Its status can't be written while its JobSet ends and is collected, as it is where it may not stay for long.
    let refused = Arc::new(AtomicBool::new(false));
    let (path, seen) = (format!("/namespaces/{}/", place.name), refused.clone());
    let rule = move |call: &Call| {
        if call.method != Method::PATCH || !call.path.contains(&path) {
            return Act::Forward;
        }
        seen.store(true, Ordering::Relaxed);
        Act::conflict()
    };
    shared.proxy.set_rule(rule).await;
    case.happen(&place).await?;
    let job_sets = Resource::jobsets();
    let job_sets = place.api(&job_sets);
    let ended = |job_set: &Value| job_set["status"]["terminalState"] == "Completed";
    job_sets.until(case.name(), "it ended", ended).await?;
    job_sets.delete(case.name()).await?.accepted()?;
    job_sets
        .until_all("it is gone", <[Value]>::is_empty)
        .await?;
    eventually("the status could not be written", async || {
        Ok(refused.load(Ordering::Relaxed).then_some(()))
    })
    .await?;
    shared.proxy.forget().await;
    let complete = |job: &Value| is(job, "Complete", "True");
    place.until(case, "it is complete", complete).await?;
    place.unchanged_for(Duration::from_secs(2)).await?;
    controller.until_idle().await?;
    ensure!(job_sets.items().await?.is_empty(), "it runs again");
    place.seen.made_once().await?;
    controller.kill().map(drop)
}

/// Waits until the TrainJob has failed because nobody knows how its JobSet ended, and makes sure that there is no other.
async fn until_given_up(place: &Place<'_>, case: Case) -> Result<()> {
    let failed = |job: &Value| is(job, "Failed", "True");
    let jobs = place.api(&place.jobs);
    let job = jobs.until(case.name(), "it has failed", failed).await?;
    let reason = &job["status"]["conditions"];
    ensure!(reason.to_string().contains("JobSetGone"), "{job:#}");
    place.event(case.name(), "it is not created again").await?;
    place.unchanged_for(Duration::from_secs(2)).await?;
    let job_sets = place.api(&place.job_sets).items().await?;
    ensure!(job_sets.is_empty(), "it runs again");
    place.seen.made_once().await
}

/// Deletes the only JobSet of the place, and waits until it is gone.
async fn delete_job_set(place: &Place<'_>, case: Case) -> Result<()> {
    let job_sets = place.api(&place.job_sets);
    job_sets.delete(case.name()).await?.accepted()?;
    job_sets
        .until_all("it is gone", <[Value]>::is_empty)
        .await
        .map(drop)
}

async fn train_job_whose_job_set_ended_and_vanished_unobserved_never_runs_again(
    shared: &Disturbed,
) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller().await?;
    let place = Place::new(&shared.cluster, DEADLINE).await?;
    let case = Case::Completes;
    case.prepare(&place).await?;
    controller.kill()?;
    case.happen(&place).await?;
    let job_sets = place.api(&place.job_sets);
    let ended = |job_set: &Value| job_set["status"]["terminalState"] == "Completed";
    job_sets.until(case.name(), "it ended", ended).await?;
    delete_job_set(&place, case).await?;
    let controller = shared.controller().await?;
    until_given_up(&place, case).await?;
    controller.kill().map(drop)
}

/// Its JobSet goes by itself once it has ended, and no status of the TrainJob ever said that it ran.
async fn job_set_removed_by_its_ttl_is_known_to_have_run(shared: &Disturbed) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller().await?;
    let place = Place::new(&shared.cluster, DEADLINE).await?;
    let runtimes = kind(Kind::TrainingRuntime)?;
    let runtimes = place.api(&runtimes);
    let mut own = runtime();
    own["kind"] = json!("TrainingRuntime");
    own["spec"]["template"]["spec"]["ttlSecondsAfterFinished"] = json!(1);
    runtimes.create(&own, &Write::strict()).await?.accepted()?;
    let path = format!("/namespaces/{}/trainjobs/", place.name);
    let rule = move |call: &Call| match call.method == Method::PATCH && call.path.contains(&path) {
        true => Act::conflict(),
        false => Act::Forward,
    };
    shared.proxy.set_rule(rule).await;
    let case = Case::Completes;
    let reference = json!({"kind": "TrainingRuntime", "name": "torch"});
    let spec = json!({"runtimeRef": reference});
    place.create(case.name(), &spec).await?;
    let snapshot = format!("{}-runtime-snapshot", case.name());
    let is_marked = |map: &Value| map["metadata"]["annotations"]["trainyard.dev/started"] == "true";
    place
        .api(&place.config_maps)
        .until(&snapshot, "it says that the JobSet runs", is_marked)
        .await?;
    controller.kill()?;
    let job = place.api(&place.jobs).get(case.name()).await?.accepted()?;
    ensure!(job.get("status").is_none(), "{job:#}");
    case.happen(&place).await?;
    place
        .api(&place.job_sets)
        .until_all("it is gone", <[Value]>::is_empty)
        .await?;
    shared.proxy.forget().await;
    let controller = shared.controller().await?;
    until_given_up(&place, case).await?;
    controller.kill().map(drop)
}

async fn deleted_job_set_is_recreated(shared: &Disturbed) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller().await?;
    let place = Place::new(&shared.cluster, DEADLINE).await?;
    let case = Case::Suspended;
    case.prepare(&place).await?;
    let mut expected = place.unchanged_for(Duration::from_secs(2)).await?;
    // It ran, which nothing else says once the counts are those of another JobSet.
    let snapshot = &mut expected["ConfigMap suspended-runtime-snapshot"][0];
    snapshot["content"]["annotations"] = json!({"trainyard.dev/started": "true"});
    snapshot["content"]["immutable"] = json!(true);
    let annotations = &mut expected["JobSet suspended"][0]["content"]["annotations"];
    annotations["trainyard.dev/recreated"] = json!("true");
    let job_sets = Resource::jobsets();
    let job_sets = place.api(&job_sets);
    let before = job_sets.get(case.name()).await?.accepted()?;
    job_sets.delete(case.name()).await?.accepted()?;
    let another = |job_set: &Value| {
        job_set.is_object() && job_set["metadata"]["uid"] != before["metadata"]["uid"]
    };
    job_sets
        .until(case.name(), "it is made again", another)
        .await?;
    place.until_it_is(&expected).await?;
    controller.until_idle().await?;
    ensure!(place.is(&expected).await?, "it did not stay");
    controller.kill().map(drop)
}

async fn recreated_train_job_gets_its_own_objects(shared: &Disturbed) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller().await?;
    let place = Place::new(&shared.cluster, DEADLINE).await?;
    let case = Case::Created;
    case.happen(&place).await?;
    // With its owners: those of an object that is left over would be gone.
    let expected = place.settled(&[case]).await?;
    let jobs = place.api(&place.jobs);
    jobs.delete(case.name()).await?.accepted()?;
    case.happen(&place).await?;
    place.until_it_is(&expected).await?;
    controller.until_idle().await?;
    ensure!(place.is(&expected).await?, "it did not stay");
    controller.kill().map(drop)
}

async fn train_job_runs_after_its_runtime_is_deleted(shared: &Disturbed) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller().await?;
    let place = Place::new(&shared.cluster, DEADLINE).await?;
    let runtimes = kind(Kind::TrainingRuntime)?;
    let runtimes = place.api(&runtimes);
    let mut own = runtime();
    own["kind"] = json!("TrainingRuntime");
    runtimes.create(&own, &Write::strict()).await?.accepted()?;
    let killed = Arc::new(AtomicBool::new(false));
    let path = format!("/namespaces/{}/configmaps", place.name);
    let seen = killed.clone();
    let mut kill = Some(move || {
        let _ = controller.kill();
        seen.store(true, Ordering::Relaxed);
    });
    // Before that, the controller may not know of the runtime yet, and say so.
    let is_snapshot = move |call: &Call| call.method == Method::POST && call.path.contains(&path);
    let rule = move |call: &Call| match kill.take_if(|_| is_snapshot(call)) {
        Some(kill) => Act::cut_after(kill),
        None => Act::Forward,
    };
    shared.proxy.set_rule(rule).await;
    let spec = json!({"runtimeRef": {"kind": "TrainingRuntime", "name": "torch"}});
    let job = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
        "metadata": {"name": Case::Created.name()}, "spec": spec,
    });
    let jobs = place.api(&place.jobs);
    jobs.create(&job, &Write::strict()).await?.accepted()?;
    eventually("the controller is killed", async || {
        Ok(killed.load(Ordering::Relaxed).then_some(()))
    })
    .await?;
    shared.proxy.forget().await;
    runtimes.delete("torch").await?.accepted()?;
    let controller = shared.controller().await?;
    place.until(Case::Created, "it runs", is_running).await?;
    controller.until_idle().await?;
    place.seen.made_once().await?;
    controller.kill().map(drop)
}

/// Of what the other tests here rely on: a double is seen, although what watches see of it comes late.
async fn what_is_made_twice_is_seen(shared: &Disturbed) -> Result<()> {
    let place = Place::new(&shared.cluster, DEADLINE).await?;
    place.seen.made_once().await?;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "double"}});
    let maps = place.api(&place.config_maps);
    maps.create(&map, &Write::strict()).await?.accepted()?;
    place.seen.made_once().await?;
    maps.delete("double").await?.accepted()?;
    maps.create(&map, &Write::strict()).await?.accepted()?;
    let twice = place.seen.made_once().await;
    let twice = twice.err().map(|error| error.to_string());
    ensure!(
        twice
            .as_ref()
            .is_some_and(|text| text.contains("ConfigMap double was made 2 times")),
        "{twice:?}"
    );
    Ok(())
}

/// The status of a TrainJob can't be written at first; all else is made then, and the next pass has no reason to warn again.
async fn warning_survives_a_failed_status_write(shared: &Disturbed) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller().await?;
    let place = Place::new(&shared.cluster, DEADLINE).await?;
    let runtimes = kind(Kind::TrainingRuntime)?;
    let runtimes = place.api(&runtimes);
    let mut own = runtime();
    own["kind"] = json!("TrainingRuntime");
    own["metadata"]["labels"] = json!({"trainer.kubeflow.org/support": "deprecated"});
    runtimes.create(&own, &Write::strict()).await?.accepted()?;
    let (path, mut refused) = (format!("/namespaces/{}/trainjobs/", place.name), false);
    let rule = move |call: &Call| {
        if refused || call.method != Method::PATCH || !call.path.contains(&path) {
            return Act::Forward;
        }
        refused = true;
        Act::conflict()
    };
    shared.proxy.set_rule(rule).await;
    let reference = json!({"kind": "TrainingRuntime", "name": "torch"});
    let spec = json!({"runtimeRef": reference, "suspend": true});
    place.create("warned", &spec).await?;
    let jobs = place.api(&place.jobs);
    let waits = |job: &Value| is(job, "Suspended", "True");
    jobs.until("warned", "its status is written", waits).await?;
    place.event("warned", "is deprecated").await?;
    shared.proxy.forget().await;
    controller.kill().map(drop)
}

/// Its status said that it was suspended when its JobSet went, and a pass that fails does not take that back.
async fn job_set_deleted_while_suspended_is_recreated_despite_a_failed_call(
    shared: &Disturbed,
) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller().await?;
    let place = Place::new(&shared.cluster, DEADLINE).await?;
    let case = Case::Resumed;
    case.prepare(&place).await?;
    controller.kill()?;
    delete_job_set(&place, case).await?;
    case.happen(&place).await?;
    let (path, failed) = (
        format!("/namespaces/{}/configmaps/", place.name),
        Arc::new(AtomicBool::new(false)),
    );
    let seen = failed.clone();
    let rule = move |call: &Call| {
        let is_snapshot = call.method == Method::GET && call.path.contains(&path);
        if is_snapshot && !seen.swap(true, Ordering::Relaxed) {
            return Act::conflict();
        }
        Act::Forward
    };
    shared.proxy.set_rule(rule).await;
    let controller = shared.controller().await?;
    place.until(case, "it runs", is_running).await?;
    ensure!(failed.load(Ordering::Relaxed), "no call failed");
    shared.proxy.forget().await;
    controller.until_idle().await?;
    controller.kill().map(drop)
}

pub(crate) fn tests() -> Vec<Test<Disturbed>> {
    vec![
        Test::new("what_is_made_twice_is_seen", what_is_made_twice_is_seen),
        Test::new(
            "externally_suspended_job_set_is_unsuspended",
            externally_suspended_job_set_is_unsuspended,
        ),
        Test::new(
            "finished_train_job_never_runs_again",
            finished_train_job_never_runs_again,
        ),
        Test::new(
            "warning_survives_a_failed_status_write",
            warning_survives_a_failed_status_write,
        ),
        Test::new(
            "train_job_whose_job_set_ended_and_vanished_unobserved_never_runs_again",
            train_job_whose_job_set_ended_and_vanished_unobserved_never_runs_again,
        ),
        Test::new(
            "job_set_deleted_while_suspended_is_recreated_despite_a_failed_call",
            job_set_deleted_while_suspended_is_recreated_despite_a_failed_call,
        ),
        Test::new(
            "job_set_removed_by_its_ttl_is_known_to_have_run",
            job_set_removed_by_its_ttl_is_known_to_have_run,
        ),
        Test::new("deleted_job_set_is_recreated", deleted_job_set_is_recreated),
        Test::new(
            "recreated_train_job_gets_its_own_objects",
            recreated_train_job_gets_its_own_objects,
        ),
        Test::new(
            "train_job_runs_after_its_runtime_is_deleted",
            train_job_runs_after_its_runtime_is_deleted,
        ),
    ]
}
