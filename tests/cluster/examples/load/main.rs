//! Measures how fast TrainJobs become JobSets, and at what cost: the controller compared with a bare client that makes the same writes on
//! the same API server, and with the reference's controller.
//!
//! `cargo run --release -p trainyard-cluster --example load -- target/release/trainyard`. Only etcd and kube-apiserver run, with
//! the CRDs as they are published. The TrainJobs are created before the controller starts. One observer measures both programs
//! of a pair in the same way, from the first observed JobSet to the last.

mod admission;
mod bare;
mod crowd;
mod measured;
mod objects;
mod rollout;
mod summary;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{DynamicObject, ListParams},
};
use measured::{Contender, Measured};
use objects::{Fate, JOB_SET, api};
use summary::{Figures, Pair};
use trainyard_cluster::{ControlPlane, ReferenceLimits, define_kinds};

/// The number of concurrent calls of the bare client, and of concurrent reconciles of a controller.
const AT_ONCE: usize = 16;
/// The time for the work after the last JobSet: its watch event and a status.
const SETTLED: Duration = Duration::from_secs(3);
/// The interval of the observer.
const OBSERVED_EVERY: Duration = Duration::from_millis(20);
/// The client limits of the reference's release, and limits without effect.
const REFERENCE: [(&str, ReferenceLimits); 2] = [
    (
        "the reference as shipped (50 calls a second, 5 at once)",
        ReferenceLimits::SHIPPED,
    ),
    (
        "the reference, no limit in effect, 16 at once",
        ReferenceLimits {
            rate: 10_000,
            at_once: AT_ONCE,
        },
    ),
];

/// Measures the creation of JobSets from TrainJobs, on an idle machine.
#[derive(Debug, Parser)]
struct Arguments {
    /// The program: target/release/trainyard.
    program: PathBuf,
    /// The number of TrainJobs in a pair.
    #[arg(default_value_t = 2_000)]
    jobs: usize,
    /// The number of pairs of the controller and the bare client, each with its own API server. They alternate in going first.
    #[arg(long, default_value_t = 10)]
    pairs: usize,
    /// The number of TrainJobs of another run that measures memory per TrainJob; 0 skips it.
    #[arg(long, default_value_t = 10_000)]
    many: usize,
    /// The number of namespaces of these TrainJobs.
    #[arg(long, default_value_t = 1)]
    namespaces: usize,
    /// Also measures the reference in the same number of pairs; builds it with Go once.
    #[arg(long, default_value_t = 0)]
    reference_pairs: usize,
    /// Measures the latency of a suspension with this many failing TrainJobs in a second namespace and as many queued ones in a third.
    #[arg(long, default_value_t = 0)]
    crowd: usize,
    /// Measures how soon a starting controller has reconciled this many queued TrainJobs.
    #[arg(long, default_value_t = 0)]
    waiting: usize,
    /// Measures the creation of this many TrainJobs through our webhooks and those of the reference.
    #[arg(long, default_value_t = 0)]
    admissions: usize,
    /// Measures how soon this many queued TrainJobs follow a change of a plugin that the cluster declares.
    #[arg(long, default_value_t = 0)]
    followers: usize,
    /// The two files of the plugin `stamp` for --followers. `make test-plugins` leaves them in target/tmp/plugins.
    #[arg(long, num_args = 2)]
    plugins: Vec<PathBuf>,
}

/// Which of a pair goes first.
#[derive(Clone, Copy)]
enum First {
    Controller,
    Bare,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let ours = Contender::Trainyard(&arguments.program);
    if arguments.pairs > 0 || arguments.many > 0 {
        summary::header();
    }
    pairs("trainyard", &ours, arguments.jobs, arguments.pairs)?;
    if arguments.many > 0 {
        let figures = alone(&ours, arguments.many, arguments.namespaces)?;
        let (jobs, namespaces) = (arguments.many, arguments.namespaces);
        figures.print_row(&format!(
            "trainyard, {jobs} TrainJobs in {namespaces} namespaces"
        ));
        let kib = (figures.rss_after - figures.rss_idle) * 1024.0 / arguments.many as f64;
        eprintln!("{kib:.1} KiB for each of {} TrainJobs", arguments.many);
    }
    if arguments.reference_pairs > 0 {
        for (name, limits) in REFERENCE {
            let reference = Contender::Reference(limits);
            pairs(name, &reference, arguments.jobs, arguments.reference_pairs)?;
        }
    }
    if arguments.crowd > 0 {
        crowd::suspensions(&ours, arguments.crowd)?;
    }
    if arguments.waiting > 0 {
        crowd::restart(&ours, arguments.waiting)?;
    }
    if arguments.admissions > 0 {
        admission::creations(&arguments.program, arguments.admissions)?;
    }
    if arguments.followers > 0 {
        rollout::followers(&arguments.program, arguments.followers, &arguments.plugins)?;
    }
    Ok(())
}

/// Measures this many pairs, and prints a row for each and one for all.
fn pairs(name: &str, contender: &Contender<'_>, jobs: usize, count: usize) -> Result<()> {
    let mut measured = Vec::new();
    for number in 0..count {
        let first = if number % 2 == 0 {
            First::Controller
        } else {
            First::Bare
        };
        let pair = pair(contender, jobs, first)?;
        pair.print_row(&format!("{name}, pair {}", number + 1));
        measured.push(pair);
    }
    if count > 0 {
        summary::print(name, &measured);
    }
    Ok(())
}

/// Measures the controller and the bare client, one after another on one API server.
fn pair(contender: &Contender<'_>, jobs: usize, first: First) -> Result<Pair> {
    let plane = ControlPlane::start()?;
    plane.block_on(async {
        let (idle, template) = prepare(&plane, contender).await?;
        let ours = || measure(&plane, contender, idle, jobs, 1);
        let bare = || bare_client(&plane, &template, jobs);
        let (figures, bare) = match first {
            First::Controller => (ours().await?, bare().await?),
            First::Bare => {
                let bare = bare().await?;
                (ours().await?, bare)
            }
        };
        Ok(Pair {
            figures,
            bare: rate(jobs, bare),
        })
    })
}

/// Measures only the controller.
fn alone(contender: &Contender<'_>, jobs: usize, namespaces: usize) -> Result<Figures> {
    let plane = ControlPlane::start()?;
    plane.block_on(async {
        let (idle, _) = prepare(&plane, contender).await?;
        measure(&plane, contender, idle, jobs, namespaces).await
    })
}

/// Defines the kinds and lets the controller create one JobSet. Returns its memory when idle, and the objects that it wrote.
async fn prepare(plane: &ControlPlane, contender: &Contender<'_>) -> Result<(f64, bare::Template)> {
    define_kinds(plane).await?;
    let client = plane.client();
    objects::create_runtime(client).await?;
    let namespace = plane.new_namespace().await?;
    objects::create_jobs(client, &namespace, 1, Fate::Runs).await?;
    let controller = Measured::start(plane, contender).await?;
    let job_sets = api(client, &namespace, JOB_SET);
    observe(&job_sets, 1).await?;
    tokio::time::sleep(SETTLED).await;
    let idle = controller.rss().await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let map = maps
        .get(&format!("{}-runtime-snapshot", objects::job(0)))
        .await
        .context("the TrainJob's snapshot")?;
    let job_set = job_sets.get(&objects::job(0)).await?;
    Ok((idle, bare::Template::of(map, &job_set)?))
}

async fn measure(
    plane: &ControlPlane,
    contender: &Contender<'_>,
    rss_idle: f64,
    jobs: usize,
    namespaces: usize,
) -> Result<Figures> {
    let client = plane.client();
    let mut shares = Vec::new();
    for number in 0..namespaces {
        let share = jobs / namespaces + usize::from(number < jobs % namespaces);
        let namespace = plane.new_namespace().await?;
        objects::create_jobs(client, &namespace, share, Fate::Runs).await?;
        shares.push((namespace, share));
    }
    let controller = Measured::start(plane, contender).await?;
    let (started, mut time) = (Instant::now(), Duration::ZERO);
    for (namespace, share) in &shares {
        time = observe(&api(client, namespace, JOB_SET), *share).await?;
    }
    // The first JobSet was observed in one of several namespaces only.
    if namespaces > 1 {
        time = started.elapsed();
    }
    let cpu = controller.cpu().await?;
    let calls = controller.calls().await?;
    tokio::time::sleep(SETTLED).await;
    Ok(Figures {
        rate: rate(jobs, time),
        milliseconds: cpu * 1000.0 / jobs as f64,
        calls: calls / jobs as f64,
        rss_idle,
        rss_after: controller.rss().await?,
    })
}

/// Measures the same writes by a bare client, in its own namespace.
async fn bare_client(
    plane: &ControlPlane,
    template: &bare::Template,
    jobs: usize,
) -> Result<Duration> {
    let namespace = plane.new_namespace().await?;
    let job_sets = api(plane.client(), &namespace, JOB_SET);
    let written = template.write(plane.client(), &namespace, jobs);
    let (time, ()) = tokio::try_join!(observe(&job_sets, jobs), written)?;
    Ok(time)
}

/// Waits until this many JobSets exist; returns the time from the first to the last.
async fn observe(api: &Api<DynamicObject>, count: usize) -> Result<Duration> {
    let (mut first, started) = (None, Instant::now());
    loop {
        // Only the metadata of at most one object is read; the server returns the number of the others.
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
        tokio::time::sleep(OBSERVED_EVERY).await;
    }
}

/// Returns the rate per second.
fn rate(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}
