//! One `helm install` declares plugins: its Job applies the PolicyPlugins with permissions for their names alone, and Kubernetes aggregates the
//! roles of plugins to the controller's. PolicyPlugins and their CRD stay when the release is uninstalled.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::api::PostParams;
use serde_json::{Value, json};
use trainyard_cluster::{Cluster, Helm, Resource, Test, eventually};

use crate::common::charts::{self, Charts, MANAGER, NAMESPACE};

const JOB: &str = "kubeflow-trainer-plugins";
const API: &str = "/apis/trainyard.dev/v1alpha1";
const CRD: &str = "policyplugins.trainyard.dev";
const VALUES: &str = r#"
image: {repository: trainyard}
plugins:
  source: Cluster
  declared:
  - {name: jax, spec: {disabled: true}}
  - {name: xgboost, spec: {facts: {xgboost/a: b}}}
  roles: |
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRole
    metadata: {name: "trainyard:plugin:tracer"}
    rules:
    - {apiGroups: [""], resources: [nodes], verbs: [list, watch]}
"#;

/// Returns whether the controller's ServiceAccount may list Nodes.
async fn may_list_nodes(cluster: &Cluster) -> Result<bool> {
    let review = json!({"spec": {
        "user": format!("system:serviceaccount:{NAMESPACE}:{MANAGER}"),
        "resourceAttributes": {"resource": "nodes", "verb": "list"},
    }});
    let review: SubjectAccessReview = serde_json::from_value(review)?;
    let reviews = kube::Api::all(cluster.plane().client().clone());
    let answer: SubjectAccessReview = reviews.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// Runs what the pod of the Job would run, with its file and its ServiceAccount.
async fn apply(charts: &Charts<'_>, pod: &Value) -> Result<()> {
    let maps = Resource::namespaced("/api/v1", "configmaps");
    let map = charts
        .cluster
        .api(&maps, NAMESPACE)
        .get(JOB)
        .await?
        .accepted()?;
    let text = map["data"]["objects.yaml"].as_str().context("no file")?;
    fs::create_dir_all(charts.path("objects"))?;
    fs::write(charts.path("objects/objects.yaml"), text)?;
    let arguments = pod["containers"][0]["args"]
        .as_array()
        .context("no arguments")?;
    let arguments: Vec<_> = arguments.iter().filter_map(Value::as_str).collect();
    let folder = charts.path("objects").display().to_string();
    let command =
        format!("trainyard {}", arguments.join(" ")).replace("/objects/", &format!("{folder}/"));
    let account = charts
        .cluster
        .plane()
        .kubeconfig_for_service_account(NAMESPACE, JOB)
        .await?;
    // The first attempt can be before the CRD is established.
    eventually("the Job applies the PolicyPlugins", async || {
        match charts.shell_as(&account, &command).await {
            Ok(_) => Ok(Some(())),
            Err(error) if format!("{error:#}").contains("is not served") => Ok(None),
            Err(error) => Err(error),
        }
    })
    .await?;
    // The account can declare no other plugin.
    let other = charts.path("other.yaml");
    fs::write(&other, text.replace("name: jax", "name: torch"))?;
    let refused = charts
        .shell_as(
            &account,
            &format!("trainyard plugin apply -f {}", other.display()),
        )
        .await;
    let error = format!(
        "{:#}",
        refused.err().context("the Job declares other plugins")?
    );
    ensure!(
        error.contains("torch cannot be applied") && error.contains("forbidden"),
        "{error}"
    );
    Ok(())
}

async fn steps(cluster: &Cluster, helm: Helm) -> Result<()> {
    let charts = Charts::new(cluster, helm)?;
    fs::write(charts.path("values.yaml"), VALUES)?;
    let install = [
        "install",
        "trainyard",
        "charts/trainyard",
        "--create-namespace",
        "--values",
        "values.yaml",
    ];
    let install = [&install[..], charts.taking_over()].concat();
    let installs = charts.helm(&install);
    charts
        .with_hook(installs, JOB, async |pod| apply(&charts, &pod).await)
        .await?;
    let plugins = Resource::cluster_wide(API, "policyplugins");
    let plugins = cluster.api(&plugins, "");
    let jax = plugins.get("jax").await?.accepted()?;
    ensure!(jax["spec"]["disabled"] == true, "{jax:#}");
    let items = plugins.items().await?;
    ensure!(items.len() == 2, "{items:#?}");
    let controller = charts.trainyard().await?;
    for (name, status, reason) in [("xgboost", "True", "Running"), ("jax", "False", "Disabled")] {
        let is_so = |plugin: &Value| {
            let mut conditions = plugin["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten();
            conditions.any(|it| {
                it["type"] == "Active" && it["status"] == status && it["reason"] == reason
            })
        };
        plugins
            .until(name, "the PolicyPlugin is used", is_so)
            .await?;
    }
    controller.stop().await?;
    eventually("the role of the plugin is aggregated", async || {
        Ok(may_list_nodes(cluster).await?.then_some(()))
    })
    .await?;

    charts.helm(&["uninstall", "trainyard"]).await?;
    eventually("the permissions are gone", async || {
        Ok((!may_list_nodes(cluster).await?).then_some(()))
    })
    .await?;
    // Kubernetes' controller has not created the role again.
    let roles = Resource::cluster_wide("/apis/rbac.authorization.k8s.io/v1", "clusterroles");
    let role = cluster
        .api(&roles, "")
        .get(&format!("{MANAGER}-plugins"))
        .await?;
    ensure!(role.status.as_u16() == 404, "{role:?}");
    let crds = Resource::crds();
    let crd = cluster.api(&crds, "").get(CRD).await?.accepted()?;
    ensure!(crd["metadata"]["deletionTimestamp"].is_null(), "{crd:#}");
    for name in ["jax", "xgboost"] {
        plugins.get(name).await?.accepted()?;
        plugins.delete(name).await?.accepted()?;
    }
    charts.until_no_pods().await
}

async fn plugins_are_declared_by_an_installation(cluster: &Cluster) -> Result<()> {
    charts::delete_crds(cluster.plane()).await?;
    for helm in Helm::ALL {
        steps(cluster, helm)
            .await
            .with_context(|| format!("{helm:?}"))?;
    }
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Cluster>> {
    tests![plugins_are_declared_by_an_installation]
}
