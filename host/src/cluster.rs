//! Which cluster a command speaks to.

use std::path::Path;

use anyhow::Context as _;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// What that kubeconfig file names, or what the user's own does, or the pod's own account.
pub(crate) async fn config(kubeconfig: Option<&Path>) -> anyhow::Result<kube::Config> {
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
