//! An API server accepts the output of kustomize for deploy/, deploy/runtimes and the documented overlays with chosen runtimes, with plugins and with
//! plugins of registries, including every field, and the result is as the README describes, also in another namespace.

mod plugin_revisions;
mod secrets;
mod snapshots;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use kube::api::PostParams;
use serde_json::{Value, json};
use trainyard_api::{Inputs, Object};
use trainyard_cluster::{
    ControlPlane, Resource, Test, Trainyard, apply, build_plugin, client_of, eventually, kustomized,
};
use trainyard_schema::documents::Kind;

use crate::common::kind;

const NAME: &str = "kubeflow-trainer-controller-manager";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Applies objects in order.
async fn apply_all(plane: &ControlPlane, objects: &[Object]) -> Result<()> {
    for object in objects {
        apply(plane, object, false).await?;
    }
    Ok(())
}

/// Returns an object of the namespace as stored by the API server.
async fn stored(
    plane: &ControlPlane,
    kind: [&str; 2],
    namespace: &str,
    name: &str,
) -> Result<Value> {
    let resource = Resource::namespaced(kind[0], kind[1]);
    let api = plane.api(&resource, namespace);
    Ok(api.get(name).await?.accepted()?)
}

const DEPLOYMENTS: [&str; 2] = ["/apis/apps/v1", "deployments"];
const CONFIG_MAPS: [&str; 2] = ["/api/v1", "configmaps"];

/// Returns the text of the ConfigMap that a volume of the Deployment mounts.
async fn mounted(
    plane: &ControlPlane,
    deployment: &Value,
    volume: &str,
    key: &str,
) -> Result<String> {
    let volumes = deployment["spec"]["template"]["spec"]["volumes"].as_array();
    let mut volumes = volumes.into_iter().flatten();
    let volume = volumes
        .find(|one| one["name"] == volume)
        .context("no such volume")?;
    let name = volume["configMap"]["name"]
        .as_str()
        .context("no ConfigMap")?;
    let namespace = deployment["metadata"]["namespace"].as_str();
    let map = stored(plane, CONFIG_MAPS, namespace.context("no namespace")?, name).await?;
    let text = map["data"][key].as_str();
    Ok(text.with_context(|| format!("{map:#}"))?.to_owned())
}

/// Returns whether the controller's ServiceAccount has a permission.
async fn may(plane: &ControlPlane, namespace: &str, what: &Value) -> Result<bool> {
    let account = plane
        .kubeconfig_for_service_account(namespace, NAME)
        .await?;
    let reviews: kube::Api<SelfSubjectAccessReview> = kube::Api::all(client_of(&account).await?);
    let review = json!({"spec": {"resourceAttributes": what}});
    let review = serde_json::from_value(review)?;
    let answer = reviews.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// Checks that the objects in this namespace work together, for the ServiceAccount there.
async fn is_whole(plane: &ControlPlane, namespace: &str) -> Result<()> {
    let wanted = fs::read_to_string(root().join("deploy/controller.yaml"))?;
    is_whole_with(plane, namespace, "trainyard", &wanted).await
}

async fn is_whole_with(
    plane: &ControlPlane,
    namespace: &str,
    image: &str,
    configuration: &str,
) -> Result<()> {
    let deployment = stored(plane, DEPLOYMENTS, namespace, NAME).await?;
    let pod = &deployment["spec"]["template"]["spec"];
    let image = format!("{image}:{}", env!("CARGO_PKG_VERSION"));
    ensure!(pod["containers"][0]["image"] == image.as_str(), "{pod:#}");
    let config = mounted(plane, &deployment, "config", "controller.yaml").await?;
    ensure!(config == configuration, "{config}");
    stored(plane, ["/api/v1", "services"], namespace, NAME).await?;
    let public = stored(plane, CONFIG_MAPS, namespace, "kubeflow-trainer-public").await?;
    ensure!(public["data"].is_object(), "{public:#}");
    for (what, wanted) in [
        (
            json!({"group": "trainer.kubeflow.org", "resource": "trainjobs", "verb": "watch"}),
            true,
        ),
        (
            json!({"group": "coordination.k8s.io", "resource": "leases", "verb": "create", "namespace": namespace}),
            true,
        ),
        (
            json!({"group": "", "resource": "secrets", "verb": "list", "namespace": namespace}),
            false,
        ),
    ] {
        eventually("the roles hold", async || {
            Ok((may(plane, namespace, &what).await? == wanted).then_some(()))
        })
        .await
        .with_context(|| format!("{what} in {namespace}"))?;
    }
    Ok(())
}

async fn deploy_and_the_runtimes(plane: &ControlPlane) -> Result<()> {
    apply_all(plane, &kustomized(&root().join("deploy"))?).await?;
    is_whole(plane, "kubeflow-system").await?;
    secrets::of_train_jobs_are_the_controllers(plane, "kubeflow-system").await?;
    snapshots::of_train_jobs_are_the_controllers(plane, "kubeflow-system").await?;
    plugin_revisions::are_the_controllers(plane, "kubeflow-system").await?;
    let runtimes = kustomized(&root().join("deploy/runtimes"))?;
    eventually("the runtimes' kind is served", async || {
        Ok(apply_all(plane, &runtimes).await.ok())
    })
    .await?;
    let resource = kind(Kind::ClusterTrainingRuntime)?;
    let runtime = plane.api(&resource, "").get("torch-distributed").await?;
    runtime.accepted()?;
    ensure!(by_name(&runtimes) == by_name(&printed_runtimes()?));
    Ok(())
}

/// Returns the values of cluster-scoped objects by name.
fn by_name(objects: &[Object]) -> BTreeMap<&str, &Value> {
    let objects = objects.iter();
    objects
        .map(|object| (object.metadata.name.as_str(), &object.value))
        .collect()
}

/// Returns the runtimes that the program prints.
fn printed_runtimes() -> Result<Vec<Object>> {
    let printed = trainyard(&["runtimes", "--all"], &root())?;
    Ok(Inputs::read_text("runtimes", &printed)
        .into_result()?
        .objects)
}

async fn the_readmes_choice_of_runtimes(plane: &ControlPlane) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    copy_of_deploy(scratch.path())?;
    let folder = scratch.path().join("runtimes");
    fs::create_dir(&folder)?;
    let overlay = kustomization_of("docs/runtimes.md", "## Choose runtimes")?;
    fs::write(folder.join("kustomization.yaml"), overlay)?;
    let chosen = kustomized(&folder)?;
    let mut wanted = printed_runtimes()?;
    wanted.retain(|runtime| {
        let name = &runtime.metadata.name;
        !["flux-", "mlx-", "torchtune-"]
            .iter()
            .any(|start| name.starts_with(start))
    });
    let names = by_name(&chosen).into_keys().collect::<Vec<_>>();
    ensure!(
        names == by_name(&wanted).into_keys().collect::<Vec<_>>(),
        "{names:?}"
    );
    let torch = by_name(&chosen)["torch-distributed"].to_string();
    ensure!(
        torch.contains("pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime"),
        "{torch}"
    );
    apply_all(plane, &chosen).await
}

/// Copies deploy/, the chart, and the plugins with their runtimes, into a temporary folder.
fn copy_of_deploy(to: &Path) -> Result<PathBuf> {
    let copied = Command::new("cp")
        .arg("-r")
        .args(["charts", "deploy", "plugins"].map(|folder| root().join(folder)))
        .arg(to)
        .status()?;
    ensure!(copied.success());
    Ok(to.join("deploy"))
}

/// Returns the kustomization below a heading of a page.
fn kustomization_of(page: &str, heading: &str) -> Result<String> {
    block_of(page, heading, "apiVersion: kustomize.config.k8s.io/v1beta1")
}

/// Returns the first block below a heading of a page that begins with this line.
fn block_of(page: &str, heading: &str, beginning: &str) -> Result<String> {
    let text = fs::read_to_string(root().join(page))?;
    let (_, section) = text.split_once(heading).context("no such heading")?;
    let (before, rest) = section.split_once(beginning).context("no such block")?;
    let indent = before.lines().last().unwrap_or_default();
    let (block, _) = rest.split_once("```").context("a block without an end")?;
    let lines = block
        .lines()
        .map(|line| line.strip_prefix(indent).unwrap_or(line));
    let lines: Vec<_> = lines.collect();
    Ok(format!("{beginning}{}\n", lines.join("\n").trim_end()))
}

/// Returns the standard output of the program, which runs in a folder.
fn trainyard(arguments: &[&str], folder: &Path) -> Result<String> {
    let output = Command::new(Trainyard::program()?)
        .args(arguments)
        .current_dir(folder)
        .output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns the output of `trainyard rbac` for the plugins of the folder.
fn roles(folder: &Path, format: &str) -> Result<String> {
    let plugins = ["--plugin-dir", "plugins", "--policy", "policy.yaml"];
    trainyard(
        &[&["rbac", "--output", format], &plugins[..]].concat(),
        folder,
    )
}

async fn the_documented_overlay_with_plugins(plane: &ControlPlane) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    copy_of_deploy(scratch.path())?;
    let folder = scratch.path().join("deploy-with-plugins");
    fs::create_dir_all(folder.join("plugins"))?;
    let plugin = root().join("tests/plugins/flavors");
    let policy = fs::read_to_string(plugin.join("policy.yaml"))?;
    fs::write(folder.join("policy.yaml"), &policy)?;
    build_plugin(&plugin, &folder.join("plugins/flavors.wasm"), &[])?;
    fs::write(folder.join("roles.yaml"), roles(&folder, "yaml")?)?;
    let overlay = kustomization_of("docs/add-a-plugin.md", "# Add a plugin")?;
    fs::write(folder.join("kustomization.yaml"), overlay)?;

    apply_all(plane, &kustomized(&folder)?).await?;
    is_whole(plane, "kubeflow-system").await?;
    let deployment = stored(plane, DEPLOYMENTS, "kubeflow-system", NAME).await?;
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let has =
        |list: &Value, wanted: Value| list.as_array().is_some_and(|list| list.contains(&wanted));
    for argument in [
        "--config=/etc/trainyard/controller.yaml",
        "--plugin-dir=/plugins",
        "--policy=/policy/policy.yaml",
    ] {
        ensure!(has(&container["args"], json!(argument)), "{container:#}");
    }
    for mount in ["plugins", "policy"] {
        let mount = json!({"name": mount, "mountPath": format!("/{mount}"), "readOnly": true});
        ensure!(has(&container["volumeMounts"], mount), "{container:#}");
    }
    let volumes = deployment["spec"]["template"]["spec"]["volumes"].as_array();
    let mut volumes = volumes.into_iter().flatten();
    let image = volumes.find(|volume| volume["name"] == "plugins");
    let image = image.context("no volume of plugins")?;
    ensure!(
        image["image"]["reference"] == "REGISTRY/our-plugins:1",
        "{image:#}"
    );
    ensure!(mounted(plane, &deployment, "policy", "policy.yaml").await? == policy);
    let printed: Value = serde_json::from_str(&roles(&folder, "json")?)?;
    for role in printed["items"].as_array().context("no list")? {
        let plural = format!(
            "{}s",
            role["kind"].as_str().unwrap_or_default().to_lowercase()
        );
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        let (resource, namespace) = match role["metadata"]["namespace"].as_str() {
            Some(namespace) => (Resource::namespaced(rbac, &plural), namespace),
            None => (Resource::cluster_wide(rbac, &plural), ""),
        };
        let stored = plane
            .api(&resource, namespace)
            .get(NAME)
            .await?
            .accepted()?;
        ensure!(stored["rules"] == role["rules"], "{stored:#}\n{role:#}");
    }
    let flavors =
        json!({"group": "example.com", "resource": "flavors", "verb": "get", "name": "default"});
    eventually("the plugin's rights hold", async || {
        Ok(may(plane, "kubeflow-system", &flavors).await?.then_some(()))
    })
    .await
}

async fn the_documented_overlay_with_plugins_of_registries(plane: &ControlPlane) -> Result<()> {
    const PAGE: &str = "docs/plugins-in-the-cluster.md";
    const HEADING: &str = "## Before you begin";
    let scratch = tempfile::tempdir()?;
    copy_of_deploy(scratch.path())?;
    let folder = scratch.path().join("deploy-with-registry");
    fs::create_dir(&folder)?;
    let configuration = block_of(PAGE, HEADING, "apiVersion: trainyard.dev/v1alpha1")?;
    fs::write(folder.join("controller.yaml"), &configuration)?;
    let printed = trainyard(&["rbac", "--plugins-source=Cluster"], &folder)?;
    fs::write(folder.join("roles.yaml"), printed)?;
    let collecting = block_of(PAGE, HEADING, "apiVersion: rbac.authorization.k8s.io/v1")?;
    fs::write(folder.join("plugin-roles.yaml"), collecting)?;
    let overlay = kustomization_of(PAGE, HEADING)?;
    fs::write(folder.join("kustomization.yaml"), overlay)?;

    apply_all(plane, &kustomized(&folder)?).await?;
    is_whole_with(
        plane,
        "kubeflow-system",
        "REGISTRY/trainyard",
        &configuration,
    )
    .await?;
    let file = folder.join("controller.yaml");
    let file = file.to_str().context("a path that is not UTF-8")?;
    trainyard(&["controller", "--print-config", "--config", file], &folder)?;
    let deployment = stored(plane, DEPLOYMENTS, "kubeflow-system", NAME).await?;
    let pod = &deployment["spec"]["template"]["spec"];
    let secret = json!({"secretName": "plugin-registry", "defaultMode": 420,
        "items": [{"key": ".dockerconfigjson", "path": "config.json"}]});
    let has = |volume: &Value| volume["name"] == "registry-config" && volume["secret"] == secret;
    ensure!(
        pod["volumes"]
            .as_array()
            .is_some_and(|all| all.iter().any(has)),
        "{pod:#}"
    );
    let revisions =
        json!({"group": "trainyard.dev", "resource": "pluginrevisions", "verb": "create"});
    eventually("the controller's rights hold", async || {
        Ok(may(plane, "kubeflow-system", &revisions)
            .await?
            .then_some(()))
    })
    .await
}

async fn another_namespace(plane: &ControlPlane) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let deploy = copy_of_deploy(scratch.path())?;
    let file = deploy.join("kustomization.yaml");
    let text = fs::read_to_string(&file)?;
    let other = text.replace(
        "\nnamespace: kubeflow-system\n",
        "\nnamespace: ml-platform\n",
    );
    ensure!(other != text, "{text}");
    fs::write(&file, other)?;
    let objects = kustomized(&deploy)?;
    for object in &objects {
        let text = object.value.to_string();
        let names_it =
            text.contains("kubeflow-system") && object.kind != "CustomResourceDefinition";
        ensure!(!names_it, "{}: {text}", object.location());
    }
    apply_all(plane, &objects).await?;
    is_whole(plane, "ml-platform").await?;
    secrets::of_train_jobs_are_the_controllers(plane, "ml-platform").await?;
    snapshots::of_train_jobs_are_the_controllers(plane, "ml-platform").await?;
    plugin_revisions::are_the_controllers(plane, "ml-platform").await
}

/// Runs the checks sequentially, because they share cluster-scoped objects.
async fn output_of_kustomize_installs(plane: &ControlPlane) -> Result<()> {
    deploy_and_the_runtimes(plane).await.context("deploy/")?;
    the_readmes_choice_of_runtimes(plane)
        .await
        .context("the choice of runtimes")?;
    the_documented_overlay_with_plugins(plane)
        .await
        .context("the overlay")?;
    the_documented_overlay_with_plugins_of_registries(plane)
        .await
        .context("the overlay with plugins of registries")?;
    another_namespace(plane).await.context("another namespace")
}

pub(crate) fn tests() -> Vec<Test> {
    tests![output_of_kustomize_installs]
}
