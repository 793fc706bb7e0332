//! `trainyard controller`.

use std::{path::PathBuf, sync::Arc};

use anyhow::Context as _;
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio_util::sync::CancellationToken;
use trainyard_controller::{
    Options,
    client::ClientOptions,
    metrics::Metrics,
    plugins::Plugins,
    queue::{Backoff, Queue},
};

use crate::{cli::LoadArgs, plugins::Loaded, report::Failure};

/// What `controller` takes.
#[derive(Debug, Args)]
pub(crate) struct ControllerArgs {
    #[command(flatten)]
    load: LoadArgs,
    /// The kubeconfig file of the cluster [default: $KUBECONFIG, then ~/.kube/config, then the pod's own account].
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    kubeconfig: Option<PathBuf>,
    /// How many TrainJobs are reconciled at once.
    #[arg(long, value_name = "N", default_value_t = 16)]
    concurrency: usize,
}

pub(crate) fn run(args: &ControllerArgs) -> Result<(), Failure> {
    // Two providers may be linked; whoever opens the first connection must not have to choose.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let loaded = Loaded::load(&args.load)?;
    let queue = Queue::new(Backoff::default());
    let metrics = Arc::new(Metrics::new(&queue));
    let loader = Arc::new(loaded.loader);
    let plugins = Plugins {
        renderer: Arc::new(loaded.renderer),
        refused: Arc::default(),
        spawn: Arc::new(move |call| loader.pool().spawn(call)),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let options = Options {
            cluster: cluster(args.kubeconfig.as_deref()).await?,
            client: ClientOptions::default(),
            concurrency: args.concurrency,
            write_defaults: false,
            instance: std::env::var("HOSTNAME").unwrap_or_else(|_| "trainyard".to_owned()),
        };
        let stop = CancellationToken::new();
        tokio::spawn(stop_on_signal(stop.clone()));
        trainyard_controller::run(options, queue, metrics, plugins, stop)
            .await
            .map_err(|error| Failure::from_iter([error]))
    })
}

async fn cluster(kubeconfig: Option<&std::path::Path>) -> anyhow::Result<kube::Config> {
    let Some(path) = kubeconfig else {
        return kube::Config::infer()
            .await
            .context("no cluster is configured; give a kubeconfig file with --kubeconfig");
    };
    let file = Kubeconfig::read_from(path).with_context(|| path.display().to_string())?;
    kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .with_context(|| path.display().to_string())
}

/// Stops at the first SIGTERM or interrupt.
async fn stop_on_signal(stop: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        }
        Err(error) => {
            tracing::warn!(%error, "SIGTERM ends this process at once");
            let _ = tokio::signal::ctrl_c().await;
        }
    }
    stop.cancel();
}
