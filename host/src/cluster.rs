//! Which cluster a command speaks to.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// Which cluster.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// The kubeconfig file of the cluster [default: $KUBECONFIG, then ~/.kube/config, then the pod's own account].
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    kubeconfig: Option<PathBuf>,
}

impl ClusterArgs {
    /// How it is reached, and the namespace that its configuration names.
    pub(crate) async fn config(&self) -> anyhow::Result<kube::Config> {
        match &self.kubeconfig {
            Some(path) => from_file(path).await,
            None => kube::Config::infer()
                .await
                .context("no cluster is configured; give a kubeconfig file with --kubeconfig"),
        }
    }
}

async fn from_file(path: &Path) -> anyhow::Result<kube::Config> {
    let file = Kubeconfig::read_from(path).with_context(|| path.display().to_string())?;
    kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .with_context(|| path.display().to_string())
}
