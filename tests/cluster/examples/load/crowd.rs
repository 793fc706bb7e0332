//! The effect of other users' TrainJobs, and of a restart, on a TrainJob: the latency of its suspension and of its first reconcile.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kube::Client;
use trainyard_cluster::{ControlPlane, define_kinds};

use crate::{
    SETTLED,
    measured::{Contender, Measured},
    objects::{self, Fate, JOB_SET, api},
    observe, summary,
};

/// The number of TrainJobs that are suspended one by one: this many while the crowd is first reconciled, and this many afterwards.
const SUSPENDED: usize = 20;
const LOOKED_AFTER: Duration = Duration::from_millis(2);
const PATIENCE: Duration = Duration::from_secs(600);

/// Measures the time from the write of `spec.suspend` in a TrainJob to the suspended JobSet, with this many failing and queued TrainJobs
/// that exist when the controller starts.
pub(crate) fn suspensions(contender: &Contender<'_>, each: usize) -> Result<()> {
    let plane = ControlPlane::start()?;
    plane.block_on(async {
        let client = plane.client();
        define_kinds(&plane).await?;
        objects::create_runtime(client).await?;
        let [fails, waits, other] = [
            plane.new_namespace().await?,
            plane.new_namespace().await?,
            plane.new_namespace().await?,
        ];
        objects::create_jobs(client, &other, 2 * SUSPENDED, Fate::Runs).await?;
        {
            let _controller = Measured::start(&plane, contender).await?;
            observe(&api(client, &other, JOB_SET), 2 * SUSPENDED).await?;
            tokio::time::sleep(SETTLED).await;
        }
        objects::create_jobs(client, &fails, each, Fate::Fails).await?;
        objects::create_jobs(client, &waits, each, Fate::Waits).await?;

        let controller = Measured::start(&plane, contender).await?;
        let first = suspended(client, &other, 0..SUSPENDED).await?;
        print(
            "while the controller sees to all of them for the first time",
            &first,
        );
        observe(&api(client, &waits, JOB_SET), each).await?;
        tokio::time::sleep(SETTLED).await;
        let (reconciles, since) = (controller.reconciles().await?, Instant::now());
        let then = suspended(client, &other, SUSPENDED..2 * SUSPENDED).await?;
        print("once those that wait have their JobSets", &then);
        let rate = (controller.reconciles().await? - reconciles) / since.elapsed().as_secs_f64();
        println!(
            "{rate:.0} reconciles a second meanwhile, {:.1} MiB",
            controller.rss().await?
        );
        Ok(())
    })
}

fn print(when: &str, times: &[Duration]) {
    let mut times: Vec<f64> = times
        .iter()
        .map(|time| time.as_secs_f64() * 1000.0)
        .collect();
    times.sort_by(f64::total_cmp);
    let [least, greatest] =
        [times.first(), times.last()].map(|time| time.copied().unwrap_or(f64::NAN));
    let median = summary::median(&times);
    println!(
        "suspension {when}: median {median:.0} ms ({least:.0} to {greatest:.0}) of {}",
        times.len()
    );
}

async fn suspended(
    client: &Client,
    namespace: &str,
    numbers: std::ops::Range<usize>,
) -> Result<Vec<Duration>> {
    let job_sets = api(client, namespace, JOB_SET);
    let mut times = Vec::new();
    for number in numbers {
        let name = objects::job(number);
        let started = Instant::now();
        objects::suspend(client, namespace, &name).await?;
        while job_sets.get(&name).await?.data.pointer("/spec/suspend") != Some(&true.into()) {
            ensure!(
                started.elapsed() < PATIENCE,
                "JobSet {name} is not suspended"
            );
            tokio::time::sleep(LOOKED_AFTER).await;
        }
        times.push(started.elapsed());
    }
    Ok(times)
}

/// Measures how soon a starting controller is idle with this many queued TrainJobs that have JobSets.
pub(crate) fn restart(contender: &Contender<'_>, count: usize) -> Result<()> {
    let plane = ControlPlane::start()?;
    plane.block_on(async {
        let client = plane.client();
        define_kinds(&plane).await?;
        objects::create_runtime(client).await?;
        let namespace = plane.new_namespace().await?;
        objects::create_jobs(client, &namespace, count, Fate::Waits).await?;
        {
            let controller = Measured::start(&plane, contender).await?;
            observe(&api(client, &namespace, JOB_SET), count).await?;
            idle(&controller, count).await?;
            tokio::time::sleep(SETTLED).await;
        }
        let started = Instant::now();
        let controller = Measured::start(&plane, contender).await?;
        let ready = started.elapsed();
        idle(&controller, count).await?;
        println!(
            "a start with {count} TrainJobs that wait: ready after {:.2} s, idle after {:.2} s, {:.0} calls, {:.2} s of CPU, {:.1} MiB",
            ready.as_secs_f64(), started.elapsed().as_secs_f64(), controller.calls().await?, controller.cpu().await?, controller.rss().await?,
        );
        Ok(())
    })
}

/// Waits until each TrainJob was reconciled, and the queue is empty.
async fn idle(controller: &Measured, count: usize) -> Result<()> {
    let started = Instant::now();
    while controller.reconciles().await? < count as f64 || !controller.is_idle().await? {
        ensure!(started.elapsed() < PATIENCE, "the controller is not idle");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
