//! The JobSet controller with its webhooks, as a process outside the cluster.

use std::fs;

use anyhow::{Context, Result, bail};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use trainyard_api::yaml;

use crate::{
    api::Write, binaries::Binaries, control_plane::ControlPlane, health, ports::Port,
    process::Process, resource::Resource,
};

const CRD: &str = "crd/bases/jobset.x-k8s.io_jobsets.yaml";
const WEBHOOKS: &str = "webhook/manifests.yaml";
/// The patches of the webhooks in the published manifests, by kind.
const PATCHES: [(&str, &str); 2] = [
    (
        "MutatingWebhookConfiguration",
        "webhook/patches/mutating-patch.yaml",
    ),
    (
        "ValidatingWebhookConfiguration",
        "webhook/patches/validating-patch.yaml",
    ),
];

/// The controller's process, and its ports.
#[derive(Debug)]
pub(crate) struct JobSetController {
    pub(crate) process: Process,
    _ports: [Port; 2],
}

impl JobSetController {
    /// Starts the controller after JobSets are defined, and registers its webhooks when they answer.
    pub(crate) async fn start(plane: &ControlPlane) -> Result<Self> {
        let ports = [Port::find()?, Port::find()?];
        let [webhooks, probes] = ports.each_ref().map(Port::number);
        let config = plane.folder().join("jobset.yaml");
        fs::write(&config, configuration(plane, webhooks, probes).to_string())?;
        let process = plane
            .launcher
            .jobset_controller(plane.kubeconfig(), &config)?;
        let client = health::client(
            &format!("http://127.0.0.1:{probes}"),
            &plane.certificates.authority,
        )?;
        health::wait("the JobSet controller", &client, "/readyz", || {
            process.still_runs()
        })
        .await?;
        register(plane, webhooks, &process).await?;
        Ok(Self {
            process,
            _ports: ports,
        })
    }
}

/// Returns the definition of JobSets.
pub(crate) fn definition(binaries: &Binaries) -> Result<Value> {
    let crd = documents(binaries, CRD)?.into_iter().next();
    crd.context("the manifests do not define JobSet")
}

fn configuration(plane: &ControlPlane, webhooks: u16, probes: u16) -> Value {
    json!({
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": format!("127.0.0.1:{probes}")},
        // Otherwise it would require its own certificates.
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": webhooks, "certDir": plane.serving_certificate()},
        "leaderElection": {"leaderElect": false},
        "internalCertManagement": {"enable": false},
    })
}

/// Returns the published registrations with a URL instead of a Service, to which nothing routes here.
async fn register(plane: &ControlPlane, port: u16, process: &Process) -> Result<()> {
    let authority = STANDARD.encode(&plane.certificates.authority_pem);
    let server = format!("https://127.0.0.1:{port}");
    let client = health::client(&server, &plane.certificates.authority)?;
    for mut configuration in documents(&plane.launcher.binaries, WEBHOOKS)? {
        let kind = text(&configuration, "/kind")?.to_owned();
        patch(plane, &kind, &mut configuration)?;
        let name = format!("jobset-{}", text(&configuration, "/metadata/name")?);
        let metadata = configuration.pointer_mut("/metadata");
        *metadata.context("the registration has no metadata")? = json!({"name": name});
        let webhooks = configuration
            .pointer_mut("/webhooks")
            .and_then(Value::as_array_mut);
        for webhook in webhooks.context("the registration has no webhooks")? {
            let path = text(webhook, "/clientConfig/service/path")?;
            // The controller says that it is ready before it adds its webhooks to the server.
            health::wait("JobSet's webhook", &client, path, || process.still_runs()).await?;
            let url = format!("{server}{path}");
            webhook["clientConfig"] = json!({"url": url, "caBundle": authority});
        }
        let plural = format!("{}s", kind.to_lowercase());
        let resource = Resource::cluster_wide("/apis/admissionregistration.k8s.io/v1", &plural);
        plane
            .api(&resource, "")
            .create(&configuration, &Write::strict())
            .await?
            .accepted()?;
    }
    Ok(())
}

/// Applies patches, which are lists of replaced paths.
fn patch(plane: &ControlPlane, kind: &str, configuration: &mut Value) -> Result<()> {
    for (_, file) in PATCHES.iter().filter(|(of, _)| *of == kind) {
        for operation in documents(&plane.launcher.binaries, file)?
            .iter()
            .filter_map(Value::as_array)
            .flatten()
        {
            let path = text(operation, "/path")?;
            let place = configuration.pointer_mut(path);
            match (text(operation, "/op")?, place, operation.get("value")) {
                ("replace", Some(place), Some(value)) => *place = value.clone(),
                _ => bail!("{file}: {operation} does not replace an existing value"),
            }
        }
    }
    Ok(())
}

fn documents(binaries: &Binaries, file: &str) -> Result<Vec<Value>> {
    let text = binaries.jobset_manifest(file)?;
    let documents = yaml::read(&text).into_iter();
    documents
        .map(|document| Ok(document?.value))
        .collect::<Result<_>>()
        .with_context(|| file.to_owned())
}

fn text<'a>(value: &'a Value, pointer: &str) -> Result<&'a str> {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .with_context(|| format!("no text at {pointer} of {value}"))
}
