//! The test plugin that looks objects up, with a controller that loads it and has only the roles that `trainyard rbac` prints for it.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{
    Api, ControlPlane, Install, Resource, Shared, Trainyard, Write, build_plugin, define_kinds,
    deploy, install,
};
use trainyard_schema::documents::Kind;

use super::kind;

/// The folder of the plugin's crate.
fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/flavors")
}

/// The policy file with the grants for the plugin's lookups.
pub(crate) fn policy() -> [OsString; 2] {
    ["--policy".into(), policy_file().into()]
}

/// Returns the path of the policy file.
pub(crate) fn policy_file() -> PathBuf {
    source().join("policy.yaml")
}

/// Builds the plugin into a folder of that name, and returns it.
fn build(folder: &str) -> Result<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    std::fs::create_dir_all(&folder)?;
    build_plugin(&source(), &folder.join("flavors.wasm"), &[])?;
    Ok(folder)
}

/// Starts a controller with the plugins of a folder, under a ServiceAccount with exactly the roles for them.
async fn start(plane: &ControlPlane, folder: &Path) -> Result<Trainyard> {
    let account = deploy(plane).await?;
    let folder: OsString = folder.into();
    let mut rbac = Command::new(Trainyard::program()?);
    rbac.args(["rbac", "--output=json", "--plugin-dir"])
        .arg(&folder)
        .args(policy());
    let printed: Value = serde_json::from_slice(&succeeded(rbac.output()?)?)?;
    let objects = printed["items"]
        .as_array()
        .context("the output is not a list")?;
    let role = objects
        .iter()
        .find(|object| object["kind"] == "ClusterRole");
    let role = role.context("no ClusterRole")?;
    let rules = role["rules"].to_string();
    ensure!(
        rules.contains("\"flavors\"") && rules.contains("\"zones\""),
        "{rules}"
    );
    let roles = Resource::cluster_wide("/apis/rbac.authorization.k8s.io/v1", "clusterroles");
    let name = role["metadata"]["name"].as_str().context("no name")?;
    let rules = json!({"rules": role["rules"]});
    plane
        .api(&roles, "")
        .merge(name, &rules, &Write::strict())
        .await?
        .accepted()?;
    let arguments = [OsString::from("--plugin-dir"), folder];
    let arguments = arguments.into_iter().chain(policy());
    Trainyard::start(plane, &account, arguments).await
}

fn succeeded(output: Output) -> Result<Vec<u8>> {
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{reported}");
    Ok(output.stdout)
}

/// Returns the definition of a namespaced kind with arbitrary fields.
pub(crate) fn definition(group: &str, kind: &str, plural: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// A control plane with the controller, on which JobSets are only stored.
pub(crate) struct WithFlavors {
    pub(crate) plane: ControlPlane,
    pub(crate) controller: Trainyard,
}

impl Shared for WithFlavors {
    fn start() -> Result<Self> {
        let folder = build("flavors")?;
        let plane = ControlPlane::start()?;
        let controller = plane.block_on(async {
            define_kinds(&plane).await?;
            let flavor = definition("example.com", "Flavor", "flavors");
            install(&plane, &flavor, Install::ServerSide).await?;
            start(&plane, &folder).await
        })?;
        Ok(Self { plane, controller })
    }

    fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    fn still_runs(&self) -> Result<()> {
        self.plane.still_runs()?;
        self.controller.process().still_runs()
    }
}

/// A namespace with a runtime that enables the plugin.
pub(crate) struct FlavorNamespace<'a> {
    plane: &'a ControlPlane,
    namespace: String,
    pub(crate) jobs: Resource,
    runtimes: Resource,
    pub(crate) job_sets: Resource,
}

impl<'a> FlavorNamespace<'a> {
    pub(crate) async fn new(plane: &'a ControlPlane) -> Result<Self> {
        let namespace = Self {
            plane,
            namespace: plane.new_namespace().await?,
            jobs: kind(Kind::TrainJob)?,
            runtimes: kind(Kind::TrainingRuntime)?,
            job_sets: Resource::jobsets(),
        };
        let runtime = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainingRuntime", "metadata": {"name": "flavored"},
            "spec": {"plugins": [{"name": "flavors"}], "template": {"spec": {"replicatedJobs": [{
                "name": "node",
                "template": {"spec": {"template": {"spec": {"containers": [{"name": "node", "image": "example.com/image"}]}}}},
            }]}}},
        });
        namespace.create(&namespace.runtimes, &runtime).await?;
        Ok(namespace)
    }

    pub(crate) fn api(&'a self, resource: &'a Resource) -> Api<'a> {
        self.plane.api(resource, &self.namespace)
    }

    pub(crate) async fn create(&self, resource: &Resource, object: &Value) -> Result<()> {
        let made = self.api(resource).create(object, &Write::strict()).await?;
        made.accepted()?;
        Ok(())
    }

    /// Creates a TrainJob whose label selects the lookup of its plugin.
    pub(crate) async fn job(&self, name: &str, suspend: bool, label: (&str, &str)) -> Result<()> {
        let job = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": name, "labels": {format!("example.com/{}", label.0): label.1}},
            "spec": {"suspend": suspend, "runtimeRef": {"kind": "TrainingRuntime", "name": "flavored"}},
        });
        self.create(&self.jobs, &job).await
    }

    /// Waits until the JobSet's pods have this label, or do not have it if the value is `None`.
    pub(crate) async fn until_labeled(
        &self,
        name: &str,
        label: &str,
        value: Option<&str>,
    ) -> Result<()> {
        let what = format!("pods with the label {label}={value:?}");
        let job_sets = self.api(&self.job_sets);
        let found = job_sets.until(name, &what, |found| pod_label(found, label) == value);
        found.await.map(drop)
    }
}

/// Returns the label of the pods of a JobSet.
pub(crate) fn pod_label<'v>(job_set: &'v Value, label: &str) -> Option<&'v str> {
    let pods = &job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"];
    pods["metadata"]["labels"][format!("example.com/{label}")].as_str()
}

/// Returns the Flavor that the plugin looks up.
pub(crate) fn flavor(gpu: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Flavor", "metadata": {"name": "default"}, "spec": {"gpu": gpu}})
}
