//! PolicyPlugins and PluginRevisions of a cluster.

use std::ffi::OsString;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use trainyard_cluster::{Api, Cluster, Install, Resource, Write, eventually, install};
use trainyard_config::policy_plugin::Crd;

use super::roles;

const OURS: &str = "/apis/trainyard.dev/v1alpha1";

/// The plugins that are declared in a cluster.
pub(crate) struct Declared<'c> {
    cluster: &'c Cluster,
    policies: Resource,
    revisions: Resource,
}

impl<'c> Declared<'c> {
    /// Installs the kinds, and gives the controller what it may do with them.
    pub(crate) async fn new(cluster: &'c Cluster) -> Result<Self> {
        let plane = cluster.plane();
        for crd in Crd::ALL {
            install(plane, &crd.definition()?, Install::ServerSide).await?;
        }
        let arguments: Vec<OsString> = vec!["--plugins-source=Cluster".into()];
        roles::grant(plane, &roles::printed(&arguments)?).await?;
        Ok(Self {
            cluster,
            policies: Resource::cluster_wide(OURS, "policyplugins"),
            revisions: Resource::cluster_wide(OURS, "pluginrevisions"),
        })
    }

    pub(crate) fn policies(&self) -> Api<'_> {
        self.cluster.api(&self.policies, "")
    }

    pub(crate) fn revisions(&self) -> Api<'_> {
        self.cluster.api(&self.revisions, "")
    }

    /// Applies a PolicyPlugin with the plugin of a reference.
    pub(crate) async fn declare(&self, name: &str, reference: &str) -> Result<()> {
        let write = Write {
            force: true,
            ..Write::by("operator")
        };
        let policies = self.policies();
        let applied = policies.apply(&policy(name, reference), &write).await?;
        applied.accepted()?;
        Ok(())
    }

    /// Waits until a condition of a PolicyPlugin has a status and a reason. Returns its message.
    pub(crate) async fn condition(
        &self,
        name: &str,
        kind: &str,
        status: &str,
        reason: &str,
    ) -> Result<String> {
        let found = |object: &Value| {
            let all = object["status"]["conditions"].as_array()?;
            let one = all.iter().find(|it| it["type"] == kind)?;
            let fits = one["status"] == status && (reason.is_empty() || one["reason"] == reason);
            fits.then(|| one["message"].as_str().unwrap_or_default().to_owned())
        };
        let what = format!("{kind} is {status} ({reason})");
        let policies = self.policies();
        let until = policies.until(name, &what, |object| found(object).is_some());
        found(&until.await?).context("the condition is gone")
    }

    /// Waits until the revision of a number has a stage. Returns its name.
    pub(crate) async fn stage(&self, number: u64, stage: &str) -> Result<String> {
        eventually(&format!("revision {number} is at {stage}"), async || {
            let all = self.revisions().items().await?;
            let found = all.iter().find(|it| it["spec"]["number"] == number);
            let found = found.filter(|it| it["status"]["stage"] == stage);
            Ok(found.and_then(|it| Some(it["metadata"]["name"].as_str()?.to_owned())))
        })
        .await
    }
}

/// Returns a PolicyPlugin with the plugin of a reference.
pub(crate) fn policy(name: &str, reference: &str) -> Value {
    json!({
        "apiVersion": "trainyard.dev/v1alpha1", "kind": "PolicyPlugin", "metadata": {"name": name},
        "spec": {"source": {"oci": {"reference": reference}}},
    })
}
