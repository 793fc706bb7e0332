//! A cluster whose pods run as processes and report progress to the controller.

use std::fs;

use anyhow::{Context as _, Result};
use serde_json::Value;
use trainyard_cluster::{Cluster, ControlPlane, Port, Shared, Trainyard};

use super::{Namespace, prepare, roles, runtime};

/// The Service of the controller.
const SERVICE: (&str, &str) = ("kubeflow-system", "kubeflow-trainer-controller-manager");
const ON: &str = "--feature-gates=TrainJobStatus=true";

/// A cluster with the runtime `torch` and a controller, whose status server pods reach by the name of its Service.
pub(crate) struct Reporting {
    pub(crate) cluster: Cluster,
    controller: Trainyard,
    _port: Port,
}

impl Shared for Reporting {
    fn start() -> Result<Self> {
        let port = Port::find()?;
        let cluster = Cluster::start()?;
        let plane = cluster.plane();
        let account = prepare(&cluster, &[runtime()])?;
        let controller = plane.block_on(async {
            roles::grant(plane, &roles::printed(&[ON.into()])?).await?;
            let isolation = cluster.kubelet().isolation();
            cluster.publish(SERVICE, port.number(), isolation).await?;
            let config = format!(
                "apiVersion: trainyard.dev/v1alpha1\nkind: ControllerConfiguration\nstatusServer: {{port: {}}}\n",
                port.number()
            );
            let file = plane.folder().join("progress.yaml");
            fs::write(&file, config)?;
            let certificates = plane.serving_certificate();
            let flags = [
                ON.to_owned(),
                format!("--config={}", file.display()),
                format!("--webhook-cert-dir={}", certificates.display()),
                "--webhook-bind-address=0".to_owned(),
            ];
            Trainyard::start(plane, &account, flags).await
        })?;
        Ok(Self {
            cluster,
            controller,
            _port: port,
        })
    }

    fn plane(&self) -> &ControlPlane {
        self.cluster.plane()
    }

    fn still_runs(&self) -> Result<()> {
        self.cluster.still_runs()?;
        self.controller.process().still_runs()
    }

    fn last_words(&self) -> String {
        self.cluster.kubelet().last_words()
    }
}

impl Reporting {
    /// Waits until a TrainJob is complete. Returns what the program of its only pod printed.
    pub(crate) async fn output(&self, namespace: &Namespace<'_>, name: &str) -> Result<String> {
        namespace.until_complete(name).await?;
        let is_its =
            |pod: &&Value| pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] == name;
        let pods = namespace.api(&namespace.pods).items().await?;
        let pod = pods.iter().find(is_its).context("no pod")?;
        let pod = pod["metadata"]["name"].as_str().unwrap_or_default();
        let logs = self.cluster.kubelet().logs().join(&namespace.name);
        Ok(fs::read_to_string(logs.join(pod).join("node.log"))?)
    }
}

/// Returns `status.trainerStatus` of a TrainJob.
pub(crate) async fn progress(namespace: &Namespace<'_>, name: &str) -> Result<Value> {
    let job = namespace.api(&namespace.jobs).get(name).await?.accepted()?;
    Ok(job["status"]["trainerStatus"].clone())
}
