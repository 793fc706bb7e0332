//! etcd and kube-apiserver, started and ready.

use crate::api::{Api, Write};
use crate::binaries::Binaries;
use crate::certificates::Certificates;
use crate::ports;
use crate::process::Process;
use crate::resource::Resource;
use anyhow::{Result, anyhow, bail};
use http::Request;
use kube::{Client, Config};
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::{self, Runtime};

/// How long a control plane may take until it is ready.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How long one call may take.
const CALL_WITHIN: Duration = Duration::from_secs(30);
/// Another program may take a port between its choice and its use.
const TRIES: usize = 3;

/// A control plane of its own, with an administrator's client. It is gone when this value is dropped.
#[derive(Debug)]
pub struct ControlPlane {
    client: KubeClient,
    runtime: Runtime,
    namespaces: AtomicUsize,
    _processes: [Process; 2],
    _folder: TempDir,
}

struct KubeClient(Client);

impl std::fmt::Debug for KubeClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl ControlPlane {
    /// Starts one, and waits until it is ready.
    ///
    /// # Errors
    /// No binaries, or a process that ended or was not ready in time: with the end of its log.
    pub fn start(binaries: &Binaries) -> Result<Self> {
        // More than one provider may be linked, and then rustls cannot choose by itself. Another start may have chosen.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut last = anyhow!("no try was made");
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
        let folder = tempfile::Builder::new()
            .prefix("trainyard-control-plane-")
            .tempdir()?;
        let certificates = Certificates::make(folder.path())?;
        let [etcd_port, peer_port, port] = ports::free()?;
        let mut processes = [
            etcd(binaries, folder.path(), etcd_port, peer_port)?,
            api_server(binaries, folder.path(), &certificates, etcd_port, port)?,
        ];
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let client = {
            let _inside = runtime.enter();
            client(port, &certificates)?
        };
        runtime.block_on(ready(&client, &mut processes))?;
        Ok(Self {
            client: KubeClient(client),
            runtime,
            namespaces: AtomicUsize::new(0),
            _processes: processes,
            _folder: folder,
        })
    }

    /// The administrator's client. It makes no call twice by itself.
    pub fn client(&self) -> &Client {
        &self.client.0
    }

    /// Runs what is asynchronous to its end.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// The objects of a kind, in a namespace where the kind lives in one.
    pub fn api<'a>(&'a self, resource: &'a Resource, namespace: &'a str) -> Api<'a> {
        Api::new(self.client(), resource, namespace)
    }

    /// Makes a namespace that no other test has, and returns its name.
    ///
    /// # Errors
    /// The API server could not make it.
    pub async fn new_namespace(&self) -> Result<String> {
        let number = self.namespaces.fetch_add(1, Ordering::Relaxed);
        let name = format!("test-{number}");
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": &name}});
        self.api(&Resource::namespaces(), "")
            .create(&namespace, &Write::default())
            .await?
            .accepted()?;
        Ok(name)
    }
}

fn etcd(binaries: &Binaries, folder: &Path, port: u16, peer_port: u16) -> Result<Process> {
    let args = [
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls=http://127.0.0.1:{port}"),
        format!("--advertise-client-urls=http://127.0.0.1:{port}"),
        format!("--listen-peer-urls=http://127.0.0.1:{peer_port}"),
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ];
    Process::start("etcd", &binaries.path("etcd"), &args, folder)
}

fn api_server(
    binaries: &Binaries,
    folder: &Path,
    certificates: &Certificates,
    etcd_port: u16,
    port: u16,
) -> Result<Process> {
    let file = |name| certificates.file(name);
    let args = [
        format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", file("server.crt")),
        format!("--tls-private-key-file={}", file("server.key")),
        format!("--client-ca-file={}", file("ca.crt")),
        format!("--token-auth-file={}", file("tokens.csv")),
        "--authorization-mode=RBAC".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!(
            "--service-account-key-file={}",
            file("service-accounts.pub")
        ),
        format!(
            "--service-account-signing-key-file={}",
            file("service-accounts.key")
        ),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
    ];
    Process::start(
        "kube-apiserver",
        &binaries.path("kube-apiserver"),
        &args,
        folder,
    )
}

fn client(port: u16, certificates: &Certificates) -> Result<Client> {
    let mut config = Config::new(format!("https://127.0.0.1:{port}").parse()?);
    config.root_cert = Some(vec![certificates.authority.clone()]);
    config.auth_info = serde_json::from_value(json!({"token": certificates.token}))?;
    config.connect_timeout = Some(CALL_WITHIN);
    config.read_timeout = Some(CALL_WITHIN);
    config.write_timeout = Some(CALL_WITHIN);
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

async fn ready(client: &Client, processes: &mut [Process]) -> Result<()> {
    let deadline = Instant::now() + READY_WITHIN;
    loop {
        let state = match client
            .request_text(Request::get("/readyz").body(Vec::new())?)
            .await
        {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        for process in &mut *processes {
            if let Some(status) = process.ended()? {
                bail!(
                    "the control plane did not start: {status}\n{}",
                    process.last_words()
                );
            }
        }
        if Instant::now() > deadline {
            let logs: Vec<String> = processes.iter().map(Process::last_words).collect();
            bail!(
                "the control plane is not ready after {} s: {state}\n{}",
                READY_WITHIN.as_secs(),
                logs.join("\n")
            );
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
