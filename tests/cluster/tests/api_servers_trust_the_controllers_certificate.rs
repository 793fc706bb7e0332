//! With `certManagement.enable`, an API server calls the webhooks of the chart, and trusts the certificate that the controller creates with the
//! rights of the chart: after the installation, after its Secret was deleted, and after the authorities were removed from a configuration.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_api::Inputs;
use trainyard_cluster::{
    ControlPlane, Helm, Install, Port, Resource, Test, Trainyard, Write, apply, eventually, install,
};
use trainyard_schema::documents::Kind;

const NAMESPACE: &str = "kubeflow-system";
const ACCOUNT: &str = "kubeflow-trainer-controller-manager";
const SECRET: &str = "kubeflow-trainer-webhook-cert";
const VALUES: [&str; 4] = [
    "--set",
    "image.repository=example.com/trainyard",
    "--set",
    "crds.enabled=false,manager.config.certManagement.enable=true",
];

fn resource(plural: &str) -> Resource {
    match plural {
        "secrets" => Resource::namespaced("/api/v1", plural),
        "namespaces" => Resource::namespaces(),
        "clustertrainingruntimes" => {
            Resource::cluster_wide("/apis/trainer.kubeflow.org/v1alpha1", plural)
        }
        _ => Resource::cluster_wide("/apis/admissionregistration.k8s.io/v1", plural),
    }
}

/// Applies the chart. The Service names this machine, because no proxy runs that knows its pods. Returns the configuration file.
async fn apply_chart(plane: &ControlPlane, port: u16) -> Result<String> {
    let mut config = None;
    for (template, documents) in Helm::Four.template(&VALUES)? {
        for mut object in Inputs::read_text(&template, &documents.join("---\n"))
            .into_result()?
            .objects
        {
            let value = &mut object.value;
            match object.kind.as_str() {
                "Deployment" | "PodDisruptionBudget" | "NetworkPolicy" => continue,
                "Service" if object.metadata.name == "kubeflow-trainer-webhooks" => {
                    value["spec"] = json!({"type": "ExternalName", "externalName": "localhost"});
                }
                "ConfigMap" => {
                    let text = value["data"]["controller.yaml"].as_str();
                    config = config.or_else(|| text.map(str::to_owned));
                }
                "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
                    for webhook in value["webhooks"].as_array_mut().into_iter().flatten() {
                        webhook["clientConfig"]["service"]["port"] = json!(port);
                    }
                }
                _ => {}
            }
            apply(plane, &object, false).await?;
        }
    }
    config.context("the chart has no configuration file")
}

/// A runtime that the webhook refuses, and that the CRD accepts.
fn invalid() -> Value {
    let container = json!({"name": "other", "image": "example.com/image"});
    json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime", "metadata": {"name": "invalid"},
        "spec": {"template": {"spec": {"replicatedJobs": [{
            "name": "node", "replicas": 1,
            "template": {
                "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                "spec": {"template": {"spec": {"containers": [container]}}},
            },
        }]}}},
    })
}

/// Waits until an API server calls a webhook and trusts it. Returns what it answered until then.
async fn webhook_answers(plane: &ControlPlane) -> Result<Vec<String>> {
    let runtimes = resource("clustertrainingruntimes");
    let (mut others, write) = (Vec::new(), Write::strict());
    eventually("the webhook refuses a runtime", async || {
        let answer = plane.api(&runtimes, "").create(&invalid(), &write).await?;
        let message = answer.refused()?.message;
        let is_answer = message.contains("denied the request");
        if !is_answer {
            others.push(message);
        }
        Ok(is_answer.then_some(()))
    })
    .await?;
    Ok(others)
}

async fn certificate_is_trusted(plane: &ControlPlane) -> Result<()> {
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let namespaces = resource("namespaces");
    let namespaces = plane.api(&namespaces, "");
    namespaces.create(&namespace, &Write::strict()).await?;
    for kind in Kind::ALL {
        install(plane, &kind.crd()?, Install::ServerSide).await?;
    }
    let port = Port::find()?;
    let config = plane.folder().join("controller.yaml");
    fs::write(&config, apply_chart(plane, port.number()).await?)?;
    let account = plane.kubeconfig_for_service_account(NAMESPACE, ACCOUNT);
    let account = account.await?;
    let arguments = [
        format!("--config={}", config.display()),
        format!("--webhook-bind-address=127.0.0.1:{}", port.number()),
    ];
    let controller = Trainyard::start_unready(plane, &account, &arguments)?;
    eventually("the certificate is ready", async || {
        let answer = controller.readiness().await.ok();
        Ok(answer.filter(|(_, reasons)| !reasons.contains("certificate")))
    })
    .await?;
    let refused = webhook_answers(plane).await?;
    ensure!(refused.is_empty(), "{refused:?}");

    // The controller may create this Secret again, and no request is refused meanwhile.
    let secrets = resource("secrets");
    let secrets = plane.api(&secrets, NAMESPACE);
    let before = secrets.get(SECRET).await?.accepted()?;
    secrets.delete(SECRET).await?.accepted()?;
    let refused = webhook_answers(plane).await?;
    ensure!(refused.is_empty(), "{refused:?}");
    let again = secrets.until(SECRET, "it is created again", |secret| {
        secret["data"]["ca.key"].is_string()
    });
    ensure!(again.await?["data"] == before["data"]);

    for (plural, name) in [
        (
            "mutatingwebhookconfigurations",
            "defaulter.trainer.kubeflow.org",
        ),
        (
            "validatingwebhookconfigurations",
            "validator.trainer.kubeflow.org",
        ),
    ] {
        let resource = resource(plural);
        let configurations = plane.api(&resource, "");
        let bundles = |configuration: &Value| {
            let webhooks = configuration["webhooks"].as_array().into_iter().flatten();
            let bundles = webhooks.map(|webhook| webhook["clientConfig"]["caBundle"].clone());
            bundles.collect::<Vec<_>>()
        };
        let mut found = configurations.get(name).await?.accepted()?;
        let wanted = bundles(&found);
        ensure!(wanted.iter().all(Value::is_string), "{found:#}");
        // Helm does not own the field, so it does not overwrite it.
        let managers = found["metadata"]["managedFields"].as_array();
        let owner = managers
            .into_iter()
            .flatten()
            .find(|entry| entry["fieldsV1"].to_string().contains("f:caBundle"));
        let owner = owner.map(|entry| entry["manager"].clone());
        ensure!(owner == Some(json!("trainyard-certificates")), "{owner:?}");
        for webhook in found["webhooks"].as_array_mut().into_iter().flatten() {
            webhook["clientConfig"]["caBundle"] = json!("");
        }
        let somebody = Write::by("somebody");
        let written = configurations.replace(&found, &somebody);
        written.await?.accepted()?;
        let repaired = configurations.until(name, "the authority is back", |configuration| {
            bundles(configuration) == wanted
        });
        repaired.await?;
    }
    webhook_answers(plane).await?;
    // Its rights suffice for watches, so it need not look again and again.
    for plural in [
        "secrets",
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
    ] {
        let labels = format!("verb=\"watch\",kind=\"{plural}\",code=\"200\"");
        let watched = controller
            .metric("trainyard_api_calls_total", &labels)
            .await?;
        ensure!(watched >= 1.0, "{plural}");
    }
    let (_, reasons) = controller.readiness().await?;
    ensure!(!reasons.contains("certificate"), "{reasons}");
    controller.stop().await?;
    Ok(())
}

pub(crate) fn tests() -> Vec<Test> {
    tests![certificate_is_trusted]
}
