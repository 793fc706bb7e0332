//! A namespace of one test whose pods run.

use std::fs;

use anyhow::Result;
use serde_json::{Value, json};
use trainyard_cluster::{Api, Cluster, Image, Images, Resource, Write};

/// A namespace whose pods run.
pub(crate) struct Running<'a> {
    pub(crate) namespace: String,
    pub(crate) pods: Resource,
    cluster: &'a Cluster,
}

impl<'a> Running<'a> {
    pub(crate) async fn new(cluster: &'a Cluster) -> Result<Self> {
        let namespace = cluster.new_namespace().await?;
        cluster.kubelet().run(&namespace, images());
        Ok(Self {
            cluster,
            namespace,
            pods: Resource::pods(),
        })
    }

    pub(crate) fn api(&'a self, resource: &'a Resource) -> Api<'a> {
        self.cluster.api(resource, &self.namespace)
    }

    pub(crate) async fn create(&self, resource: &Resource, object: &Value) -> Result<()> {
        let api = self.cluster.api(resource, &self.namespace);
        api.create(object, &Write::strict()).await?.accepted()?;
        Ok(())
    }

    /// Creates a pod with one container, which runs a script of bash, and other fields.
    pub(crate) async fn start(&self, name: &str, script: &str, spec: Value) -> Result<()> {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "node", "image": "example.com/bash", "args": [script]}],
            },
        });
        merge(&mut pod["spec"], spec);
        self.create(&self.pods, &pod).await
    }

    pub(crate) async fn until(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        self.api(&self.pods).until(name, what, holds).await
    }

    pub(crate) async fn until_phase(&self, name: &str, phase: &str) -> Result<Value> {
        let is_so = |pod: &Value| pod["status"]["phase"] == phase;
        self.until(name, phase, is_so).await
    }

    pub(crate) fn log(&self, pod: &str, container: &str) -> String {
        let logs = self.cluster.kubelet().logs().join(&self.namespace);
        fs::read_to_string(logs.join(pod).join(format!("{container}.log"))).unwrap_or_default()
    }
}

pub(crate) fn images() -> Images {
    let image = Image::default().env("OF_IMAGE", "yes");
    let bash = image.clone().entrypoint(["bash", "-ec"]);
    let python = image.entrypoint(["python3", "-c"]);
    Images::new()
        .with("example.com/bash", bash)
        .with("example.com/python", python)
}

/// Merges fields into a value. Items of a list are merged by position.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(from)) => {
            for (into, from) in into.iter_mut().zip(from) {
                merge(into, from);
            }
        }
        (into, from) => *into = from,
    }
}
