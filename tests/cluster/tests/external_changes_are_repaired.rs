//! If a user or another controller deletes, suspends or recreates an object of a TrainJob, the TrainJob is repaired, and a finished one
//! never runs again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};
use trainyard_cluster::{Act, Call, Resource, Test, Write, eventually};
use trainyard_schema::documents::Kind;

use crate::common::{Case, Disturbed, Scenario, is, is_running, kind, runtime};

const DEADLINE: Duration = Duration::from_secs(3600);

async fn externally_suspended_job_set_is_unsuspended(shared: &Disturbed) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller().await?;
    let scenario = Scenario::new(&shared.cluster, DEADLINE).await?;
    Case::Suspended.prepare(&scenario).await?;
    let job_sets = Resource::jobsets();
    let (job_sets, name) = (scenario.api(&job_sets), Case::Suspended.name());
    let suspended = json!({"spec": {"suspend": true}});
    let suspended = job_sets.merge(name, &suspended, &Write::strict()).await?;
    let suspended = suspended.accepted()?["metadata"]["generation"].as_u64();
    let goes_on = |job_set: &Value| {
        job_set["spec"]["suspend"] == false
            && job_set["metadata"]["generation"].as_u64() > suspended
    };
    job_sets.until(name, "it goes on", goes_on).await?;
    scenario
        .until(Case::Suspended, "it runs", is_running)
        .await?;
    controller.until_idle().await?;
    scenario.creations.assert_created_once().await?;
    controller.kill().map(drop)
}

async fn finished_train_job_never_runs_again(shared: &Disturbed) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller().await?;
    let scenario = Scenario::new(&shared.cluster, DEADLINE).await?;
    let case = Case::Completes;
    case.prepare(&scenario).await?;
    // Its status cannot be written while its JobSet ends and is removed by a short TTL.
    let refused = Arc::new(AtomicBool::new(false));
    let (path, seen) = (format!("/namespaces/{}/", scenario.name), refused.clone());
    let rule = move |call: &Call| {
        if call.method != Method::PATCH || !call.path.contains(&path) {
            return Act::Forward;
        }
        seen.store(true, Ordering::Relaxed);
        Act::conflict()
    };
    shared.proxy.set_rule(rule).await;
    case.happen(&scenario).await?;
    let job_sets = Resource::jobsets();
    let job_sets = scenario.api(&job_sets);
    let ended = |job_set: &Value| job_set["status"]["terminalState"] == "Completed";
    job_sets.until(case.name(), "it ended", ended).await?;
    delete_job_set(&scenario, case).await?;
    eventually("the status could not be written", async || {
        Ok(refused.load(Ordering::Relaxed).then_some(()))
    })
    .await?;
    shared.proxy.forget().await;
    let complete = |job: &Value| is(job, "Complete", "True");
    scenario.until(case, "it is complete", complete).await?;
    scenario.unchanged_for(Duration::from_secs(2)).await?;
    controller.until_idle().await?;
    ensure!(job_sets.items().await?.is_empty(), "it runs again");
    scenario.creations.assert_created_once().await?;
    controller.kill().map(drop)
}

/// Waits until the TrainJob has failed because it is unknown how its JobSet ended, and checks that no other was created.
async fn until_given_up(scenario: &Scenario<'_>, case: Case) -> Result<()> {
    let failed = |job: &Value| is(job, "Failed", "True");
    let jobs = scenario.api(&scenario.jobs);
    let job = jobs.until(case.name(), "it has failed", failed).await?;
    let reason = &job["status"]["conditions"];
    ensure!(reason.to_string().contains("JobSetGone"), "{job:#}");
    scenario
        .event(case.name(), "is not recreated, because it may have ended")
        .await?;
    scenario.unchanged_for(Duration::from_secs(2)).await?;
    let job_sets = scenario.api(&scenario.job_sets).items().await?;
    ensure!(job_sets.is_empty(), "it runs again");
    scenario.creations.assert_created_once().await
}

/// Deletes the only JobSet of the scenario, and waits until it is gone.
async fn delete_job_set(scenario: &Scenario<'_>, case: Case) -> Result<()> {
    let job_sets = scenario.api(&scenario.job_sets);
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
    let scenario = Scenario::new(&shared.cluster, DEADLINE).await?;
    let case = Case::Completes;
    case.prepare(&scenario).await?;
    controller.kill()?;
    case.happen(&scenario).await?;
    let job_sets = scenario.api(&scenario.job_sets);
    let ended = |job_set: &Value| job_set["status"]["terminalState"] == "Completed";
    job_sets.until(case.name(), "it ended", ended).await?;
    delete_job_set(&scenario, case).await?;
    let controller = shared.controller().await?;
    until_given_up(&scenario, case).await?;
    controller.kill().map(drop)
}

/// The JobSet is removed by its TTL, and no status of the TrainJob has reported that it ran.
async fn job_set_removed_by_its_ttl_is_known_to_have_run(shared: &Disturbed) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller().await?;
    let scenario = Scenario::new(&shared.cluster, DEADLINE).await?;
    let mut own = runtime();
    own["spec"]["template"]["spec"]["ttlSecondsAfterFinished"] = json!(1);
    scenario.create_runtime(own).await?;
    let path = format!("/namespaces/{}/trainjobs/", scenario.name);
    let rule = move |call: &Call| match call.method == Method::PATCH && call.path.contains(&path) {
        true => Act::conflict(),
        false => Act::Forward,
    };
    shared.proxy.set_rule(rule).await;
    let case = Case::Completes;
    let reference = json!({"kind": "TrainingRuntime", "name": "torch"});
    let spec = json!({"runtimeRef": reference});
    scenario.create(case.name(), &spec).await?;
    let snapshot = format!("{}-runtime-snapshot", case.name());
    let is_marked = |map: &Value| map["metadata"]["annotations"]["trainyard.dev/started"] == "true";
    scenario
        .api(&scenario.config_maps)
        .until(&snapshot, "it says that the JobSet runs", is_marked)
        .await?;
    controller.kill()?;
    let job = scenario
        .api(&scenario.jobs)
        .get(case.name())
        .await?
        .accepted()?;
    ensure!(job.get("status").is_none(), "{job:#}");
    case.happen(&scenario).await?;
    scenario
        .api(&scenario.job_sets)
        .until_all("it is gone", <[Value]>::is_empty)
        .await?;
    shared.proxy.forget().await;
    let controller = shared.controller().await?;
    until_given_up(&scenario, case).await?;
    controller.kill().map(drop)
}

async fn deleted_job_set_is_recreated(shared: &Disturbed) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller().await?;
    let scenario = Scenario::new(&shared.cluster, DEADLINE).await?;
    let case = Case::Suspended;
    case.prepare(&scenario).await?;
    let mut expected = scenario.unchanged_for(Duration::from_secs(2)).await?;
    // These marks record that it ran. The counts are those of the new JobSet.
    let snapshot = &mut expected["ConfigMap suspended-runtime-snapshot"][0];
    snapshot["content"]["annotations"] = json!({"trainyard.dev/started": "true"});
    snapshot["content"]["immutable"] = json!(true);
    let annotations = &mut expected["JobSet suspended"][0]["content"]["annotations"];
    annotations["trainyard.dev/recreated"] = json!("true");
    scenario.recreate_job_set(case.name()).await?;
    scenario.until_it_is(&expected).await?;
    controller.until_idle().await?;
    ensure!(scenario.is(&expected).await?, "it did not stay");
    controller.kill().map(drop)
}

async fn recreated_train_job_gets_its_own_objects(shared: &Disturbed) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller().await?;
    let scenario = Scenario::new(&shared.cluster, DEADLINE).await?;
    let case = Case::Created;
    case.happen(&scenario).await?;
    // The objects include their owners, which a leftover object would not have.
    let expected = scenario.settled(&[case]).await?;
    let jobs = scenario.api(&scenario.jobs);
    jobs.delete(case.name()).await?.accepted()?;
    case.happen(&scenario).await?;
    scenario.until_it_is(&expected).await?;
    controller.until_idle().await?;
    ensure!(scenario.is(&expected).await?, "it did not stay");
    controller.kill().map(drop)
}

async fn train_job_without_a_job_set_waits_for_its_runtime(shared: &Disturbed) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller().await?;
    let scenario = Scenario::new(&shared.cluster, DEADLINE).await?;
    scenario.create_runtime(runtime()).await?;
    let killed = Arc::new(AtomicBool::new(false));
    let path = format!("/namespaces/{}/configmaps", scenario.name);
    let seen = killed.clone();
    let mut kill = Some(move || {
        let _ = controller.kill();
        seen.store(true, Ordering::Relaxed);
    });
    // Before that, the controller may not have observed the runtime yet, and report it.
    let is_snapshot = move |call: &Call| call.method == Method::POST && call.path.contains(&path);
    let rule = move |call: &Call| match kill.take_if(|_| is_snapshot(call)) {
        Some(kill) => Act::cut_after(kill),
        None => Act::Forward,
    };
    shared.proxy.set_rule(rule).await;
    let spec = json!({"runtimeRef": {"kind": "TrainingRuntime", "name": "torch"}});
    scenario.create(Case::Created.name(), &spec).await?;
    eventually("the controller is killed", async || {
        Ok(killed.load(Ordering::Relaxed).then_some(()))
    })
    .await?;
    shared.proxy.forget().await;
    let runtimes = kind(Kind::TrainingRuntime)?;
    let runtimes = scenario.api(&runtimes);
    runtimes.delete("torch").await?.accepted()?;
    // Without a JobSet, nothing vouches for the snapshot, which another client may have written: it is not used.
    let controller = shared.controller().await?;
    controller.until_idle().await?;
    scenario.create_runtime(runtime()).await?;
    scenario.until(Case::Created, "it runs", is_running).await?;
    controller.until_idle().await?;
    scenario.creations.assert_created_once().await?;
    controller.kill().map(drop)
}

/// The other tests rely on this: a second creation is detected, even though watches lag.
async fn second_creation_is_detected(shared: &Disturbed) -> Result<()> {
    let scenario = Scenario::new(&shared.cluster, DEADLINE).await?;
    scenario.creations.assert_created_once().await?;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "double"}});
    let maps = scenario.api(&scenario.config_maps);
    maps.create(&map, &Write::strict()).await?.accepted()?;
    scenario.creations.assert_created_once().await?;
    maps.delete("double").await?.accepted()?;
    maps.create(&map, &Write::strict()).await?.accepted()?;
    let twice = scenario.creations.assert_created_once().await;
    let twice = twice.err().map(|error| error.to_string());
    ensure!(
        twice
            .as_ref()
            .is_some_and(|text| text.contains("ConfigMap double was created 2 times")),
        "{twice:?}"
    );
    Ok(())
}

/// At first the status of a TrainJob cannot be written. Everything else is created, and the next reconcile does not warn again.
async fn warning_survives_a_failed_status_write(shared: &Disturbed) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller().await?;
    let scenario = Scenario::new(&shared.cluster, DEADLINE).await?;
    let mut own = runtime();
    own["metadata"]["labels"] = json!({"trainer.kubeflow.org/support": "deprecated"});
    scenario.create_runtime(own).await?;
    let (path, mut refused) = (format!("/namespaces/{}/trainjobs/", scenario.name), false);
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
    scenario.create("warned", &spec).await?;
    let jobs = scenario.api(&scenario.jobs);
    let waits = |job: &Value| is(job, "Suspended", "True");
    jobs.until("warned", "its status is written", waits).await?;
    scenario.event("warned", "is deprecated").await?;
    shared.proxy.forget().await;
    controller.kill().map(drop)
}

/// The status reported a suspended TrainJob when its JobSet was deleted, and a failed reconcile does not revert that.
async fn job_set_deleted_while_suspended_is_recreated_despite_a_failed_call(
    shared: &Disturbed,
) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller().await?;
    let scenario = Scenario::new(&shared.cluster, DEADLINE).await?;
    let case = Case::Resumed;
    case.prepare(&scenario).await?;
    controller.kill()?;
    delete_job_set(&scenario, case).await?;
    case.happen(&scenario).await?;
    let (path, failed) = (
        format!("/namespaces/{}/configmaps/", scenario.name),
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
    scenario.until(case, "it runs", is_running).await?;
    ensure!(failed.load(Ordering::Relaxed), "no call failed");
    shared.proxy.forget().await;
    controller.until_idle().await?;
    controller.kill().map(drop)
}

pub(crate) fn tests() -> Vec<Test<Disturbed>> {
    tests![
        second_creation_is_detected,
        externally_suspended_job_set_is_unsuspended,
        finished_train_job_never_runs_again,
        warning_survives_a_failed_status_write,
        train_job_whose_job_set_ended_and_vanished_unobserved_never_runs_again,
        job_set_deleted_while_suspended_is_recreated_despite_a_failed_call,
        job_set_removed_by_its_ttl_is_known_to_have_run,
        deleted_job_set_is_recreated,
        recreated_train_job_gets_its_own_objects,
        train_job_without_a_job_set_waits_for_its_runtime,
    ]
}
