//! Kubeconfig files.

use std::{
    fs::{self, File},
    io::Write as _,
    path::Path,
};

use anyhow::{Context, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use kube::{Client, Config, config::KubeConfigOptions};
use serde_json::{Value, json};

/// The contents of a kubeconfig file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kubeconfig<'a> {
    /// The URL of the API server.
    pub(crate) server: &'a str,
    /// The certificate of the server's authority, as PEM.
    pub(crate) authority: &'a str,
    /// The caller's token.
    pub(crate) token: &'a str,
    /// The default namespace.
    pub(crate) namespace: &'a str,
}

impl Kubeconfig<'_> {
    /// Writes the file as JSON, which is also YAML.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let cluster = json!({
            "server": self.server,
            "certificate-authority-data": STANDARD.encode(self.authority),
        });
        let context = json!({"cluster": "test", "user": "test", "namespace": self.namespace});
        let whole = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": {"token": self.token}}],
            "contexts": [{"name": "test", "context": context}],
            "current-context": "test",
        });
        write(path, &whole)
    }
}

/// Writes a copy of a kubeconfig file for another server with a certificate of the same authority.
pub(crate) fn redirect(from: &Path, server: &str, to: &Path) -> Result<()> {
    let text = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    let mut whole: Value = serde_json::from_slice(&text)
        .with_context(|| format!("{} is none of our kubeconfigs", from.display()))?;
    let url = whole.pointer_mut("/clusters/0/cluster/server");
    *url.context("the kubeconfig has no server")? = json!(server);
    write(to, &whole)
}

/// Returns a client for a kubeconfig file. It does not retry calls.
///
/// # Errors
/// The file does not exist or is invalid.
pub async fn client_of(kubeconfig: &Path) -> Result<Client> {
    let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig)?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

fn write(path: &Path, whole: &Value) -> Result<()> {
    let mut file =
        File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    serde_json::to_writer_pretty(&mut file, whole)?;
    file.flush()?;
    Ok(())
}
