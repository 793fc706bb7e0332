//! JobSet as a part of the reference's release. Its controller is that of the cluster, which runs as a process.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{Cluster, Resource};

use crate::common::charts::Charts;

/// The webhook configurations of JobSet's chart, which have the names of those that the cluster has from its start.
const WEBHOOKS: [&str; 2] = [
    "jobset-mutating-webhook-configuration",
    "jobset-validating-webhook-configuration",
];
/// The kinds of the chart's objects, and those of the objects that follow from them.
const KINDS: &str = "deployments,replicasets,pods,services,secrets,configmaps,serviceaccounts,roles,rolebindings,clusterroles,\
    clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations";
const LABEL: &str = "app.kubernetes.io/name=jobset";

/// Where the webhooks of JobSet's controller answer.
pub(super) struct Controller {
    server: String,
    authority: Value,
}

impl Controller {
    /// Returns the controller that a cluster starts.
    pub(super) async fn of(cluster: &Cluster) -> Result<Self> {
        let root = "/apis/admissionregistration.k8s.io/v1";
        let resource = Resource::cluster_wide(root, "mutatingwebhookconfigurations");
        let webhooks = cluster.api(&resource, "").get(WEBHOOKS[0]).await?;
        let client = webhooks.accepted()?["webhooks"][0]["clientConfig"].take();
        let url = client["url"].as_str().context("no URL")?;
        let (server, _) = url.rsplit_once('/').context("no path")?;
        Ok(Self {
            server: server.to_owned(),
            authority: client["caBundle"].clone(),
        })
    }

    /// Makes API servers call the webhooks of the chart at the process, as they would call a pod.
    pub(super) async fn is_called(&self, charts: &Charts<'_>) -> Result<()> {
        charts
            .change_webhooks(WEBHOOKS, |webhook| {
                let path = webhook["clientConfig"]["service"]["path"].as_str();
                let url = format!("{}{}", self.server, path.unwrap_or_default());
                webhook["clientConfig"] = json!({"url": url, "caBundle": self.authority});
            })
            .await
    }
}

/// Returns all objects of JobSet's chart and its CRD, with their `resourceVersion`, so that a write is seen even if it changes nothing else.
pub(super) async fn objects(charts: &Charts<'_>) -> Result<String> {
    let objects = format!("kubectl get {KINDS} --all-namespaces -l {LABEL} -o yaml");
    let objects = charts.shell(&objects).await?;
    let crd = charts.shell("kubectl get crd jobsets.jobset.x-k8s.io -o yaml");
    ensure!(objects.contains("kind: Deployment"), "{objects}");
    Ok(objects + &crd.await?)
}

/// Deletes the objects of the chart, and the webhooks that a cluster has from its start.
pub(super) async fn clear(charts: &Charts<'_>) -> Result<()> {
    let objects = format!("kubectl delete {KINDS} --all-namespaces -l {LABEL}");
    charts.shell(&objects).await?;
    let webhooks = WEBHOOKS.join(" ");
    let webhooks = format!(
        "kubectl delete mutatingwebhookconfigurations,validatingwebhookconfigurations --ignore-not-found {webhooks}"
    );
    charts.shell(&webhooks).await.map(drop)
}
