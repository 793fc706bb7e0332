//! Objects that plugins emit change only when their mode says so: a running JobSet keeps its objects, deleted ones are recreated as they
//! were, and only live ones follow their TrainJob.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use trainyard_cluster::{Call, Test, Trainyard, Write, eventually};

use crate::common::{
    editions::{Editions, JOB, MODES, TestJob, emitting},
    is, is_running,
};

async fn missing_objects_are_recreated(shared: &Editions) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let controller = cluster.controller_with(&shared.first).await?;
    let test_job = TestJob::running(shared, &emitting()).await?;
    let (before, job_set) = (test_job.objects().await?, test_job.job_set().await?);
    ensure!(before.len() == MODES.len(), "{before:#?}");
    for mode in MODES {
        test_job.delete(mode).await?;
    }
    test_job.touch("once").await?;
    let after = eventually("all are there again", async || {
        let found = test_job.objects().await?;
        Ok((found.len() == MODES.len()).then_some(found))
    })
    .await?;
    for mode in MODES {
        let (before, after) = (&before[mode], &after[mode]);
        let (was, now) = (&before["metadata"], &after["metadata"]);
        ensure!(was["uid"] != now["uid"], "{mode} was not deleted");
        ensure!(before["data"] == after["data"], "{mode}: {after:#}");
        ensure!(was["ownerReferences"] == now["ownerReferences"], "{now:#}");
    }
    let now = test_job.job_set().await?;
    ensure!(now["metadata"]["uid"] == job_set["metadata"]["uid"]);
    ensure!(now["metadata"]["generation"] == job_set["metadata"]["generation"]);
    controller.kill().map(drop)
}

async fn foreign_object_is_left_unchanged(shared: &Editions) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let controller = cluster.controller_with(&shared.first).await?;
    let test_job = TestJob::running(shared, &emitting()).await?;
    test_job.delete("once").await?;
    test_job.delete("live").await?;
    let foreign = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "job-once"}, "data": {"mine": "yes"},
    });
    let config_maps = test_job.scenario.api(&test_job.config_maps);
    config_maps
        .create(&foreign, &Write::strict())
        .await?
        .accepted()?;
    test_job.touch("once").await?;
    eventually("it is reported, and the other is recreated", async || {
        let reported = test_job.has_event("ConfigMap `job-once` does not belong to this TrainJob");
        let whole = test_job.objects().await?.contains_key("live");
        Ok((reported.await? && whole).then_some(()))
    })
    .await?;
    let found = config_maps.get("job-once").await?.accepted()?;
    ensure!(found["data"] == foreign["data"], "{found:#}");
    ensure!(found["metadata"].get("ownerReferences").is_none());
    controller.kill().map(drop)
}

async fn objects_change_according_to_their_mode(shared: &Editions) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let controller = cluster.controller_with(&shared.first).await?;
    let test_job = TestJob::running(shared, &emitting()).await?;
    let expected = |while_suspended: &str, live: &str| {
        let first = |note: &str| format!("first: {note}");
        let notes = ["at first", "at first", while_suspended, live].map(first);
        MODES.into_iter().zip(notes).collect::<BTreeMap<_, _>>()
    };
    ensure!(test_job.notes().await? == expected("at first", "at first"));
    // The live object is applied last.
    test_job.note("running", &json!({})).await?;
    let notes = test_job.until_noted("live", "first: running").await?;
    ensure!(notes == expected("at first", "running"), "{notes:?}");
    test_job
        .note("suspended", &json!({"suspend": true}))
        .await?;
    let notes = test_job.until_noted("live", "first: suspended").await?;
    let is_last = test_job.until_noted("while-suspended", "first: suspended");
    ensure!(
        is_last.await? == notes && notes == expected("suspended", "suspended"),
        "{notes:?}"
    );
    test_job.note("resumed", &json!({"suspend": false})).await?;
    let jobs = test_job.scenario.api(&test_job.scenario.jobs);
    let goes_on = |job: &Value| is_running(job) && is(job, "Suspended", "False");
    jobs.until(JOB, "it goes on", goes_on).await?;
    let notes = test_job.notes().await?;
    ensure!(notes == expected("resumed", "resumed"), "{notes:?}");
    // A user's change of a live object is reverted.
    let patch = json!({"data": {"note": "of somebody"}});
    let config_maps = test_job.scenario.api(&test_job.config_maps);
    config_maps
        .merge("job-live", &patch, &Write::strict())
        .await?
        .accepted()?;
    test_job.touch("once").await?;
    let notes = test_job.until_noted("live", "first: resumed").await?;
    ensure!(notes == expected("resumed", "resumed"), "{notes:?}");
    controller.kill().map(drop)
}

async fn nothing_is_read_without_emitted_objects(shared: &Editions) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let controller = cluster.controller_with(&shared.first).await?;
    let test_job = TestJob::running(shared, &json!([])).await?;
    let path = format!("/namespaces/{}/", test_job.scenario.name);
    let reads = async || {
        let calls = cluster.proxy.calls().await;
        let is_read = |call: &&Call| call.method == Method::GET && call.path.contains(&path);
        calls.iter().filter(is_read).cloned().collect::<Vec<_>>()
    };
    changed_and_reconciled(&test_job, &controller, "a").await?;
    ensure!(reads().await.is_empty(), "{:#?}", reads().await);
    controller.kill()?;

    // Emitted objects are read once, and only when something changes.
    let controller = cluster.controller_with(&shared.first).await?;
    controller.until_idle().await?;
    ensure!(reads().await.is_empty(), "{:#?}", reads().await);
    changed_and_reconciled(&test_job, &controller, "b").await?;
    changed_and_reconciled(&test_job, &controller, "c").await?;
    let reads = reads().await;
    ensure!(reads.len() == 1, "{reads:#?}");
    let read = reads.first().context("no read")?;
    ensure!(
        read.path.contains("/configmaps/job-runtime-snapshot"),
        "{read:?}"
    );
    controller.kill().map(drop)
}

const RECONCILED: &str = "controller_runtime_reconcile_total";

/// Changes the TrainJob and its JobSet, and waits until the controller has reconciled each change.
async fn changed_and_reconciled(
    test_job: &TestJob<'_>,
    controller: &Trainyard,
    text: &str,
) -> Result<()> {
    for job_set in [true, false] {
        let before = controller.metric(RECONCILED, "").await?;
        if job_set {
            test_job.touch(text).await?;
        } else {
            test_job.note(text, &json!({})).await?;
        }
        eventually("it is reconciled", async || {
            let now = controller.metric(RECONCILED, "").await?;
            Ok((now > before).then_some(()))
        })
        .await?;
    }
    controller.until_idle().await
}

pub(crate) fn tests() -> Vec<Test<Editions>> {
    tests![
        missing_objects_are_recreated,
        foreign_object_is_left_unchanged,
        objects_change_according_to_their_mode,
        nothing_is_read_without_emitted_objects,
    ]
}
