//! The controller process from start to end.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use kube::Client;
use tokio::time::{sleep, timeout};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use trainyard_api::names;

use crate::{
    certificate::{Clock, Managed, ServedCertificate, Source},
    client::{Access, ApiServer, ClientError, ClientOptions, Rate, client},
    events::{Recorder, Reporter, recorder},
    failures::Failures,
    generation::Generations,
    lease::Candidate,
    metrics::Metrics,
    plugins::{ClusterPlugins, Leader, NotLeading, Parts, Plugins, REVISIONS_HELD},
    queue::Queue,
    reconcile::{Reconciler, Stores},
    serve::{self, BindAddress, MetricsAccess, MetricsAuthorizer, Readiness, ServeError},
    settings::{FeatureGate, PluginsSource, SecureServing, Settings},
    shadow::Shadow,
    status_server::{Clients, StatusServer},
    threads::Threads,
    watch::StateReplaced,
    webhook::{self, WebhookSettings},
    work::Work,
};

/// The kinds that have to be watched before the process is ready.
const WATCHES: [&str; 4] = [
    names::TRAIN_JOB,
    names::JOB_SET,
    names::TRAINING_RUNTIME,
    names::CLUSTER_TRAINING_RUNTIME,
];

/// How long a reconcile waits for a certificate, without which pods cannot report progress. A broken one must not stop TrainJobs.
const CERTIFICATE: Duration = Duration::from_secs(60);

/// How long pending Events may take when the process stops.
const LAST_EVENTS: Duration = Duration::from_secs(5);

/// How long running probes and scrapes may take when the process stops.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// The options of a controller.
pub struct Options {
    /// The API server.
    pub cluster: ApiServer,
    /// The settings, flags included.
    pub settings: Settings,
    /// The name of this process in Events and the Lease.
    pub instance: String,
    /// The plugins that TrainJobs are rendered with.
    pub generations: Arc<Generations>,
    /// The threads on which plugins are called, apart from those that answer probes.
    pub threads: Threads,
    /// The queue of TrainJobs to reconcile.
    pub queue: Queue,
    pub metrics: Arc<Metrics>,
    /// The clock of TrainJobs' deadlines, of the certificates that the controller creates, and of rollouts of plugins.
    pub clock: Arc<dyn Clock>,
    /// Where plugins come from that the cluster declares, if the settings say so.
    pub plugins: Option<ClusterPlugins>,
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
    /// A setting requires TLS.
    #[error(
        "{0}: it requires a certificate; set certManagement.enable to true, except in the shadow mode, or mount one and set webhook.certDir to its directory"
    )]
    NoCertificate(&'static str),
    /// The shadow mode cannot ask the API server about tokens.
    #[error(
        "metrics.auth.enabled: the shadow mode creates nothing, so it cannot ask the API server who may read metrics; turn it off, and \
         restrict the port by a NetworkPolicy"
    )]
    ShadowAuth,
    /// Another process leads.
    #[error("the Lease is lost; another process is the leader")]
    LeaseLost,
    /// The state of the API server was replaced by an older one.
    #[error("{0}; start the controller again, as a Deployment does by itself")]
    StateReplaced(#[from] StateReplaced),
    /// A later release has written a PluginRevision.
    #[error(transparent)]
    NotLeading(#[from] NotLeading),
    /// The shadow mode cannot roll plugins out.
    #[error(
        "plugins.source: is Cluster, but the shadow mode writes nothing, and so rolls out no plugins; set it to File"
    )]
    ShadowPlugins,
    /// The program brings no source of plugins.
    #[error(
        "plugins.source: is Cluster, but this program cannot pull plugins; set it to File, and declare plugins in `policyFile`"
    )]
    NoPluginSource,
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
    let from_cluster = settings.plugins.source == PluginsSource::Cluster;
    if from_cluster && settings.shadow {
        return Err(ControllerError::ShadowPlugins);
    }
    if from_cluster && options.plugins.is_none() {
        return Err(ControllerError::NoPluginSource);
    }
    let revisions = from_cluster.then_some(REVISIONS_HELD);
    let parts: Vec<_> = WATCHES.into_iter().chain(revisions).collect();
    let readiness = Arc::new(Readiness::new(&parts));
    let source = options.certificates()?;
    let certificate = source
        .as_ref()
        .map(|_| ServedCertificate::new(settings.tls.clone()));
    let servers = serve::start(
        (
            &settings.metrics_bind_address,
            metrics.clone(),
            options.metrics_access(certificate.as_ref())?,
        ),
        (&settings.health_probe_bind_address, readiness.clone()),
        stop.clone(),
    )
    .await?;
    let follows = certificate
        .as_ref()
        .zip(source)
        .map(|(certificate, source)| certificate.follow(source, readiness.clone()));
    let calls = ClientOptions {
        rate: settings.rate(),
        access: options.access(),
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
    let webhook = options.webhook();
    let status = options.settings.status_server.clone();
    let clients = options.status_clients(certificate.as_ref())?;
    if options.settings.shadow {
        tracing::info!("shadow mode: TrainJobs are compared, and nothing is written");
    }
    let plugins = options.plugins(&api, &recorder, &readiness);
    let work = Arc::new(work(options, api, recorder, readiness));
    let shared = (&work.metrics, certificate.as_ref());
    let webhooks = webhook::serve(&webhook, &work.reconciler, shared, &stop).await?;
    count(&work);
    let status_server = match clients.zip(certificate) {
        Some((clients, certificate)) => {
            let started = StatusServer::start(&status, clients, certificate, &work, &stop);
            Some(started.await?)
        }
        None => None,
    };
    let mut watches = AbortOnDropHandle::new(tokio::spawn(work.clone().watch()));
    let ended = tokio::select! {
        ended = &mut watches => Err(ended.map_or(ControllerError::WatchesEnded, Into::into)),
        replaced = follow_plugins(plugins.as_ref()) => Err(replaced.into()),
        ended = lead(&work, (candidate, plugins.as_ref()), status_server.as_ref(), &stop) => ended,
    };
    tracing::info!("stopped");
    stop.cancel();
    if let Some(plugins) = plugins {
        plugins.leave().await;
    }
    // The last recorder is dropped with the work: the writer writes the pending Events and ends.
    drop((watches, work));
    webhooks.ended().await;
    if let Some(status_server) = status_server {
        status_server.ended().await;
    }
    drop(follows);
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

    /// Which calls are sent. In the shadow mode, no client of the process writes.
    const fn access(&self) -> Access {
        match self.settings.shadow {
            true => Access::Read,
            false => Access::Any,
        }
    }

    /// Returns the plugins that the cluster declares; `None` if the settings say that it declares none.
    fn plugins(
        &self,
        client: &Client,
        recorder: &Recorder,
        readiness: &Arc<Readiness>,
    ) -> Option<Arc<Plugins>> {
        let settings = &self.settings.plugins;
        let is_cluster = settings.source == PluginsSource::Cluster;
        let program = self.plugins.clone().filter(|_| is_cluster)?;
        let plugins = Arc::new(Plugins::new(Parts {
            client: client.clone(),
            program,
            generations: self.generations.clone(),
            clock: self.clock.clone(),
            pod: self.instance.clone(),
            settings: settings.rollout.clone(),
            recorder: recorder.clone(),
            metrics: self.metrics.clone(),
            readiness: readiness.clone(),
        }));
        let shown = Arc::downgrade(&plugins);
        let page = move || shown.upgrade().map(|plugins| plugins.page());
        self.metrics.show_plugins(page);
        Some(plugins)
    }

    /// The settings of the webhooks, which the shadow mode does not serve.
    fn webhook(&self) -> WebhookSettings {
        match self.settings.shadow {
            true => WebhookSettings {
                bind_address: BindAddress::Off,
                ..WebhookSettings::default()
            },
            false => self.settings.webhook.clone(),
        }
    }

    /// Returns the clients of the status server; `None` if its feature gate is off, and in the shadow mode.
    fn status_clients(
        &self,
        certificate: Option<&ServedCertificate>,
    ) -> Result<Option<Clients>, ControllerError> {
        let gates = &self.settings.feature_gates;
        if !gates.is_on(FeatureGate::TrainJobStatus) || self.settings.shadow {
            return Ok(None);
        }
        if certificate.is_none() {
            return Err(ControllerError::NoCertificate(
                "featureGates.TrainJobStatus",
            ));
        }
        let (qps, burst) = Clients::CONFIG_MAPS;
        let slow = ClientOptions {
            rate: Rate::new(qps, burst),
            ..ClientOptions::default()
        };
        Ok(Some(Clients {
            requests: self.client(ClientOptions::default())?,
            config_maps: self.client(slow)?,
        }))
    }

    /// Returns how metrics are protected.
    fn metrics_access(
        &self,
        certificate: Option<&ServedCertificate>,
    ) -> Result<MetricsAccess, ControllerError> {
        let settings = &self.settings;
        let certificate = match settings.metrics_secure_serving {
            SecureServing::Never => None,
            SecureServing::WithCertificate => certificate,
            SecureServing::Always => {
                Some(certificate.ok_or(ControllerError::NoCertificate("metrics.secureServing"))?)
            }
        };
        if settings.metrics_auth && settings.shadow {
            return Err(ControllerError::ShadowAuth);
        }
        if settings.metrics_auth && certificate.is_none() {
            return Err(ControllerError::NoCertificate("metrics.auth.enabled"));
        }
        let tls = certificate.map(|certificate| certificate.acceptor());
        let authorizer = match settings.metrics_auth {
            true => Some(Arc::new(MetricsAuthorizer::new(
                self.client(ClientOptions::default())?,
            ))),
            false => None,
        };
        Ok(MetricsAccess {
            tls: tls.transpose().map_err(ServeError::Tls)?,
            authorizer,
        })
    }

    /// Returns where certificates come from; `None` without any.
    fn certificates(&self) -> Result<Option<Source>, ClientError> {
        let settings = &self.settings.cert_management;
        if let Some(directory) = &self.settings.webhook.cert_dir {
            if settings.enable {
                tracing::warn!(
                    directory = %directory.display(),
                    "certManagement.enable has no effect, because a certificate is mounted"
                );
            }
            return Ok(Some(Source::Mounted(directory.clone())));
        }
        // The shadow mode writes nothing.
        if !settings.enable || self.settings.shadow {
            return Ok(None);
        }
        Ok(Some(Source::Managed(Managed {
            // A separate client, so that other calls do not delay the certificate.
            client: self.client(ClientOptions::default())?,
            namespace: self.cluster.namespace().to_owned(),
            settings: settings.clone(),
            clock: self.clock.clone(),
            metrics: self.metrics.clone(),
        })))
    }

    /// The candidate for the Lease; `None` without leader election, and in the shadow mode.
    fn candidate(&self, readiness: &Arc<Readiness>) -> Result<Option<Candidate>, ClientError> {
        if self.settings.shadow {
            return Ok(None);
        }
        let namespace = self.cluster.namespace();
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

/// Lets metrics count what the work holds.
fn count(work: &Arc<Work>) {
    let counted = Arc::downgrade(work);
    let count = move || counted.upgrade()?.count_train_jobs();
    work.metrics.count_train_jobs_with(count);
    let counted = Arc::downgrade(&work.stores);
    let count = move || {
        counted
            .upgrade()
            .map_or_else(Vec::new, |stores| stores.held_text())
    };
    work.metrics.count_held_text_with(count);
}

fn work(options: Options, client: Client, recorder: Recorder, readiness: Arc<Readiness>) -> Work {
    let stores = Arc::new(Stores::default());
    let shadow = options.settings.shadow.then(Arc::<Shadow>::default);
    if let Some(shadow) = &shadow {
        options.metrics.show_shadow(shadow);
    }
    Work {
        reconciler: Reconciler::new(
            client.clone(),
            stores.clone(),
            (options.generations, options.threads),
            recorder.log_shares(),
            options.metrics.clone(),
        )
        .with_clock(options.clock),
        client,
        stores,
        queue: options.queue,
        metrics: options.metrics,
        recorder,
        readiness,
        failures: Failures::default(),
        shadow,
        leads: AtomicBool::new(false),
    }
}

/// Follows the plugins that the cluster declares, until the state of the API server is replaced by an older one.
async fn follow_plugins(plugins: Option<&Arc<Plugins>>) -> StateReplaced {
    let Some(plugins) = plugins else {
        return std::future::pending().await;
    };
    tokio::select! {
        replaced = plugins.watch() => replaced,
        never = plugins.follow() => match never {},
    }
}

/// Reconciles as the leader, or without leader election.
async fn lead(
    work: &Arc<Work>,
    (candidate, plugins): (Option<Candidate>, Option<&Arc<Plugins>>),
    status_server: Option<&StatusServer>,
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
    if work.shadow.is_some() {
        work.run(stop).await;
        return Ok(());
    }
    if let Some(status_server) = status_server {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = status_server.until_ready() => {}
            () = sleep(CERTIFICATE) => tracing::error!(
                "TrainJobs are reconciled without a certificate; those that start until there is one cannot report progress"
            ),
        }
    }
    if let Some(plugins) = plugins {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = plugins.may_lead() => {}
        }
    }
    let follow = || status_server.map(StatusServer::follow);
    let Some(candidate) = candidate else {
        let _follows = follow();
        work.metrics.set_leader(true);
        let ended = reconcile(work, plugins, stop).await;
        work.metrics.set_leader(false);
        return ended;
    };
    let candidate = match plugins.cloned() {
        None => candidate,
        Some(plugins) => candidate.letting_others_go_first(move || plugins.is_behind()),
    };
    let leadership = tokio::select! {
        () = stop.cancelled() => return Ok(()),
        leadership = candidate.acquire() => leadership,
    };
    let _follows = follow();
    tokio::select! {
        ended = reconcile(work, plugins, stop) => {
            leadership.release().await;
            ended
        }
        () = leadership.lost() => Err(ControllerError::LeaseLost),
    }
}

/// Reconciles until `stop`, once the plugins in use are loaded.
async fn reconcile(
    work: &Arc<Work>,
    plugins: Option<&Arc<Plugins>>,
    stop: &CancellationToken,
) -> Result<(), ControllerError> {
    let Some(plugins) = plugins else {
        work.run(stop).await;
        return Ok(());
    };
    let leader = Leader::new(plugins, work);
    tokio::select! {
        () = stop.cancelled() => return Ok(()),
        prepared = leader.prepare() => prepared?,
    }
    tokio::select! {
        () = work.run(stop) => Ok(()),
        newer = leader.lead() => Err(newer.into()),
    }
}
