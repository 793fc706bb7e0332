//! Webhook configurations that call a process of this machine.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::StatusCode;
use serde_json::{Value, json};
use trainyard_api::yaml;

use crate::{
    api::{Api, Write},
    control_plane::ControlPlane,
    helm::chart,
    ports::Port,
    resource::Resource,
};

/// Webhook configurations of a cluster.
#[derive(Debug)]
pub struct Webhooks(Vec<Value>);

impl Webhooks {
    /// Reads the configurations of a file. They call a process that listens on this port and has the serving certificate of the control
    /// plane, instead of a Service.
    ///
    /// # Errors
    /// The file cannot be read, or has something other than webhook configurations.
    pub fn read(file: &Path, plane: &ControlPlane, port: u16) -> Result<Self> {
        let read = |path: &Path| {
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
        };
        let authority = read(&plane.serving_certificate().join("ca.crt"))?;
        let mut configurations = Vec::new();
        for document in yaml::read(&read(file)?) {
            let mut configuration = document?.value;
            let webhooks = configuration.get_mut("webhooks");
            let webhooks = webhooks.and_then(Value::as_array_mut);
            for webhook in webhooks.context("not a webhook configuration")? {
                let path = webhook.pointer("/clientConfig/service/path");
                let path = path.and_then(Value::as_str).context("no path")?;
                let client = json!({
                    "url": format!("https://127.0.0.1:{port}{path}"),
                    "caBundle": STANDARD.encode(&authority),
                });
                let webhook = webhook.as_object_mut().context("not a webhook")?;
                webhook.insert("clientConfig".to_owned(), client);
                webhook.insert("failurePolicy".to_owned(), "Fail".into());
            }
            configurations.push(configuration);
        }
        Ok(Self(configurations))
    }

    /// Reads those of the chart in the same way.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of_chart(plane: &ControlPlane, port: &Port) -> Result<Self> {
        Self::read(&chart().join("files/webhooks.yaml"), plane, port.number())
    }

    /// Writes a configuration file for a controller that serves them on this port. Returns its path.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn controller_configuration(plane: &ControlPlane, port: &Port) -> Result<PathBuf> {
        let configuration = json!({
            "apiVersion": "trainyard.dev/v1alpha1", "kind": "ControllerConfiguration",
            "webhook": {
                "host": "127.0.0.1", "port": port.number(), "certDir": plane.serving_certificate(),
            },
        });
        let file = plane.folder().join("webhooks.yaml");
        fs::write(&file, configuration.to_string())
            .with_context(|| format!("cannot write {}", file.display()))?;
        Ok(file)
    }

    /// Creates them.
    ///
    /// # Errors
    /// The API server refuses one.
    pub async fn install(&self, plane: &ControlPlane) -> Result<()> {
        for configuration in &self.0 {
            let resource = resource(configuration);
            let api = Api::new(plane.client(), &resource, "");
            let created = api.create(configuration, &Write::strict()).await?;
            created.accepted()?;
        }
        Ok(())
    }

    /// Deletes those that exist.
    ///
    /// # Errors
    /// The API server refuses it.
    pub async fn remove(&self, plane: &ControlPlane) -> Result<()> {
        for configuration in &self.0 {
            let resource = resource(configuration);
            let name = configuration.pointer("/metadata/name");
            let name = name.and_then(Value::as_str).context("no name")?;
            let api = Api::new(plane.client(), &resource, "");
            let deleted = api.delete(name).await?;
            if deleted.status != StatusCode::NOT_FOUND {
                deleted.accepted()?;
            }
        }
        Ok(())
    }
}

fn resource(configuration: &Value) -> Resource {
    let is_mutating = configuration.get("kind") == Some(&json!("MutatingWebhookConfiguration"));
    let plural = match is_mutating {
        true => "mutatingwebhookconfigurations",
        false => "validatingwebhookconfigurations",
    };
    Resource::cluster_wide("/apis/admissionregistration.k8s.io/v1", plural)
}
