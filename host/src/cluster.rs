//! The cluster that a command connects to.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use trainyard_controller::{
    client::{Access, ClientError, ClientOptions, client as bounded},
    metrics::Metrics,
    queue::{Backoff, Queue},
};

/// The cluster.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// The kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the service account of the pod].
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig file [default: its current context].
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

impl ClusterArgs {
    /// Returns the client configuration, with its default namespace.
    pub(crate) async fn config(&self) -> anyhow::Result<kube::Config> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        let none = "no cluster is configured; pass a kubeconfig file with --kubeconfig";
        match &self.kubeconfig {
            Some(path) => from_file(path, &options).await,
            // The service account of a pod has no contexts.
            None if self.context.is_some() => {
                kube::Config::from_kubeconfig(&options).await.context(none)
            }
            None => kube::Config::infer().await.context(none),
        }
    }
}

/// Returns a client for an interactive command: it only reads, and makes each call once, with a deadline.
pub(crate) fn client(config: kube::Config) -> Result<kube::Client, ClientError> {
    // A command does not serve metrics.
    let metrics = Metrics::new(&Queue::new(Backoff::default()));
    let options = ClientOptions {
        access: Access::Read,
        ..ClientOptions::default()
    };
    bounded(config, options, Arc::new(metrics))
}

async fn from_file(path: &Path, options: &KubeConfigOptions) -> anyhow::Result<kube::Config> {
    let file = Kubeconfig::read_from(path).with_context(|| path.display().to_string())?;
    kube::Config::from_custom_kubeconfig(file, options)
        .await
        .with_context(|| path.display().to_string())
}
