//! A controller that starts when all TrainJobs are up to date writes nothing but its lease.
//!
//! There are 2,000 TrainJobs, or `TRAINYARD_RESTART_JOBS`: finished, failed, running, running with a deadline, suspended after a run, and
//! queued. For queued ones, the controller does not even read. The test itself writes the status of the JobSets, and no Jobs are created,
//! which allows a large number.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use trainyard_cluster::{
    Api, Call, ControlPlane, Proxy, Resource, Test, Trainyard, Write, define_kinds, deploy,
    eventually,
};
use trainyard_schema::documents::Kind;

use crate::common;

/// The number of concurrent calls.
const AT_ONCE: usize = 16;
/// The timeout of each wait.
const THEN: &str = "2026-01-02T03:04:05Z";

/// The state of a TrainJob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Completes,
    Fails,
    Runs,
    RunsWithDeadline,
    IsSuspended,
    Waits,
}

impl Fate {
    const ALL: [Self; 6] = [
        Self::Completes,
        Self::Fails,
        Self::Runs,
        Self::RunsWithDeadline,
        Self::IsSuspended,
        Self::Waits,
    ];

    fn of(number: usize) -> Self {
        Self::ALL[number % Self::ALL.len()]
    }

    /// Returns the state of the TrainJob or JobSet with this name.
    fn of_named(object: &Value) -> Result<Self> {
        let name = object["metadata"]["name"].as_str().context("no name")?;
        let number = name.trim_start_matches("job-").parse()?;
        Ok(Self::of(number))
    }

    fn job(self, name: &str) -> Value {
        let mut job = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": name}, "spec": {"runtimeRef": {"name": "torch"}},
        });
        if self == Self::Waits {
            job["spec"]["suspend"] = json!(true);
        }
        if self == Self::RunsWithDeadline {
            job["spec"]["activeDeadlineSeconds"] = json!(1_000_000);
        }
        job
    }

    fn is_suspended(self) -> bool {
        matches!(self, Self::IsSuspended | Self::Waits)
    }

    /// Returns the status of its JobSet.
    fn job_set_status(self) -> Value {
        let counts = match self {
            Self::Completes => [0, 1, 0, 0, 0],
            Self::Fails => [0, 0, 1, 0, 0],
            Self::Runs | Self::RunsWithDeadline | Self::IsSuspended => [1, 0, 0, 1, 0],
            Self::Waits => [0, 0, 0, 0, 1],
        };
        let [ready, succeeded, failed, active, suspended] = counts;
        let end = match self {
            Self::Completes => Some("Completed"),
            Self::Fails => Some("Failed"),
            _ => None,
        };
        let condition = |kind| {
            json!({
                "type": kind, "status": "True", "reason": "Because", "message": "the test says so",
                "lastTransitionTime": THEN,
            })
        };
        json!({
            "conditions": end.map(condition).into_iter().collect::<Vec<_>>(),
            "replicatedJobsStatus": [{
                "name": "node", "ready": ready, "succeeded": succeeded, "failed": failed, "active": active,
                "suspended": suspended,
            }],
        })
    }

    /// Returns whether the TrainJob's status reports this state.
    fn is_reported(self, job: &Value) -> bool {
        let is = |kind: &str| {
            let conditions = job["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|condition| condition["type"] == kind && condition["status"] == "True")
        };
        let counted = job["status"]["jobsStatus"] == self.job_set_status()["replicatedJobsStatus"];
        counted
            && is("Complete") == (self == Self::Completes)
            && is("Failed") == (self == Self::Fails)
            && is("Suspended") == self.is_suspended()
    }
}

fn how_many() -> Result<usize> {
    match std::env::var("TRAINYARD_RESTART_JOBS") {
        Ok(text) => text.parse().context("TRAINYARD_RESTART_JOBS is no number"),
        Err(_) => Ok(2_000),
    }
}

fn runtime() -> Value {
    let container = json!({"name": "node", "image": "example.com/image"});
    let job = json!({
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"template": {"spec": {"containers": [container]}}},
        },
    });
    json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "torch"},
        "spec": {"mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": [job]}}},
    })
}

/// Creates the TrainJobs, lets the controller reconcile them, and brings each into its state.
async fn fill(jobs: &Api<'_>, job_sets: &Api<'_>, count: usize) -> Result<()> {
    stream::iter(0..count)
        .map(|number| async move {
            let job = Fate::of(number).job(&format!("job-{number}"));
            jobs.create(&job, &Write::strict()).await?.accepted()?;
            anyhow::Ok(())
        })
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    let made = job_sets.until_all("each has a JobSet", |all| all.len() == count);
    stream::iter(made.await?)
        .map(|mut job_set| async move {
            job_set["status"] = Fate::of_named(&job_set)?.job_set_status();
            let written = job_sets.replace_status(&job_set, &Write::strict()).await?;
            written.accepted()?;
            anyhow::Ok(())
        })
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    let suspended = (0..count).filter(|number| Fate::of(*number) == Fate::IsSuspended);
    stream::iter(suspended)
        .map(|number| async move {
            let patch = json!({"spec": {"suspend": true}});
            let name = format!("job-{number}");
            let patched = jobs.merge(&name, &patch, &Write::strict()).await?;
            patched.accepted()?;
            anyhow::Ok(())
        })
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    let reported = |all: &[Value]| {
        all.iter()
            .all(|job| Fate::of_named(job).is_ok_and(|fate| fate.is_reported(job)))
    };
    jobs.until_all("all is reported in the status", reported)
        .await?;
    let is_suspended = |all: &[Value]| {
        all.iter().all(|job_set| {
            let fate = Fate::of_named(job_set).ok();
            (job_set["spec"]["suspend"] == true) == fate.is_some_and(Fate::is_suspended)
        })
    };
    let what = "JobSets are suspended";
    job_sets.until_all(what, is_suspended).await.map(drop)
}

/// Waits until every TrainJob was reconciled and the controller is idle.
async fn until_idle(controller: &Trainyard, count: usize) -> Result<()> {
    let total = "controller_runtime_reconcile_total";
    eventually("every TrainJob was looked at", async || {
        let looked_at = controller.metric(total, "").await?;
        Ok((looked_at >= count as f64).then_some(()))
    })
    .await?;
    controller.until_idle().await?;
    let errors = controller.metric(total, "result=\"error\"").await?;
    ensure!(errors == 0.0, "{errors} reconciles failed");
    Ok(())
}

async fn controller_restart_writes_nothing(plane: &ControlPlane) -> Result<()> {
    define_kinds(plane).await?;
    let count = how_many()?;
    common::create_runtimes(plane, &[runtime()]).await?;
    let namespace = plane.new_namespace().await?;
    let (jobs, job_sets) = (common::kind(Kind::TrainJob)?, Resource::jobsets());
    let (jobs, job_sets) = (
        plane.api(&jobs, &namespace),
        plane.api(&job_sets, &namespace),
    );
    let account = deploy(plane).await?;
    let before = Trainyard::start(plane, &account, ["--leader-elect=true"]).await?;
    fill(&jobs, &job_sets, count).await?;
    before.kill()?;
    let versions = async || -> Result<Vec<Value>> {
        let all = [jobs.items().await?, job_sets.items().await?].concat();
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        Ok(all.iter().map(version).collect())
    };
    let then = versions().await?;

    let proxy = Proxy::start(plane).await?;
    let started = Instant::now();
    let kubeconfig = proxy.kubeconfig(&account)?;
    let after = Trainyard::start(plane, &kubeconfig, ["--leader-elect=true"]).await?;
    until_idle(&after, count).await?;
    let idle = started.elapsed();
    let is_lease = |call: &&Call| call.path.contains("/leases");
    // It leads, and renews the Lease. Late writes would have happened by then.
    let renewals = proxy.calls().await.iter().filter(is_lease).count() + 3;
    eventually("the lease is renewed", async || {
        Ok((proxy.calls().await.iter().filter(is_lease).count() >= renewals).then_some(()))
    })
    .await?;
    let calls = proxy.calls().await;
    let others: Vec<_> = calls.iter().filter(|call| !is_lease(call)).collect();
    let writes: Vec<_> = others.iter().filter(|call| call.write.is_some()).collect();
    ensure!(writes.is_empty(), "{} writes: {writes:#?}", writes.len());
    ensure!(versions().await? == then, "something was written");
    let is_of_queued = |call: &&&Call| {
        let mut names = call.path.split(['/', '?']).filter_map(|part| {
            let number = part.strip_prefix("job-")?;
            number.trim_end_matches("-runtime-snapshot").parse().ok()
        });
        names.any(|number| Fate::of(number) == Fate::Waits)
    };
    let of_queued: Vec<_> = others.iter().filter(is_of_queued).collect();
    ensure!(
        of_queued.is_empty(),
        "{} reads: {of_queued:#?}",
        of_queued.len()
    );
    println!(
        "{count} TrainJobs, idle {idle:.1?} after its start, {} reads",
        others.len()
    );
    after.process().still_runs()
}

pub(crate) fn tests() -> Vec<Test> {
    tests![controller_restart_writes_nothing]
}
