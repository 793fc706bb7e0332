//! A whole controller in this process, on the API server of [`super::cluster`].

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use trainyard_controller::{
    ControllerError, Options,
    certificate::{Clock, SystemClock},
    client::{ApiServer, InProcess},
    generation::Generations,
    metrics::Metrics,
    plugins::ClusterPlugins,
    queue::{Backoff, Queue},
    serve::BindAddress,
    settings::{FeatureGate, Settings},
    threads::{Sizes, Spawn, Threads},
};
use trainyard_model::{facts::STATUS_URL, plugin::Plugin};
use trainyard_render::{ClusterFacts, Renderer};

use super::cluster::Cluster;

/// Threads of the controller; one namespace may take all but one.
const THREADS: usize = 3;

/// One of several controllers.
pub(crate) struct Replica {
    pub(crate) name: &'static str,
    pub(crate) clock: Arc<dyn Clock>,
    /// Where plugins come from that the cluster declares.
    pub(crate) plugins: Option<ClusterPlugins>,
}

/// A controller that runs until it is stopped.
pub(crate) struct Controller {
    stop: CancellationToken,
    generations: Arc<Generations>,
    runs: JoinHandle<Result<(), ControllerError>>,
}

/// Returns how plugins are called: on threads, or at once if the clock may be paused, because it would not wait for a thread.
fn spawn(server: &ApiServer) -> Spawn {
    if matches!(server, ApiServer::InProcess(_)) {
        return Arc::new(|task| task());
    }
    // The spans and lines of the threads go where those of the test go.
    let dispatch = tracing::dispatcher::get_default(Clone::clone);
    Arc::new(move |task| {
        let dispatch = dispatch.clone();
        let task = move || tracing::dispatcher::with_default(&dispatch, task);
        drop(std::thread::spawn(task));
    })
}

fn count(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

impl Controller {
    /// Starts it with those plugins.
    pub(crate) async fn start(
        cluster: &Cluster,
        metrics: fn(&Queue) -> Arc<Metrics>,
        plugins: impl FnOnce(&Arc<Metrics>) -> Vec<Arc<dyn Plugin>>,
    ) -> Self {
        let settings = Settings {
            metrics_bind_address: BindAddress::Off,
            health_probe_bind_address: BindAddress::Off,
            ..Settings::default()
        };
        Self::start_with(cluster, settings, metrics, plugins).await
    }

    /// Starts it with those plugins and settings.
    pub(crate) async fn start_with(
        cluster: &Cluster,
        settings: Settings,
        metrics: fn(&Queue) -> Arc<Metrics>,
        plugins: impl FnOnce(&Arc<Metrics>) -> Vec<Arc<dyn Plugin>>,
    ) -> Self {
        let clock = Arc::new(SystemClock);
        Self::start_at(cluster, clock, settings, metrics, plugins).await
    }

    /// Starts it with a clock for its certificates.
    pub(crate) async fn start_at(
        cluster: &Cluster,
        clock: Arc<dyn Clock>,
        settings: Settings,
        metrics: fn(&Queue) -> Arc<Metrics>,
        plugins: impl FnOnce(&Arc<Metrics>) -> Vec<Arc<dyn Plugin>>,
    ) -> Self {
        let replica = Replica {
            name: "test",
            clock,
            plugins: None,
        };
        Self::start_replica(cluster, replica, settings, metrics, plugins).await
    }

    /// Starts one of several.
    pub(crate) async fn start_replica(
        cluster: &Cluster,
        replica: Replica,
        settings: Settings,
        metrics: impl FnOnce(&Queue) -> Arc<Metrics>,
        plugins: impl FnOnce(&Arc<Metrics>) -> Vec<Arc<dyn Plugin>>,
    ) -> Self {
        let server = cluster.serve().await.into();
        Self::start_on(server, replica, settings, metrics, plugins)
    }

    /// Starts it with these plugins, and without a network or threads of its own, so that the clock may be paused.
    pub(crate) fn start_in_process(
        server: InProcess,
        clock: Arc<dyn Clock>,
        plugins: Vec<Arc<dyn Plugin>>,
    ) -> Self {
        let settings = Settings {
            metrics_bind_address: BindAddress::Off,
            health_probe_bind_address: BindAddress::Off,
            ..Settings::default()
        };
        let replica = Replica {
            name: "test",
            clock,
            plugins: None,
        };
        let server = ApiServer::InProcess(server);
        let metrics = |queue: &_| Arc::new(Metrics::new(queue));
        Self::start_on(server, replica, settings, metrics, |_| plugins)
    }

    fn start_on(
        server: ApiServer,
        replica: Replica,
        settings: Settings,
        metrics: impl FnOnce(&Queue) -> Arc<Metrics>,
        plugins: impl FnOnce(&Arc<Metrics>) -> Vec<Arc<dyn Plugin>>,
    ) -> Self {
        let queue = Queue::new(Backoff::default()).with_workers(settings.concurrency);
        let metrics = metrics(&queue);
        let mut facts = ClusterFacts::default();
        if settings.feature_gates.is_on(FeatureGate::TrainJobStatus) {
            let url = settings.status_server.url("kubeflow-system");
            facts.facts = facts.facts.with(STATUS_URL, &url);
        }
        let renderer = Renderer::new(plugins(&metrics), facts);
        let sizes = Sizes {
            threads: count(THREADS),
            share: count(THREADS - 1),
        };
        let spawn = spawn(&server);
        let generations = Generations::new(renderer.unwrap(), settings.write_job_set_defaults);
        let generations = Arc::new(generations);
        let options = Options {
            cluster: server,
            generations: generations.clone(),
            threads: Threads::new(spawn, sizes, settings.render_timeout),
            settings,
            instance: replica.name.to_owned(),
            clock: replica.clock,
            plugins: replica.plugins,
            queue,
            metrics,
        };
        let stop = CancellationToken::new();
        let runs = tokio::spawn(trainyard_controller::run(options, stop.clone()));
        Self {
            stop,
            generations,
            runs,
        }
    }

    /// Its plugins.
    pub(crate) fn generations(&self) -> &Generations {
        &self.generations
    }

    /// Waits until it has ended by itself, and returns why.
    pub(crate) async fn ended(self) -> ControllerError {
        let ended = tokio::time::timeout(Duration::from_secs(600), self.runs).await;
        ended.expect("the controller ends").unwrap().unwrap_err()
    }

    /// Ends it as if its process were killed.
    pub(crate) async fn kill(self) {
        self.runs.abort();
        assert!(self.runs.await.unwrap_err().is_cancelled());
    }

    /// Stops it, and does not wait.
    pub(crate) fn abandon(self) {
        self.stop.cancel();
    }

    /// Stops it, and waits until it has ended; a minute is more than it may take.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        let ended = tokio::time::timeout(Duration::from_secs(60), self.runs).await;
        ended.expect("the controller ends").unwrap().unwrap();
    }
}

/// A runtime of the cluster that switches plugins on.
pub(crate) fn runtime(name: &str, plugins: &[&str]) -> Value {
    let plugins: Vec<_> = plugins.iter().map(|name| json!({"name": name})).collect();
    json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime", "metadata": {"name": name},
        "spec": {"plugins": plugins, "template": {"spec": {"replicatedJobs": [{
            "name": "node",
            "template": {"spec": {"template": {"spec": {"containers": [{"name": "node", "image": "image"}]}}}},
        }]}}},
    })
}

/// A TrainJob of a runtime of the cluster.
pub(crate) fn job(namespace: &str, name: &str, runtime: &str, suspend: bool) -> Value {
    json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"runtimeRef": {"name": runtime}, "suspend": suspend},
    })
}
