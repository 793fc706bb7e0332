//! The cluster that a command connects to.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use clap::Args;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
pub(crate) use trainyard_controller::client::Access;
use trainyard_controller::{
    client::{ClientError, ClientOptions, client as bounded},
    metrics::Metrics,
    queue::{Backoff, Queue},
};

use crate::report::ErrorList;

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
    /// Runs what a command does in the cluster, which gets a client and the default namespace.
    pub(crate) fn run<T>(
        &self,
        access: Access,
        command: impl AsyncFnOnce(Client, String) -> Result<T, ErrorList>,
    ) -> Result<T, ErrorList> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let config = self.config().await?;
            let namespace = config.default_namespace.clone();
            let client = client(config, access).map_err(anyhow::Error::from)?;
            command(client, namespace).await
        })
    }

    /// Returns the client configuration, with its default namespace.
    pub(crate) async fn config(&self) -> anyhow::Result<Config> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        let none = "no cluster is configured; pass a kubeconfig file with --kubeconfig";
        match &self.kubeconfig {
            Some(path) => from_file(path, &options).await,
            // The service account of a pod has no contexts.
            None if self.context.is_some() => Config::from_kubeconfig(&options).await.context(none),
            None => Config::infer().await.context(none),
        }
    }
}

/// Returns a client for an interactive command: it makes each call once, with a deadline.
pub(crate) fn client(config: Config, access: Access) -> Result<Client, ClientError> {
    // A command does not serve metrics.
    let metrics = Metrics::new(&Queue::new(Backoff::default()));
    let options = ClientOptions {
        access,
        ..ClientOptions::default()
    };
    bounded(config, options, Arc::new(metrics))
}

async fn from_file(path: &Path, options: &KubeConfigOptions) -> anyhow::Result<Config> {
    let file = Kubeconfig::read_from(path).with_context(|| path.display().to_string())?;
    Config::from_custom_kubeconfig(file, options)
        .await
        .with_context(|| path.display().to_string())
}
