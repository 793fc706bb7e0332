//! From start to end: what a controller process does.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use trainyard_api::names;

use crate::client::{ClientError, ClientOptions, client};
use crate::events::{Reporter, recorder};
use crate::lease::Candidate;
use crate::metrics::Metrics;
use crate::plugins::Plugins;
use crate::queue::Queue;
use crate::reconcile::{Reconciler, Stores};
use crate::serve::{self, Readiness, ServeError};
use crate::settings::Settings;
use crate::work::Work;

/// What has to be watched before the process is ready.
const WATCHES: [&str; 4] = [
    names::TRAIN_JOB,
    names::JOB_SET,
    names::TRAINING_RUNTIME,
    names::CLUSTER_TRAINING_RUNTIME,
];

/// What a controller is told.
pub struct Options {
    /// The API server.
    pub cluster: kube::Config,
    /// The settings, flags included.
    pub settings: Settings,
    /// This process, for Events and the Lease.
    pub instance: String,
}

/// Why a controller does not run, or not on.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// There is no client.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Metrics or probes can't be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Another process leads.
    #[error("the Lease is lost: another process leads now")]
    LeaseLost,
}

/// Reconciles TrainJobs until `stop`, as the leader where leadership is sought.
///
/// # Errors
/// Why it does not start, or not go on.
pub async fn run(
    options: Options,
    queue: Queue,
    metrics: Arc<Metrics>,
    plugins: Plugins,
    stop: CancellationToken,
) -> Result<(), ControllerError> {
    let settings = &options.settings;
    let calls = ClientOptions {
        rate: settings.rate(),
        ..ClientOptions::default()
    };
    let client_of = |calls| client(options.cluster.clone(), calls, metrics.clone());
    let api = client_of(calls)?;
    let namespace = &options.cluster.default_namespace;
    let identity = crate::lease::identity(&options.instance);
    let lease = settings.leader_election.lease(namespace, identity);
    let readiness = Arc::new(Readiness::new(&WATCHES));
    let servers = serve::start(
        (&settings.metrics_bind_address, metrics.clone()),
        (&settings.health_probe_bind_address, readiness.clone()),
        stop.clone(),
    )
    .await?;
    let reporter = Reporter {
        component: "trainjob_controller".to_owned(),
        instance: options.instance.clone(),
    };
    let (recorder, events) = recorder(api.clone(), reporter, metrics.clone());
    let events = tokio::spawn(events.run());
    let stores = Arc::new(Stores::default());
    let defaults = settings.write_job_set_defaults;
    let work = Work {
        reconciler: Reconciler::new(api.clone(), stores.clone(), plugins, defaults),
        client: api,
        stores,
        queue,
        metrics: metrics.clone(),
        recorder,
        readiness: readiness.clone(),
    };
    // A client of its own, so that nothing else delays its calls.
    let candidate = lease.map(|lease| {
        let client = client_of(ClientOptions::default())?;
        Ok::<_, ClientError>(Candidate::new(client, lease, metrics.clone()))
    });
    let candidate = candidate.transpose()?;
    let lead = async {
        // A TrainJob whose JobSet is not known yet would be made again.
        work.stores.synced().await;
        for watch in WATCHES {
            readiness.set(watch, true);
        }
        tracing::info!(jobs = work.stores.jobs.len(), "all watches are there");
        lead(&work, candidate, settings.concurrency.get(), &stop).await
    };
    let ended = tokio::select! {
        () = work.watch() => Ok(()),
        ended = lead => ended,
        () = stopped_before(&work, &stop) => Ok(()),
    };
    tracing::info!("stopped");
    stop.cancel();
    // The last recorder goes with the work: the writer writes what it has, and ends.
    drop(work);
    let _ = events.await;
    servers.ended().await?;
    ended
}

/// Ends where the process is told to stop before it has begun to work.
async fn stopped_before(work: &Work, stop: &CancellationToken) {
    stop.cancelled().await;
    if work.stores.is_synced() {
        // From here on, whoever works ends it.
        std::future::pending::<()>().await;
    }
}

/// Works as the leader, and alone where nobody else can be.
async fn lead(
    work: &Work,
    candidate: Option<Candidate>,
    concurrency: usize,
    stop: &CancellationToken,
) -> Result<(), ControllerError> {
    let Some(candidate) = candidate else {
        work.run(concurrency, stop).await;
        return Ok(());
    };
    let leadership = tokio::select! {
        () = stop.cancelled() => return Ok(()),
        leadership = candidate.acquire() => leadership,
    };
    tokio::select! {
        () = work.run(concurrency, stop) => {
            leadership.release().await;
            Ok(())
        }
        () = leadership.lost() => Err(ControllerError::LeaseLost),
    }
}
