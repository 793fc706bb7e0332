//! The controller process from start to end.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use kube::Client;
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use trainyard_api::names;

use crate::{
    client::{ClientError, ClientOptions, client},
    events::{Recorder, Reporter, recorder},
    failures::Failures,
    lease::Candidate,
    metrics::Metrics,
    plugins::Plugins,
    queue::Queue,
    reconcile::{Reconciler, Stores},
    serve::{self, Readiness, ServeError},
    settings::Settings,
    watch::StateReplaced,
    webhook::WebhookServer,
    work::Work,
};

/// The kinds that have to be watched before the process is ready.
const WATCHES: [&str; 4] = [
    names::TRAIN_JOB,
    names::JOB_SET,
    names::TRAINING_RUNTIME,
    names::CLUSTER_TRAINING_RUNTIME,
];

/// How long pending Events may take when the process stops.
const LAST_EVENTS: Duration = Duration::from_secs(5);

/// How long running probes and scrapes may take when the process stops.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// The options of a controller.
pub struct Options {
    /// The API server.
    pub cluster: kube::Config,
    /// The settings, flags included.
    pub settings: Settings,
    /// The name of this process in Events and the Lease.
    pub instance: String,
    /// The plugins that TrainJobs are rendered with.
    pub plugins: Plugins,
    /// The queue of TrainJobs to reconcile.
    pub queue: Queue,
    pub metrics: Arc<Metrics>,
}

/// Why a controller ends.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// The client cannot be created.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Metrics or probes cannot be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Another process leads.
    #[error("the Lease is lost; another process is the leader")]
    LeaseLost,
    /// The state of the API server was replaced by an older one.
    #[error("{0}; start the controller again, as a Deployment does by itself")]
    StateReplaced(#[from] StateReplaced),
    #[error("the watches ended; this is a bug in Trainyard")]
    WatchesEnded,
}

/// Reconciles TrainJobs until `stop`; with leader election, as the leader.
///
/// # Errors
/// Why the controller does not start, or ends.
pub async fn run(options: Options, stop: CancellationToken) -> Result<(), ControllerError> {
    let Options {
        settings, metrics, ..
    } = &options;
    let readiness = Arc::new(Readiness::new(&WATCHES));
    let servers = serve::start(
        (&settings.metrics_bind_address, metrics.clone()),
        (&settings.health_probe_bind_address, readiness.clone()),
        stop.clone(),
    )
    .await?;
    let calls = ClientOptions {
        rate: settings.rate(),
        ..ClientOptions::default()
    };
    let api = options.client(calls)?;
    let reporter = Reporter {
        component: "trainjob_controller".to_owned(),
        instance: options.instance.clone(),
    };
    let (recorder, events) = recorder(api.clone(), reporter, metrics.clone());
    let events = AbortOnDropHandle::new(tokio::spawn(events.run()));
    let candidate = options.candidate(&readiness)?;
    let webhook = options.settings.webhook.clone();
    let work = Arc::new(work(options, api, recorder, readiness));
    let shared = (&work.metrics, &work.readiness);
    let webhooks = WebhookServer::start(&webhook, &work.reconciler, shared, &stop).await?;
    let counted = Arc::downgrade(&work);
    let count = move || counted.upgrade()?.count_train_jobs();
    work.metrics.count_train_jobs_with(count);
    let counted = Arc::downgrade(&work.stores);
    let count = move || {
        counted
            .upgrade()
            .map_or_else(Vec::new, |stores| stores.held_text())
    };
    work.metrics.count_held_text_with(count);
    let mut watches = AbortOnDropHandle::new(tokio::spawn(work.clone().watch()));
    let ended = tokio::select! {
        ended = &mut watches => Err(ended.map_or(ControllerError::WatchesEnded, Into::into)),
        ended = lead(&work, candidate, &stop) => ended,
    };
    tracing::info!("stopped");
    stop.cancel();
    // The last recorder is dropped with the work: the writer writes the pending Events and ends.
    drop((watches, work));
    webhooks.ended().await;
    if timeout(LAST_EVENTS, events).await.is_err() {
        tracing::warn!("some Events could not be written in time and are lost");
    }
    match timeout(LAST_ANSWERS, servers.ended()).await {
        Ok(served) => served?,
        Err(_) => tracing::warn!("some connections were not answered in time and are closed"),
    }
    ended
}

impl Options {
    fn client(&self, calls: ClientOptions) -> Result<Client, ClientError> {
        client(self.cluster.clone(), calls, self.metrics.clone())
    }

    /// The candidate for the Lease; `None` without leader election.
    fn candidate(&self, readiness: &Arc<Readiness>) -> Result<Option<Candidate>, ClientError> {
        let namespace = &self.cluster.default_namespace;
        let identity = crate::lease::identity(&self.instance);
        let lease = self.settings.leader_election.lease(namespace, identity);
        let candidate = |lease| {
            // A separate client, so that other calls do not delay those for the Lease.
            let client = self.client(ClientOptions::default())?;
            Ok(Candidate::new(
                client,
                lease,
                self.metrics.clone(),
                readiness.clone(),
            ))
        };
        lease.map(candidate).transpose()
    }
}

fn work(options: Options, client: Client, recorder: Recorder, readiness: Arc<Readiness>) -> Work {
    let stores = Arc::new(Stores::default());
    let defaults = options.settings.write_job_set_defaults;
    Work {
        reconciler: Reconciler::new(
            client.clone(),
            stores.clone(),
            options.plugins,
            defaults,
            recorder.log_shares(),
            options.metrics.clone(),
        ),
        client,
        stores,
        queue: options.queue,
        metrics: options.metrics,
        recorder,
        readiness,
        failures: Failures::default(),
        leads: AtomicBool::new(false),
    }
}

/// Reconciles as the leader, or without leader election.
async fn lead(
    work: &Arc<Work>,
    candidate: Option<Candidate>,
    stop: &CancellationToken,
) -> Result<(), ControllerError> {
    tokio::select! {
        () = stop.cancelled() => return Ok(()),
        // A JobSet that is not in the store yet would be recreated.
        () = work.stores.synced() => {}
    }
    for watch in WATCHES {
        work.readiness.set(watch, true);
    }
    tracing::info!(jobs = work.stores.jobs.len(), "all watches are synced");
    let Some(candidate) = candidate else {
        work.metrics.set_leader(true);
        work.run(stop).await;
        work.metrics.set_leader(false);
        return Ok(());
    };
    let leadership = tokio::select! {
        () = stop.cancelled() => return Ok(()),
        leadership = candidate.acquire() => leadership,
    };
    tokio::select! {
        () = work.run(stop) => {
            leadership.release().await;
            Ok(())
        }
        () = leadership.lost() => Err(ControllerError::LeaseLost),
    }
}
