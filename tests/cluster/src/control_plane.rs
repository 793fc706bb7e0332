//! etcd and kube-apiserver.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, anyhow, bail};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{Client, Config, api::PostParams};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::{self, Runtime};

use crate::{
    api::{Api, Write},
    binaries::Binaries,
    certificates::Certificates,
    health,
    kept::{Kept, NAMESPACES},
    kubeconfig::Kubeconfig,
    launcher::Launcher,
    ports::Port,
    process::Process,
    resource::Resource,
};

/// The timeout of one call.
const CALL_WITHIN: Duration = Duration::from_secs(30);
/// The maximum number of starts. If a port is not reserved, another program can take it before it is used.
const TRIES: usize = 3;
/// The lifetime of tokens, which is longer than any test program runs.
const TOKEN_SECONDS: i64 = 24 * 60 * 60;

/// A dedicated API server with an administrator's client. It is stopped when this value is dropped.
#[derive(Debug)]
pub struct ControlPlane {
    client: KubeClient,
    runtime: Runtime,
    /// The prefix of the names of its tests' namespaces, and their number.
    namespaces: (String, AtomicUsize),
    kubeconfig: PathBuf,
    url: String,
    pub(crate) certificates: Certificates,
    pub(crate) launcher: Launcher,
    servers: Servers,
}

/// The processes of a control plane.
#[derive(Debug)]
enum Servers {
    Own(Box<Own>),
    Kept(#[expect(dead_code, reason = "this process is attached until it is dropped")] Kept),
}

/// Processes that are stopped with the control plane, and their folder.
#[derive(Debug)]
struct Own {
    api_server: Mutex<Process>,
    etcd: Mutex<Process>,
    ports: Ports,
    _folder: TempDir,
}

#[derive(Debug)]
struct Ports {
    etcd: Port,
    etcd_peers: Port,
    api_server: Port,
}

struct KubeClient(Client);

impl std::fmt::Debug for KubeClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl ControlPlane {
    /// Starts a control plane, and waits until it is ready.
    ///
    /// # Errors
    /// A binary is missing; or a process exited or was not ready in time, with the end of its log.
    pub fn start() -> Result<Self> {
        Self::start_from(&Binaries::of_a_control_plane()?)
    }

    pub(crate) fn start_from(binaries: &Binaries) -> Result<Self> {
        // If several providers are linked, rustls cannot choose one. An earlier start may have installed one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut last = anyhow!("the control plane was not started");
        for _ in 0..TRIES {
            match Self::try_start(binaries) {
                Err(error) if format!("{error:#}").contains("address already in use") => {
                    last = error;
                }
                other => return other,
            }
        }
        Err(last)
    }

    fn try_start(binaries: &Binaries) -> Result<Self> {
        let folder = private_folder()?;
        let certificates = Certificates::make(folder.path())?;
        let launcher = Launcher {
            binaries: binaries.clone(),
            folder: folder.path().to_owned(),
        };
        let ports = Ports {
            etcd: Port::find()?,
            etcd_peers: Port::find()?,
            api_server: Port::find()?,
        };
        let etcd = start_etcd(&launcher, &ports)?;
        let api_server = start_api_server(&launcher, &certificates, &ports)?;
        let url = format!("https://127.0.0.1:{}", ports.api_server.number());
        let own = Own {
            api_server: Mutex::new(api_server),
            etcd: Mutex::new(etcd),
            ports,
            _folder: folder,
        };
        Self::of(Servers::Own(Box::new(own)), url, certificates, launcher)
    }

    /// Returns the control plane of a kept cluster, to which this process is attached.
    pub(crate) fn attach(kept: Kept, binaries: &Binaries) -> Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let certificates = Certificates::read(&kept.folder)?;
        let launcher = Launcher {
            binaries: binaries.clone(),
            folder: kept.folder.clone(),
        };
        let url = kept.url.clone();
        Self::of(Servers::Kept(kept), url, certificates, launcher)
    }

    fn of(
        servers: Servers,
        url: String,
        certificates: Certificates,
        launcher: Launcher,
    ) -> Result<Self> {
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let client = runtime.block_on(async { client(&url, &certificates) })?;
        let kubeconfig = launcher.folder.join("admin.kubeconfig");
        Kubeconfig {
            server: &url,
            authority: &certificates.authority_pem,
            token: &certificates.token,
            namespace: "default",
        }
        .write(&kubeconfig)?;
        // Namespaces of earlier programs may still be terminating.
        let since = SystemTime::UNIX_EPOCH.elapsed()?.as_millis();
        let plane = Self {
            client: KubeClient(client),
            runtime,
            namespaces: (format!("{NAMESPACES}{since:x}-"), AtomicUsize::new(0)),
            kubeconfig,
            url,
            certificates,
            launcher,
            servers,
        };
        plane.block_on(plane.ready())?;
        Ok(plane)
    }

    /// Returns the administrator's client, which never retries.
    pub fn client(&self) -> &Client {
        &self.client.0
    }

    /// Runs a future to completion.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Returns the minor version of the Kubernetes that serves.
    ///
    /// # Errors
    /// The API server does not answer.
    pub async fn minor_version(&self) -> Result<u32> {
        let version = self.client().apiserver_version().await?;
        let digits = version.minor.trim_end_matches('+');
        digits.parse().with_context(|| version.git_version.clone())
    }

    /// Returns the objects of a kind, in a namespace if the kind is namespaced.
    pub fn api<'a>(&'a self, resource: &'a Resource, namespace: &'a str) -> Api<'a> {
        Api::new(self.client(), resource, namespace)
    }

    /// Creates a namespace of its own for a test, and returns its name.
    ///
    /// # Errors
    /// The API server refused it.
    pub async fn new_namespace(&self) -> Result<String> {
        let (begins, count) = &self.namespaces;
        let number = count.fetch_add(1, Ordering::Relaxed);
        let name = format!("{begins}{number}");
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": &name}});
        self.api(&Resource::namespaces(), "")
            .create(&namespace, &Write::default())
            .await?
            .accepted()?;
        Ok(name)
    }

    /// Returns the URL of the API server.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Returns the administrator's kubeconfig file. RBAC allows everything to the administrator.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Writes a kubeconfig file with a token of an existing ServiceAccount, which is valid for a day, and returns its path. Its default
    /// namespace is that of the account.
    ///
    /// # Errors
    /// The account does not exist, or the file cannot be written.
    pub async fn kubeconfig_for_service_account(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<PathBuf> {
        let accounts: kube::Api<ServiceAccount> =
            kube::Api::namespaced(self.client().clone(), namespace);
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                expiration_seconds: Some(TOKEN_SECONDS),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let answer = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await
            .with_context(|| format!("no token for ServiceAccount {namespace}/{name}"))?;
        let token = answer.status.and_then(|status| status.token);
        let token = token.context("the answer has no token")?;
        let path = self.folder().join(format!("{namespace}-{name}.kubeconfig"));
        Kubeconfig {
            server: &self.url(),
            authority: &self.certificates.authority_pem,
            token: &token,
            namespace,
        }
        .write(&path)?;
        Ok(path)
    }

    /// Returns a folder with `tls.crt` and `tls.key` for a server on 127.0.0.1 that the API server calls, such as a webhook, and with
    /// `ca.crt`, the authority that the API server must trust.
    pub fn serving_certificate(&self) -> PathBuf {
        self.certificates.serving()
    }

    /// Returns a folder for files of tests and the logs of processes. It is deleted with the control plane.
    pub fn folder(&self) -> &Path {
        &self.launcher.folder
    }

    /// Kills kube-apiserver with SIGKILL. Its connections break, and new ones are refused, until it is
    /// [started](Self::start_api_server) again. Only tests that do not share it can call this.
    ///
    /// # Errors
    /// The process does not exist, or the control plane is kept by another program.
    pub fn kill_api_server(&self) -> Result<()> {
        self.own()?.api_server().kill()?;
        Ok(())
    }

    /// Starts kube-apiserver after it was [killed](Self::kill_api_server), on the same port and the same data, and waits
    /// until it is ready.
    ///
    /// # Errors
    /// It exited or was not ready in time: with the end of its log.
    pub async fn start_api_server(&self) -> Result<()> {
        let own = self.own()?;
        let again = start_api_server(&self.launcher, &self.certificates, &own.ports)?;
        *own.api_server() = again;
        self.ready().await
    }

    /// Copies the data of etcd, for which it and kube-apiserver are killed and started again. Only tests that do not share the control
    /// plane can call this.
    ///
    /// # Errors
    /// A process exited or was not ready in time, the data cannot be copied, or the control plane is kept by another program.
    pub async fn back_up(&self) -> Result<Backup> {
        let backup = Backup(private_folder()?);
        let copy = |data: &Path| copy_folder(data, &backup.0.path().join("etcd"));
        self.with_etcd_stopped(copy).await?;
        Ok(backup)
    }

    /// Replaces the data of etcd by a backup, as [`Self::back_up`] copied them.
    ///
    /// # Errors
    /// See [`Self::back_up`].
    pub async fn restore(&self, backup: &Backup) -> Result<()> {
        let replace = |data: &Path| {
            fs::remove_dir_all(data)?;
            copy_folder(&backup.0.path().join("etcd"), data)
        };
        self.with_etcd_stopped(replace).await
    }

    async fn with_etcd_stopped(&self, change: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let own = self.own()?;
        own.api_server().kill()?;
        own.etcd().kill()?;
        change(&self.launcher.etcd_data())?;
        *own.etcd() = start_etcd(&self.launcher, &own.ports)?;
        self.start_api_server().await
    }

    /// Checks that all processes are running.
    ///
    /// # Errors
    /// A process exited: with the end of its log.
    pub fn still_runs(&self) -> Result<()> {
        let Servers::Own(own) = &self.servers else {
            return Ok(());
        };
        own.etcd().still_runs()?;
        own.api_server().still_runs()
    }

    fn own(&self) -> Result<&Own> {
        match &self.servers {
            Servers::Own(own) => Ok(own),
            Servers::Kept(_) => bail!(
                "this test kills the API server and cannot run on a kept cluster; unset TRAINYARD_PLANE to start a cluster for it"
            ),
        }
    }

    async fn ready(&self) -> Result<()> {
        let what = "kube-apiserver";
        health::wait(what, self.client(), "/readyz", || self.still_runs()).await
    }
}

/// Creates a folder that other users cannot read, for the credentials of an administrator.
fn private_folder() -> Result<TempDir> {
    let mut folder = tempfile::Builder::new();
    folder.prefix("trainyard-control-plane-");
    folder.permissions(Permissions::from_mode(0o700));
    Ok(folder.tempdir()?)
}

impl Own {
    fn api_server(&self) -> MutexGuard<'_, Process> {
        self.api_server
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn etcd(&self) -> MutexGuard<'_, Process> {
        self.etcd.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A copy of the data of etcd.
#[derive(Debug)]
pub struct Backup(TempDir);

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_folder(&from, &to)?;
        } else {
            fs::copy(from, to)?;
        }
    }
    Ok(())
}

fn start_etcd(launcher: &Launcher, ports: &Ports) -> Result<Process> {
    launcher.etcd(ports.etcd.number(), ports.etcd_peers.number())
}

fn start_api_server(
    launcher: &Launcher,
    certificates: &Certificates,
    ports: &Ports,
) -> Result<Process> {
    launcher.api_server(certificates, ports.etcd.number(), ports.api_server.number())
}

fn client(server: &str, certificates: &Certificates) -> Result<Client> {
    let mut config = Config::new(server.parse()?);
    config.root_cert = Some(vec![certificates.authority.clone()]);
    config.auth_info = serde_json::from_value(json!({"token": certificates.token}))?;
    config.connect_timeout = Some(CALL_WITHIN);
    config.read_timeout = Some(CALL_WITHIN);
    config.reset_reader_on_write = true;
    config.write_timeout = Some(CALL_WITHIN);
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn other_users_cannot_read_the_folder() {
        let folder = private_folder().unwrap();
        let mode = folder.path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
