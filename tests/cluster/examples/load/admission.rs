//! The latency of creating TrainJobs through admission webhooks.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Result;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use kube::{Client, api::PostParams};
use serde_json::json;
use trainyard_cluster::{
    ControlPlane, Oracle, Port, Reference, ReferenceLimits, Webhooks, define_kinds,
};

use crate::{
    measured::Trainyard,
    objects::{self, TRAIN_JOB, api},
};

/// The number of TrainJobs that are created at once.
const AT_ONCE: usize = 64;
/// The number of TrainJobs that are created before those that are measured.
const WARM_UP: usize = 256;

/// What serves the webhooks.
#[derive(Clone, Copy, Debug)]
enum Serves {
    Nobody,
    Trainyard,
    Reference,
}

/// Measures the creation of this many TrainJobs, [`AT_ONCE`] at once and as a dry run, which calls webhooks too. In each of three rounds,
/// an API server calls no webhooks, ours, and the reference's.
pub(crate) fn creations(program: &Path, count: usize) -> Result<()> {
    let plane = ControlPlane::start()?;
    plane.block_on(async {
        define_kinds(&plane).await?;
        objects::create_runtime(plane.client()).await?;
        let namespace = plane.new_namespace().await?;
        let all = [Serves::Nobody, Serves::Trainyard, Serves::Reference];
        for round in 1..=3 {
            for serves in all {
                let times = measured(&plane, &namespace, (serves, program), count).await?;
                let [median, p99] = [times.get(count / 2), times.get(count * 99 / 100)];
                let ms =
                    |time: Option<&Duration>| time.map_or(f64::NAN, |it| it.as_secs_f64() * 1e3);
                println!(
                    "round {round}, {serves:?}: median {:.1} ms, 99th percentile {:.1} ms",
                    ms(median),
                    ms(p99)
                );
            }
        }
        Ok(())
    })
}

/// Returns the sorted latencies.
async fn measured(
    plane: &ControlPlane,
    namespace: &str,
    (serves, program): (Serves, &Path),
    count: usize,
) -> Result<Vec<Duration>> {
    match serves {
        Serves::Nobody => create(plane.client(), namespace, count).await,
        Serves::Trainyard => {
            let port = Port::find()?;
            let config = Webhooks::controller_configuration(plane, &port)?;
            let config = format!("--config={}", config.display());
            let _serves = Trainyard::start(plane, program, &[config]).await?;
            let webhooks = Webhooks::of_chart(plane, &port)?;
            through(plane, namespace, &webhooks, count).await
        }
        Serves::Reference => {
            let reference = Reference::start(plane, ReferenceLimits::SHIPPED).await?;
            let file = Oracle::reference()?.join("manifests/base/webhook/manifests.yaml");
            let webhooks = Webhooks::read(&file, plane, reference.webhook_port())?;
            through(plane, namespace, &webhooks, count).await
        }
    }
}

async fn through(
    plane: &ControlPlane,
    namespace: &str,
    webhooks: &Webhooks,
    count: usize,
) -> Result<Vec<Duration>> {
    webhooks.install(plane).await?;
    let times = create(plane.client(), namespace, count).await;
    webhooks.remove(plane).await?;
    times
}

async fn create(client: &Client, namespace: &str, count: usize) -> Result<Vec<Duration>> {
    let jobs = api(client, namespace, TRAIN_JOB);
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let created = stream::iter(0..WARM_UP + count).map(async |number| {
        let job = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": objects::job(number)},
            "spec": {"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": 4}},
        });
        let job = serde_json::from_value(job)?;
        let started = Instant::now();
        jobs.create(&dry_run, &job).await?;
        anyhow::Ok(started.elapsed())
    });
    let times: Vec<_> = created.buffered(AT_ONCE).try_collect().await?;
    let mut times = times.into_iter().skip(WARM_UP).collect::<Vec<_>>();
    times.sort();
    Ok(times)
}
