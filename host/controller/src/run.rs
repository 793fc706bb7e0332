//! From start to end: what a controller process does.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::client::{ClientError, ClientOptions, client};
use crate::events::{Reporter, recorder};
use crate::metrics::Metrics;
use crate::plugins::Plugins;
use crate::queue::Queue;
use crate::reconcile::{Reconciler, Stores};
use crate::work::Work;

/// What a controller is told.
pub struct Options {
    /// The API server.
    pub cluster: kube::Config,
    /// What its calls are held to.
    pub client: ClientOptions,
    /// How many TrainJobs are reconciled at once.
    pub concurrency: usize,
    /// Whether JobSets carry the defaults that JobSet's webhooks would set.
    pub write_defaults: bool,
    /// This process, for Events.
    pub instance: String,
}

/// Why a controller does not run.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// There is no client.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Reconciles TrainJobs until `stop`.
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
    let client = client(options.cluster, options.client, metrics.clone())?;
    let reporter = Reporter {
        component: "trainjob_controller".to_owned(),
        instance: options.instance,
    };
    let (recorder, events) = recorder(client.clone(), reporter, metrics.clone());
    let events = tokio::spawn(events.run());
    let stores = Arc::new(Stores::default());
    let reconciler = Reconciler::new(
        client.clone(),
        stores.clone(),
        plugins,
        options.write_defaults,
    );
    let work = Work {
        client,
        stores,
        queue,
        reconciler,
        metrics,
        recorder,
    };
    tokio::select! {
        () = work.watch() => {}
        () = lead(&work, options.concurrency, &stop) => {}
    }
    tracing::info!("stopped");
    // The last recorder goes with the work: the writer writes what it has, and ends.
    drop(work);
    let _ = events.await;
    Ok(())
}

/// Works as the leader.
async fn lead(work: &Work, concurrency: usize, stop: &CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => return,
        () = work.synced() => {}
    }
    tracing::info!(
        jobs = work.stores.jobs.len(),
        "all watches are there; work begins"
    );
    work.run(concurrency, stop).await;
}
