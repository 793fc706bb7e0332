//! The cluster that a command connects to.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use trainyard_controller::{
    client::{ClientError, ClientOptions, client as bounded},
    metrics::Metrics,
    queue::{Backoff, Queue},
};

/// The cluster.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// The kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the service account of the pod].
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) kubeconfig: Option<PathBuf>,
}

impl ClusterArgs {
    /// Returns the client configuration, with its default namespace.
    pub(crate) async fn config(&self) -> anyhow::Result<kube::Config> {
        match &self.kubeconfig {
            Some(path) => from_file(path).await,
            None => kube::Config::infer()
                .await
                .context("no cluster is configured; pass a kubeconfig file with --kubeconfig"),
        }
    }
}

/// Returns a client for an interactive command: it makes each call once, with a deadline.
pub(crate) fn client(config: kube::Config) -> Result<kube::Client, ClientError> {
    // A command does not serve metrics.
    let metrics = Metrics::new(&Queue::new(Backoff::default()));
    bounded(config, ClientOptions::default(), Arc::new(metrics))
}

async fn from_file(path: &Path) -> anyhow::Result<kube::Config> {
    let file = Kubeconfig::read_from(path).with_context(|| path.display().to_string())?;
    kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .with_context(|| path.display().to_string())
}
