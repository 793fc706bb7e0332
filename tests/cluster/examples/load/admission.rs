//! The latency of creating TrainJobs through admission webhooks.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Result;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::PostParams;
use serde_json::json;
use trainyard_cluster::{
    ControlPlane, Oracle, Port, Reference, ReferenceLimits, Webhooks, define_kinds,
};

use crate::{
    measured::{Measured, Trainyard, api_server_cpu},
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

/// What a round measured.
struct Creations {
    /// The sorted latencies.
    times: Vec<Duration>,
    /// The CPU time for one creation of the API server and of what serves the webhooks, in milliseconds.
    cpu: [f64; 2],
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
                let Creations { times, cpu } =
                    measured(&plane, &namespace, (serves, program), count).await?;
                let ms = |time: Option<&Duration>| {
                    time.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
                };
                let [median, p99] = [times.get(count / 2), times.get(count * 99 / 100)].map(ms);
                let [api_server, webhooks] = cpu;
                println!(
                    "round {round}, {serves:?}: median {median:.1} ms, 99th percentile {p99:.1} ms, \
                     CPU for each {api_server:.2} ms of the API server, {webhooks:.2} ms of the webhooks"
                );
            }
        }
        Ok(())
    })
}

async fn measured(
    plane: &ControlPlane,
    namespace: &str,
    (serves, program): (Serves, &Path),
    count: usize,
) -> Result<Creations> {
    let port = Port::find()?;
    let (measured, webhooks) = match serves {
        Serves::Nobody => return create(plane, namespace, (None, count)).await,
        Serves::Trainyard => {
            let config = Webhooks::controller_configuration(plane, &port)?;
            let config = format!("--config={}", config.display());
            let started = Trainyard::start(plane, program, &[config]).await?;
            (
                Measured::Trainyard(started),
                Webhooks::of_chart(plane, &port)?,
            )
        }
        Serves::Reference => {
            let started = Reference::start(plane, ReferenceLimits::SHIPPED).await?;
            let file = Oracle::reference()?.join("manifests/base/webhook/manifests.yaml");
            let webhooks = Webhooks::read(&file, plane, started.webhook_port())?;
            (Measured::Reference(started), webhooks)
        }
    };
    webhooks.install(plane).await?;
    let created = create(plane, namespace, (Some(&measured), count)).await;
    webhooks.remove(plane).await?;
    created
}

async fn create(
    plane: &ControlPlane,
    namespace: &str,
    (webhooks, count): (Option<&Measured>, usize),
) -> Result<Creations> {
    some(plane, namespace, WARM_UP).await?;
    let cpu = async || {
        let webhooks = match webhooks {
            Some(controller) => controller.cpu().await?,
            None => 0.0,
        };
        anyhow::Ok([api_server_cpu(plane).await?, webhooks])
    };
    let [api_server, of_webhooks] = cpu().await?;
    let mut times = some(plane, namespace, count).await?;
    times.sort();
    let [api_server_now, of_webhooks_now] = cpu().await?;
    let used = [api_server_now - api_server, of_webhooks_now - of_webhooks];
    let created = u32::try_from(count)?;
    let cpu = used.map(|seconds| seconds * 1e3 / f64::from(created));
    Ok(Creations { times, cpu })
}

/// Creates this many TrainJobs, and returns how long each took.
async fn some(plane: &ControlPlane, namespace: &str, count: usize) -> Result<Vec<Duration>> {
    let jobs = api(plane.client(), namespace, TRAIN_JOB);
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let created = stream::iter(0..count).map(async |number| {
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
    created.buffered(AT_ONCE).try_collect().await
}
