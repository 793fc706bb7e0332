//! A running JobSet keeps the plan that it was rendered by: other plugins or settings change neither it nor its emitted objects, and if
//! it is deleted, it is recreated as it was.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{Act, Call, Test, Write, eventually};
use trainyard_schema::documents::Kind;

use crate::common::{
    editions::{Editions, JOB, MODES, SNAPSHOT, TestJob, emitting, pods_of},
    is_suspended, kind,
};

/// Checks that missing objects of the TrainJob are recreated under the plugins and settings of its plan.
async fn are_recreated_as_they_were(
    shared: &Editions,
    test_job: &TestJob<'_>,
    before: &BTreeMap<&'static str, String>,
) -> Result<()> {
    let controller = shared.cluster.controller_with(&shared.first).await?;
    let after = test_job
        .touch_until("it is recreated", async || {
            let notes = test_job.notes().await?;
            Ok((notes.len() == MODES.len()).then_some(notes))
        })
        .await?;
    ensure!(after == *before, "{after:?}");
    controller.kill().map(drop)
}

async fn plugin_update_does_not_reach_running_train_jobs(shared: &Editions) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let controller = cluster.controller_with(&shared.first).await?;
    let test_job = TestJob::running(shared, &emitting()).await?;
    let (before, job_set) = (test_job.notes().await?, test_job.job_set().await?);
    controller.kill()?;

    let controller = cluster.controller_with(&shared.second).await?;
    test_job.delete("once").await?;
    let pinned = "this TrainJob was started with the plugins beside";
    test_job
        .touch_until("it is reported", async || {
            Ok(test_job.has_event(pinned).await?.then_some(()))
        })
        .await?;
    let mut without = before.clone();
    without.remove("once");
    ensure!(test_job.notes().await? == without);
    let now = test_job.job_set().await?;
    ensure!(now["spec"] == job_set["spec"], "{now:#}");
    // Nor does it if a user suspends the JobSet, which resumes unchanged.
    let now = suspended_until_it_goes_on(&test_job).await?;
    ensure!(pods_of(&now) == pods_of(&job_set), "{now:#}");
    ensure!(now["metadata"]["uid"] == job_set["metadata"]["uid"]);
    controller.kill()?;

    are_recreated_as_they_were(shared, &test_job, &before).await
}

/// The operator's settings of a plugin are part of the plan, like the plugin itself.
async fn plugin_settings_change_does_not_reach_running_train_jobs(shared: &Editions) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let controller = cluster.controller_with(&shared.first).await?;
    let test_job = TestJob::running(shared, &emitting()).await?;
    let (before, job_set) = (test_job.notes().await?, test_job.job_set().await?);
    controller.kill()?;

    let policy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("beside-limits.yaml");
    let limits = "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins:\n- name: beside\n  limits: {logLines: 7}\n";
    std::fs::write(&policy, limits)?;
    let controller = cluster
        .controller_under(&shared.first, Some(&policy))
        .await?;
    test_job.delete("once").await?;
    test_job
        .touch_until("it is reported which settings changed", async || {
            let reported = test_job
                .has_event("these have changed: the limits of `beside`")
                .await?;
            Ok(reported.then_some(()))
        })
        .await?;
    ensure!(!test_job.notes().await?.contains_key("once"));
    let now = suspended_until_it_goes_on(&test_job).await?;
    ensure!(pods_of(&now) == pods_of(&job_set), "{now:#}");
    ensure!(now["metadata"]["uid"] == job_set["metadata"]["uid"]);
    controller.kill()?;

    are_recreated_as_they_were(shared, &test_job, &before).await
}

/// Suspends the JobSet as a user would, and waits until it is unsuspended.
async fn suspended_until_it_goes_on(test_job: &TestJob<'_>) -> Result<Value> {
    let job_sets = test_job.scenario.api(&test_job.job_sets);
    let suspended = json!({"spec": {"suspend": true}});
    let suspended = job_sets.merge(JOB, &suspended, &Write::strict()).await?;
    let suspended = suspended.accepted()?["metadata"]["generation"].as_u64();
    let goes_on = |job_set: &Value| {
        job_set["spec"]["suspend"] == false
            && job_set["metadata"]["generation"].as_u64() > suspended
    };
    job_sets.until(JOB, "it goes on", goes_on).await
}

/// No status reports that it ran, because none was written.
async fn unreported_start_is_recognized(shared: &Editions) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let refuse = |call: &Call| match call.path.contains("/trainjobs/job/status") {
        true => Act::conflict(),
        false => Act::Forward,
    };
    cluster.proxy.set_rule(refuse).await;
    let controller = cluster.controller_with(&shared.first).await?;
    let test_job = TestJob::created(shared, &emitting()).await?;
    let job_sets = test_job.scenario.api(&test_job.job_sets);
    let runs = |job_set: &Value| job_set["status"]["replicatedJobsStatus"][0]["ready"] == 1;
    let before = job_sets.until(JOB, "it runs", runs).await?;
    let notes = test_job.notes().await?;
    controller.kill()?;
    let job = test_job
        .scenario
        .api(&test_job.scenario.jobs)
        .get(JOB)
        .await?;
    let job = job.accepted()?;
    ensure!(job["status"].get("jobsStatus").is_none(), "{job:#}");

    let suspended = json!({"spec": {"suspend": true}});
    let suspended = job_sets.merge(JOB, &suspended, &Write::strict()).await?;
    let suspended = suspended.accepted()?["metadata"]["generation"].as_u64();
    cluster.proxy.forget().await;
    let controller = cluster.controller_with(&shared.second).await?;
    let goes_on = |job_set: &Value| {
        job_set["spec"]["suspend"] == false
            && job_set["metadata"]["generation"].as_u64() > suspended
    };
    let now = job_sets.until(JOB, "it goes on", goes_on).await?;
    ensure!(pods_of(&now) == pods_of(&before), "{now:#}");
    ensure!(now["metadata"]["uid"] == before["metadata"]["uid"]);
    ensure!(test_job.notes().await? == notes);
    controller.kill().map(drop)
}

/// The plugin is no longer loaded, but the TrainJob's own patches still reach its pods if JobSet allows the change.
async fn placement_follows_patches_without_the_plugin(shared: &Editions) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let controller = cluster.controller_with(&shared.first).await?;
    let test_job = TestJob::running(shared, &emitting()).await?;
    let before = test_job.job_set().await?;
    test_job
        .note("suspended", &json!({"suspend": true}))
        .await?;
    let jobs = test_job.scenario.api(&test_job.scenario.jobs);
    jobs.until(JOB, "it is suspended", is_suspended).await?;
    controller.kill()?;

    let controller = cluster.controller().await?;
    let pods = json!({
        "nodeSelector": {"zone": "b"},
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone"},
        ]}},
    });
    let job = json!({"name": "node", "template": {"spec": {"template": {"spec": pods}}}});
    let patch = json!({
        "manager": "example.com/queue",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}},
    });
    let spec = json!({"suspend": false, "runtimePatches": [patch]});
    test_job.note("resumed", &spec).await?;
    let job_sets = test_job.scenario.api(&test_job.job_sets);
    let goes_on = |job_set: &Value| job_set["spec"]["suspend"] == false;
    let now = job_sets.until(JOB, "it goes on", goes_on).await?;
    let at = "/spec/replicatedJobs/0/template/spec/template/spec";
    let (was, is) = (before.pointer(at), now.pointer(at));
    let (was, is) = (was.context("no pods")?, is.context("no pods")?);
    ensure!(is["nodeSelector"] == json!({"zone": "b"}), "{is:#}");
    ensure!(is["containers"] == was["containers"], "{is:#}");
    ensure!(now["metadata"]["uid"] == before["metadata"]["uid"]);
    let event = test_job
        .scenario
        .event(JOB, "this TrainJob was started with the plugins beside");
    let event = event.await?;
    ensure!(event["reason"] == "TrainJobWarning", "{event:#}");
    controller.kill().map(drop)
}

/// An Event about an unusable snapshot says to delete it. A deleted snapshot is recreated, and the TrainJob also continues without its
/// runtime.
async fn deleted_snapshot_is_recreated(shared: &Editions) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let controller = cluster.controller_with(&shared.first).await?;
    let test_job = TestJob::running(shared, &emitting()).await?;
    let before = test_job.job_set().await?;
    let config_maps = test_job.scenario.api(&test_job.config_maps);
    config_maps.delete(SNAPSHOT).await?.accepted()?;
    let now = suspended_until_it_goes_on(&test_job).await?;
    ensure!(pods_of(&now) == pods_of(&before), "{now:#}");
    let there = |map: &Value| map.is_object();
    let again = config_maps
        .until(SNAPSHOT, "it is recreated", there)
        .await?;
    ensure!(again["immutable"] == true, "{again:#}");
    ensure!(
        again["data"]["plan"]
            .as_str()
            .is_some_and(|plan| plan.contains("beside"))
    );

    let runtimes = kind(Kind::TrainingRuntime)?;
    let runtimes = test_job.scenario.api(&runtimes);
    runtimes.delete("torch").await?.accepted()?;
    runtimes
        .until_all("it is gone", <[Value]>::is_empty)
        .await?;
    config_maps.delete(SNAPSHOT).await?.accepted()?;
    let now = suspended_until_it_goes_on(&test_job).await?;
    ensure!(pods_of(&now) == pods_of(&before), "{now:#}");
    controller.kill().map(drop)
}

async fn deleted_running_job_set_is_recreated_from_the_pinned_plan(
    shared: &Editions,
) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let controller = cluster.controller_with(&shared.first).await?;
    let test_job = TestJob::running(shared, &emitting()).await?;
    let job_sets = test_job.scenario.api(&test_job.job_sets);
    let before = test_job.job_set().await?;
    controller.kill()?;

    let controller = cluster.controller_with(&shared.second).await?;
    job_sets.delete(JOB).await?.accepted()?;
    eventually("it is reported", async || {
        let reported = test_job.has_event("this TrainJob was started with the plugins beside");
        Ok(reported.await?.then_some(()))
    })
    .await?;
    ensure!(job_sets.items().await?.is_empty());
    controller.kill()?;

    let controller = cluster.controller_with(&shared.first).await?;
    let is_new = |job_set: &Value| {
        job_set.is_object() && job_set["metadata"]["uid"] != before["metadata"]["uid"]
    };
    let again = job_sets.until(JOB, "it is recreated", is_new).await?;
    ensure!(pods_of(&again) == pods_of(&before), "{again:#}");
    let snapshot = test_job.scenario.api(&test_job.config_maps);
    let snapshot = snapshot.get(SNAPSHOT).await?.accepted()?;
    let annotations = &snapshot["metadata"]["annotations"];
    ensure!(
        annotations["trainyard.dev/started"] == "true",
        "{snapshot:#}"
    );
    controller.kill().map(drop)
}

pub(crate) fn tests() -> Vec<Test<Editions>> {
    tests![
        plugin_update_does_not_reach_running_train_jobs,
        plugin_settings_change_does_not_reach_running_train_jobs,
        unreported_start_is_recognized,
        placement_follows_patches_without_the_plugin,
        deleted_snapshot_is_recreated,
        deleted_running_job_set_is_recreated_from_the_pinned_plan,
    ]
}
