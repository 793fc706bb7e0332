//! Controllers that see to a crowd of TrainJobs of all policies for hours, with faults all the time, need no more memory at the end than after
//! the first hour; threads, tasks, files and watches are printed and drawn. Every TrainJob gets the status that it asks for, and leaves
//! nothing behind.
//!
//! `make soak` runs this for hours, and draws docs/soak.png. Without `SOAK_MINUTES`, it runs for a minute, which shows only that everything
//! else holds. It is a test of what two processes and a real control plane do together; each fault alone is tried in
//! host/controller/tests/every_api_call_can_fail.

mod crowd;
mod faults;
mod life;
mod records;
mod replicas;
mod tenant;

use std::{
    env,
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context as _, Result, ensure};
use fastrand::Rng;
use records::Records;
use replicas::Replicas;
use trainyard_cluster::{Cluster, ControlPlane, PodGroups, Proxy, Shared, Test};

use crate::common::{self, Runtimes, Setup as _, devices, runtimes};

/// How often a condition of the crowd is looked at. More often, the looking would be most of what the API server does.
const PAUSE: Duration = Duration::from_millis(500);
/// How long it may take until a condition holds: far longer than needed, because nothing here measures time.
const PATIENCE: Duration = Duration::from_secs(300);
/// Enough devices for every TrainJob with devices that is there at a time.
const DEVICES: usize = 64;

/// A cluster with a proxy in front of its API server, and the runtimes of all policies.
pub(crate) struct Soaked {
    cluster: Cluster,
    proxy: Proxy,
    kubeconfig: PathBuf,
}

impl Shared for Soaked {
    fn start() -> Result<Self> {
        let groups = PodGroups::ALL.map(PodGroups::definition);
        let cluster = Cluster::start_with(groups.into_iter().collect::<Result<_>>()?)?;
        let mut all = Runtimes::runtimes();
        all.extend(life::SHIPPED.map(runtimes::shipped));
        all.extend(PodGroups::ALL.map(runtimes::gang));
        all.extend([
            runtimes::mpi("own-launcher", false),
            runtimes::mpi("launcher-node", true),
            runtimes::flux(),
            devices::runtime(),
        ]);
        let account = common::prepare(&cluster, &all)?;
        let plane = cluster.plane();
        let proxy = plane.block_on(async {
            devices::machines(&cluster, DEVICES).await?;
            Proxy::start(plane).await
        })?;
        Ok(Self {
            kubeconfig: proxy.kubeconfig(&account)?,
            cluster,
            proxy,
        })
    }

    fn plane(&self) -> &ControlPlane {
        self.cluster.plane()
    }

    fn still_runs(&self) -> Result<()> {
        self.cluster.still_runs()
    }
}

/// One run.
struct Soak<'a> {
    shared: &'a Soaked,
    replicas: Replicas<'a>,
    records: Records,
    /// When the crowd gets no more TrainJobs, and the faults end.
    until: Instant,
    /// Whether the crowd is gone.
    is_over: AtomicBool,
    /// The number of TrainJobs that exist.
    alive: AtomicUsize,
    failures: Mutex<Vec<String>>,
}

impl Soak<'_> {
    fn is_full(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Reports at once what is wrong, and goes on: the rest of hours is not lost.
    fn failed(&self, what: String) {
        println!("{:.0} s: {what}", self.records.seconds());
        let failures = self.failures.lock();
        failures.unwrap_or_else(PoisonError::into_inner).push(what);
    }
}

/// Repeats an attempt until it returns a value.
async fn patiently<T>(
    what: &str,
    mut attempt: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let since = Instant::now();
    loop {
        if let Some(found) = attempt().await? {
            return Ok(found);
        }
        ensure!(since.elapsed() < PATIENCE, "timed out waiting until {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Returns the number in an environment variable.
fn number(variable: &str, default: u64) -> Result<u64> {
    match env::var(variable) {
        Ok(text) => text.parse().with_context(|| format!("{variable}={text}")),
        Err(_) => Ok(default),
    }
}

fn length() -> Result<Duration> {
    Ok(Duration::from_secs(60 * number("SOAK_MINUTES", 1)?))
}

async fn crowd_leaves_nothing_behind(shared: &Soaked) -> Result<()> {
    let now = SystemTime::UNIX_EPOCH.elapsed()?.as_secs();
    let seed = number("SOAK_SEED", now)?;
    println!("SOAK_SEED={seed} repeats the choices of this run");
    let mut rng = Rng::with_seed(seed);
    let soak = Soak {
        shared,
        replicas: Replicas::start(shared).await?,
        records: Records::create()?,
        until: Instant::now() + length()?,
        is_over: AtomicBool::new(false),
        alive: AtomicUsize::new(0),
        failures: Mutex::default(),
    };
    let watches = shared.proxy.watches();
    let shaken = faults::shake(&soak, rng.fork());
    let crowd = async {
        let gone = crowd::come_and_go(&soak, &mut rng).await;
        soak.is_over.store(true, Ordering::Relaxed);
        gone
    };
    tokio::try_join!(crowd, shaken, records::sample(&soak))?;
    patiently("as many watches are open as at the start", async || {
        Ok((shared.proxy.watches() == watches).then_some(()))
    })
    .await?;
    soak.replicas.check()?;
    let judged = soak.records.judge();
    let failures = soak.failures.lock();
    let failures = failures.unwrap_or_else(PoisonError::into_inner).join("\n");
    ensure!(failures.is_empty(), "{failures}");
    judged
}

pub(crate) fn tests() -> Vec<Test<Soaked>> {
    // The test itself reports a length that is no number.
    vec![Test::lasting(
        "crowd_leaves_nothing_behind",
        length().unwrap_or_default(),
        crowd_leaves_nothing_behind,
    )]
}
