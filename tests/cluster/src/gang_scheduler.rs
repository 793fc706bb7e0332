//! A second scheduler, with the plugin Coscheduling, built from its published module.

use std::{fs, path::Path, process::Command};

use anyhow::Result;
use serde_json::json;

use crate::{
    control_plane::ControlPlane, go, health, launcher::serving, ports::Port, process::Process,
};

/// The module with its version.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scheduler");
const PACKAGE: &str = "sigs.k8s.io/scheduler-plugins/cmd/scheduler";
/// The seconds for which the members of a gang keep their nodes while others find none. Gangs of tests fit at once, or not at all.
const PERMIT_SECONDS: u32 = 10;
/// When pods are tried again that did not fit. The plugin rejects them before any other, and is not asked again when pods end; by default they
/// would wait for five minutes.
const RETRY_AFTER: &str = "5s";

/// A scheduler that starts all pods of a PodGroup or none. It places the pods that name it, until this value is dropped.
pub struct GangScheduler {
    process: Process,
    _port: Port,
}

impl GangScheduler {
    /// The scheduler's name, for `schedulerName` of pods.
    pub const NAME: &str = "gang-scheduler";

    /// Starts it, and waits until it is ready. The program is built if it is not in the cache, which takes minutes.
    ///
    /// # Errors
    /// Go is missing, the build failed, or the program exited or was not ready in time.
    pub async fn start(plane: &ControlPlane) -> Result<Self> {
        let port = Port::find()?;
        let only = json!({"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]});
        let configuration = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": false},
            "clientConnection": {"kubeconfig": plane.kubeconfig()},
            "profiles": [{
                "schedulerName": Self::NAME,
                "plugins": {
                    "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
                    "queueSort": only,
                },
                "pluginConfig": [{
                    "name": "Coscheduling",
                    "args": {"permitWaitingTimeSeconds": PERMIT_SECONDS},
                }],
            }],
        });
        let file = plane.folder().join("gang-scheduler.json");
        fs::write(&file, configuration.to_string())?;
        let mut command = Command::new(go::program("gang-scheduler", Path::new(FOLDER), PACKAGE)?);
        command
            .args(serving(
                &plane.certificates,
                plane.kubeconfig(),
                port.number(),
            ))
            .arg(format!("--config={}", file.display()))
            .arg(format!(
                "--pod-max-in-unschedulable-pods-duration={RETRY_AFTER}"
            ));
        let process = Process::start(Self::NAME, &command, plane.folder())?;
        let url = format!("https://127.0.0.1:{}", port.number());
        let client = health::client(&url, &plane.certificates.authority)?;
        health::wait(Self::NAME, &client, "/healthz", || process.still_runs()).await?;
        Ok(Self {
            process,
            _port: port,
        })
    }

    /// Checks that it is running.
    ///
    /// # Errors
    /// It exited: with the end of its log.
    pub fn still_runs(&self) -> Result<()> {
        self.process.still_runs()
    }
}
