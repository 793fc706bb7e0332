//! The replicas of the controller in a cluster, which the API server gives access to.

use std::collections::BTreeMap;

use clap::Args;
use kube::Client;
use serde_json::Value;

use crate::{
    args,
    live_objects::{LiveObjects, POD, Selection, items, text},
};

/// The labels of the controller's pods, which the chart does not let change.
const LABELS: &str = "app.kubernetes.io/name=trainer,app.kubernetes.io/component=manager,app.kubernetes.io/part-of=kubeflow";

/// The most replicas.
const MOST: usize = 20;

/// Where the controller runs.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReplicaArgs {
    /// The namespace of the controller.
    #[arg(long, value_name = "NAMESPACE", default_value = "kubeflow-system", value_parser = args::namespace)]
    pub(crate) controller_namespace: String,
}

/// The replicas of the controller.
pub(crate) struct Replicas {
    pub(crate) objects: LiveObjects,
    pub(crate) pods: Vec<Value>,
}

impl Replicas {
    /// Lists the replicas.
    ///
    /// # Errors
    /// There are none, or they cannot be listed.
    pub(crate) async fn list(client: Client, args: &ReplicaArgs) -> Result<Self, String> {
        let namespace = args.controller_namespace.clone();
        let objects = LiveObjects { client, namespace };
        let selection = Selection {
            labels: Some(LABELS),
            most: MOST,
            ..Selection::default()
        };
        let (mut pods, _) = objects.list(POD, selection).await?;
        // Evicted and completed pods remain beside those that replace them, and run nothing.
        pods.retain(|pod| !matches!(text(pod, "/status/phase"), Some("Failed" | "Succeeded")));
        if pods.is_empty() {
            return Err(format!(
                "no running pod in namespace {} has the labels of the controller ({LABELS}); use --controller-namespace for another namespace",
                objects.namespace
            ));
        }
        Ok(Self { objects, pods })
    }

    /// Returns the metrics of a replica.
    ///
    /// # Errors
    /// The pod has no port for metrics, or does not answer.
    pub(crate) async fn metrics(&self, pod: &Value) -> Result<String, String> {
        let name = text(pod, "/metadata/name").unwrap_or_default();
        let mut ports =
            items(pod, "/spec/containers").flat_map(|container| items(container, "/ports"));
        let port = ports.find(|port| text(port, "/name") == Some("metrics"));
        let port = port.and_then(|port| port.get("containerPort")?.as_u64());
        let port = port.ok_or_else(|| format!("pod {name} has no port `metrics`"))?;
        let namespace = &self.objects.namespace;
        let path = |pod: String| format!("/api/v1/namespaces/{namespace}/pods/{pod}/proxy/metrics");
        let plain = self.objects.text(&path(format!("{name}:{port}"))).await;
        // With `metrics.secureServing`, they are served over TLS only.
        match plain {
            Ok(text) => Ok(text),
            Err(error) => {
                let secure = path(format!("https:{name}:{port}"));
                self.objects.text(&secure).await.map_err(|_| error)
            }
        }
    }
}

/// Returns the labels of each series of a metric.
pub(crate) fn series<'t>(
    metrics: &'t str,
    name: &str,
) -> impl Iterator<Item = BTreeMap<&'t str, &'t str>> {
    let labels = metrics.lines().filter_map(move |line| {
        let rest = line.strip_prefix(name)?.strip_prefix('{')?;
        rest.split_once('}').map(|(labels, _)| labels)
    });
    // The values are names, versions and digests, which contain neither quotes nor commas.
    labels.map(|labels| {
        let pairs = labels.split(',').filter_map(|pair| {
            let (key, value) = pair.split_once('=')?;
            Some((key, value.trim_matches('"')))
        });
        pairs.collect()
    })
}
