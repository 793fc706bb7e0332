//! Starts the programs of a cluster.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use crate::{
    binaries::{
        API_SERVER, Binaries, CONTROLLER_MANAGER, ETCD, JOBSET_CONTROLLER, Program, SCHEDULER,
    },
    certificates::Certificates,
    process::Process,
};

/// Starts programs that keep their logs and data in one folder.
#[derive(Debug)]
pub(crate) struct Launcher {
    pub(crate) binaries: Binaries,
    pub(crate) folder: PathBuf,
}

impl Launcher {
    /// Returns the folder of etcd's data.
    pub(crate) fn etcd_data(&self) -> PathBuf {
        self.folder.join("etcd")
    }

    /// Starts etcd, with one port for clients and an unused one for peers.
    pub(crate) fn etcd(&self, port: u16, peer_port: u16) -> Result<Process> {
        self.start(
            ETCD,
            &[
                format!("--data-dir={}", self.etcd_data().display()),
                format!("--listen-client-urls=http://127.0.0.1:{port}"),
                format!("--advertise-client-urls=http://127.0.0.1:{port}"),
                format!("--listen-peer-urls=http://127.0.0.1:{peer_port}"),
                "--unsafe-no-fsync".to_owned(),
                "--log-level=warn".to_owned(),
            ],
        )
    }

    pub(crate) fn api_server(
        &self,
        certificates: &Certificates,
        etcd_port: u16,
        port: u16,
    ) -> Result<Process> {
        let file = |name| certificates.file(name);
        // Of the version of Kubernetes that tools/test-versions.sh selects.
        let gates = env::var("TRAINYARD_FEATURE_GATES").unwrap_or_default();
        self.start(
            API_SERVER,
            &[
                format!("--feature-gates={gates}"),
                format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
                "--bind-address=127.0.0.1".to_owned(),
                format!("--secure-port={port}"),
                format!("--tls-cert-file={}", file("serving/tls.crt")),
                format!("--tls-private-key-file={}", file("serving/tls.key")),
                format!("--client-ca-file={}", file("serving/ca.crt")),
                format!("--token-auth-file={}", file("tokens.csv")),
                "--authorization-mode=RBAC".to_owned(),
                // A client that sets an owner must have the permission to block its deletion, as on some distributions.
                "--enable-admission-plugins=OwnerReferencesPermissionEnforcement".to_owned(),
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
            ],
        )
    }

    pub(crate) fn controller_manager(
        &self,
        certificates: &Certificates,
        kubeconfig: &Path,
        port: u16,
    ) -> Result<Process> {
        let file = |name| certificates.file(name);
        let mut args = serving(certificates, kubeconfig, port);
        args.extend([
            format!(
                "--service-account-private-key-file={}",
                file("service-accounts.key")
            ),
            format!("--root-ca-file={}", file("serving/ca.crt")),
        ]);
        self.start(CONTROLLER_MANAGER, &args)
    }

    pub(crate) fn scheduler(
        &self,
        certificates: &Certificates,
        kubeconfig: &Path,
        port: u16,
    ) -> Result<Process> {
        self.start(SCHEDULER, &serving(certificates, kubeconfig, port))
    }

    pub(crate) fn jobset_controller(&self, kubeconfig: &Path, config: &Path) -> Result<Process> {
        self.start(
            JOBSET_CONTROLLER,
            &[
                format!("--kubeconfig={}", kubeconfig.display()),
                format!("--config={}", config.display()),
            ],
        )
    }

    fn start(&self, program: Program, args: &[String]) -> Result<Process> {
        let mut command = Command::new(self.binaries.path(program));
        command.args(args);
        Process::start(program.name, &command, &self.folder)
    }
}

/// Returns the common arguments of kube-controller-manager and kube-scheduler. Only their health endpoints are used, which need no
/// authentication.
pub(crate) fn serving(certificates: &Certificates, kubeconfig: &Path, port: u16) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        "--leader-elect=false".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", certificates.file("serving/tls.crt")),
        format!(
            "--tls-private-key-file={}",
            certificates.file("serving/tls.key")
        ),
    ]
}
