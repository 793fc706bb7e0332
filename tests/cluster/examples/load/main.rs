//! How fast TrainJobs become JobSets, and what that costs: the controller beside a bare client that makes the same writes on the
//! same API server, and beside the reference's controller.
//!
//! `cargo run --release -p trainyard-cluster --example load -- target/release/trainyard`. Only etcd and kube-apiserver run. The
//! TrainJobs are made while the controller is off; what counts is the time from the first JobSet to the last one.

mod bare;
mod measured;
mod objects;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use trainyard_cluster::{ControlPlane, Install, install, reference_controller};
use trainyard_schema::documents::Kind;

use measured::{Contender, Limits, Measured};
use objects::{JOB_SET, api};

/// Calls of the bare client at once, and TrainJobs that a controller reconciles at once.
const AT_ONCE: usize = 16;
/// Until what follows from the last JobSet is done: its watch event, and a status.
const SETTLED: Duration = Duration::from_secs(3);
/// The client limits that the reference is shipped with, and ones that never hold it up.
const REFERENCE: [(&str, Limits); 2] = [
    (
        "the reference as shipped (50 calls a second, 5 at once)",
        Limits {
            rate: 50,
            at_once: 5,
        },
    ),
    (
        "the reference, no limit in effect, 16 at once",
        Limits {
            rate: 10_000,
            at_once: AT_ONCE,
        },
    ),
];

/// Measures TrainJobs to JobSets, on an idle machine.
#[derive(Debug, Parser)]
struct Arguments {
    /// The program: target/release/trainyard.
    program: PathBuf,
    /// TrainJobs of a round.
    #[arg(default_value_t = 2_000)]
    jobs: usize,
    /// Rounds of the controller and the bare client; each has an API server of its own.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// One more round of so many TrainJobs, for the memory that each takes; 0 leaves it out.
    #[arg(long, default_value_t = 10_000)]
    many: usize,
    /// Measures the reference too; builds it with Go, once.
    #[arg(long)]
    reference: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let ours = Contender::Trainyard(&arguments.program);
    println!(
        "| | JobSets a second | of the bare client | ms of CPU for each | calls for each | MiB idle | MiB after |"
    );
    println!("|---|---|---|---|---|---|---|");
    for _ in 0..arguments.rounds {
        round("trainyard", &ours, arguments.jobs, true)?;
    }
    if arguments.many > 0 {
        let name = format!("trainyard, {} TrainJobs", arguments.many);
        let figures = round(&name, &ours, arguments.many, false)?;
        let kib = (figures.rss_after - figures.rss_idle) * 1024.0 / arguments.many as f64;
        eprintln!("{kib:.1} KiB for each of {} TrainJobs", arguments.many);
    }
    if arguments.reference {
        let program = reference_controller()?;
        for (name, limits) in REFERENCE {
            let reference = Contender::Reference(&program, limits);
            round(name, &reference, arguments.jobs, true)?;
        }
    }
    Ok(())
}

/// What a contender did, and what it took.
struct Figures {
    /// From the first JobSet to the last.
    time: Duration,
    /// Of CPU, for each TrainJob.
    milliseconds: f64,
    /// Calls that got an answer, watches among them, for each TrainJob.
    calls: f64,
    rss_idle: f64,
    rss_after: f64,
}

/// One contender on an API server of its own, and the bare client on the same; prints a row of the table.
fn round(name: &str, contender: &Contender<'_>, jobs: usize, bare: bool) -> Result<Figures> {
    let plane = ControlPlane::start()?;
    plane.block_on(async {
        let namespace = prepare(&plane).await?;
        let figures = measure(&plane, contender, &namespace, jobs).await?;
        let rate = |time: Duration| jobs as f64 / time.as_secs_f64();
        let of_bare = if bare {
            let time = bare_client(&plane, &namespace, jobs).await?;
            let share = 100.0 * rate(figures.time) / rate(time);
            format!("{share:.0} % of {:.0}", rate(time))
        } else {
            String::new()
        };
        println!(
            "| {name} | {:.0} | {of_bare} | {:.2} | {:.2} | {:.1} | {:.1} |",
            rate(figures.time),
            figures.milliseconds,
            figures.calls,
            figures.rss_idle,
            figures.rss_after
        );
        Ok(figures)
    })
}

/// Defines the kinds, and makes a namespace with a runtime for it.
async fn prepare(plane: &ControlPlane) -> Result<String> {
    for kind in Kind::ALL {
        install(plane, &kind.crd()?, Install::ServerSide).await?;
    }
    install(plane, &objects::job_set_definition(), Install::ServerSide).await?;
    objects::create_runtime(plane.client()).await?;
    plane.new_namespace().await
}

async fn measure(
    plane: &ControlPlane,
    contender: &Contender<'_>,
    namespace: &str,
    jobs: usize,
) -> Result<Figures> {
    let idle = Measured::start(plane, contender).await?;
    tokio::time::sleep(SETTLED).await;
    let rss_idle = idle.rss().await?;
    drop(idle);
    objects::create_jobs(plane.client(), namespace, jobs).await?;
    let controller = Measured::start(plane, contender).await?;
    let time = until(&api(plane.client(), namespace, JOB_SET), jobs).await?;
    let cpu = controller.cpu().await?;
    tokio::time::sleep(SETTLED).await;
    Ok(Figures {
        time,
        milliseconds: cpu * 1000.0 / jobs as f64,
        calls: controller.calls().await? / jobs as f64,
        rss_idle,
        rss_after: controller.rss().await?,
    })
}

/// Waits until there are so many; returns the time from the first to the last.
async fn until(api: &Api<DynamicObject>, count: usize) -> Result<Duration> {
    let (mut first, started) = (None, Instant::now());
    loop {
        // Metadata alone, and at most one of it: the server counts the rest.
        let list = api.list_metadata(&ListParams::default().limit(1)).await?;
        let rest = list.metadata.remaining_item_count.unwrap_or(0);
        let found = list.items.len() + usize::try_from(rest)?;
        if found > 0 {
            let first = *first.get_or_insert_with(Instant::now);
            if found >= count {
                return Ok(first.elapsed());
            }
        }
        ensure!(
            started.elapsed() < Duration::from_secs(900),
            "only {found} of {count} JobSets"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The same writes by a bare client, in a namespace of its own.
async fn bare_client(plane: &ControlPlane, namespace: &str, jobs: usize) -> Result<Duration> {
    let client = plane.client();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let snapshot = format!("{}-runtime-snapshot", objects::job(0));
    let map = maps.get(&snapshot).await;
    let map = map.context("the first TrainJob's snapshot")?;
    let job_set = api(client, namespace, JOB_SET)
        .get(&objects::job(0))
        .await?;
    let template = bare::Template::of(map, &job_set)?;
    let namespace = plane.new_namespace().await?;
    template.write(client, &namespace, jobs).await
}
