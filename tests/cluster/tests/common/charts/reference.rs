//! The reference's chart, and its controller as the chart runs it.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use trainyard_cluster::{Reference, ReferencePorts, Resource, jobset_chart, reference_chart};

use super::{Charts, NAMESPACE, WEBHOOKS, copied, replace, strings};

/// The Job that applies its runtimes, and the ConfigMap with them.
const RUNTIMES: &str = "kubeflow-trainer-runtimes-installer";

/// Copies the reference's chart, with JobSet's in it. That of LeaderWorkerSet, which is off by default, is in no module.
pub(crate) fn copy_the_references(to: &Path) -> Result<()> {
    copied(&reference_chart()?, to)?;
    // Files in the cache of modules are read-only.
    let writable = Command::new("chmod").args(["-R", "u+w"]).arg(to).status()?;
    ensure!(writable.success());
    let lws = "- name: lws\n  repository: oci://registry.k8s.io/lws/charts\n  version: 0.8.0\n  \
               condition: dataCache.enabled,dataCache.lws.install\n";
    replace(&to.join("Chart.yaml"), lws, "")?;
    fs::create_dir(to.join("charts"))?;
    copied(&jobset_chart()?, &to.join("charts/jobset"))
}

impl Charts<'_> {
    /// Runs what installs the reference's chart, whose values have [these](ReferencePorts::configuration) members. Before the hook applies
    /// the runtimes, the reference starts as its Deployment describes it, and API servers call its webhooks.
    pub(crate) async fn install_the_reference(
        &self,
        installs: impl Future<Output = Result<String>>,
        ports: ReferencePorts,
    ) -> Result<Reference> {
        let hook = async |pod: Value| {
            let plane = self.cluster.plane();
            let deployment = self.deployment().await?;
            let manager = &deployment["spec"]["template"]["spec"];
            let account = manager["serviceAccountName"]
                .as_str()
                .context("no account")?;
            let account = plane
                .kubeconfig_for_service_account(NAMESPACE, account)
                .await?;
            let config = self.config("controller_manager_config.yaml").await?;
            let reference = Reference::start_with(plane, &account, &config, ports).await?;
            self.route_the_references_webhooks(&reference).await?;
            let installer = pod["serviceAccountName"].as_str().context("no account")?;
            let installer = plane.kubeconfig_for_service_account(NAMESPACE, installer);
            self.apply_the_references_runtimes(&pod, &installer.await?)
                .await?;
            Ok(reference)
        };
        self.with_hook(installs, RUNTIMES, hook).await
    }

    async fn route_the_references_webhooks(&self, reference: &Reference) -> Result<()> {
        let certificates = self.cluster.plane().serving_certificate();
        let authority = STANDARD.encode(fs::read(certificates.join("ca.crt"))?);
        let port = reference.webhook_port();
        self.change_webhooks(WEBHOOKS, |webhook| {
            let client = &mut webhook["clientConfig"];
            if let Some(path) = client["service"]["path"].as_str() {
                let url = format!("https://127.0.0.1:{port}{path}");
                *client = json!({"url": url, "caBundle": authority});
            }
        })
        .await
    }

    /// Runs the script of the Job, which finds the runtimes in a mounted ConfigMap, and installs kubectl first.
    async fn apply_the_references_runtimes(&self, pod: &Value, account: &Path) -> Result<()> {
        let maps = Resource::namespaced("/api/v1", "configmaps");
        let map = self.cluster.api(&maps, NAMESPACE).get(RUNTIMES).await?;
        let map = map.accepted()?;
        let runtimes = map["data"]["runtimes.yaml"]
            .as_str()
            .context("no runtimes")?;
        let files = self.path("manifests");
        fs::create_dir_all(&files)?;
        fs::write(files.join("runtimes.yaml"), runtimes)?;
        let script = strings(&pod["containers"][0]["command"]).pop();
        let script = script.context("no script")?;
        let script = script
            .replace("apk add", "true apk add")
            .replace("/manifests/", &format!("{}/", files.display()));
        self.shell_as(account, &script).await.map(drop)
    }
}
