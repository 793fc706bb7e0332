//! One command installs Trainyard with JobSet from the package of a release, on a cluster without JobSet. An API server accepts every field,
//! and helm keeps the CRD of JobSet and all JobSets when it uninstalls the release.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use trainyard_api::Inputs;
use trainyard_cluster::{ControlPlane, Helm, Own, Resource, Test, Write, apply};

const NAMESPACE: &str = "kubeflow-system";
const CRD: &str = "jobsets.jobset.x-k8s.io";
const VALUES: [&str; 6] = [
    "--namespace",
    NAMESPACE,
    "--set",
    "image.repository=example.com/trainyard",
    "--set",
    "jobset.install=true",
];

/// Returns the chart as a release packages it.
pub(crate) fn packaged(folder: &Path) -> Result<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/chart-with-jobset.sh");
    let done = Command::new(script).arg(folder).status()?;
    ensure!(done.success());
    Ok(folder.join("trainyard"))
}

/// Runs helm with the permissions of the administrator. Returns its output.
fn run(helm: Helm, plane: &ControlPlane, arguments: &[&str]) -> Result<String> {
    let mut command = helm.command()?;
    command.args(arguments).arg("--kubeconfig");
    let output = command.arg(plane.kubeconfig()).output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{helm:?} {arguments:?}: {error}");
    Ok(String::from_utf8(output.stdout)?)
}

async fn jobset_is_installed_and_its_objects_are_kept(
    Own(plane): &Own<ControlPlane>,
) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let chart = packaged(folder.path())?;
    let chart = chart.to_str().context("the path is not UTF-8")?;
    let (crds, deployments) = (
        Resource::crds(),
        Resource::namespaced("/apis/apps/v1", "deployments"),
    );
    let (crds, deployments) = (plane.api(&crds, ""), plane.api(&deployments, NAMESPACE));
    ensure!(crds.get(CRD).await?.status == 404, "JobSets are defined");
    let job_sets = Resource::jobsets();
    let job_sets = plane.api(&job_sets, "default");
    for helm in Helm::ALL {
        let takes: &[&str] = match helm {
            // It creates the CRDs.
            Helm::Three => &["--create-namespace"],
            Helm::Four => &["--take-ownership", "--force-conflicts"],
        };
        let install = ["install", "trainyard", chart];
        run(helm, plane, &[&install, &VALUES[..], takes].concat())?;
        let controller = deployments.get("jobset-controller").await?.accepted()?;
        let image = &controller["spec"]["template"]["spec"]["containers"][0]["image"];
        ensure!(image == "registry.k8s.io/jobset/jobset:v0.12.0", "{image}");
        let rendered = run(
            helm,
            plane,
            &[
                &["template", "trainyard", chart, "--kube-version=1.33.0"],
                &VALUES[..],
            ]
            .concat(),
        )?;
        let objects = Inputs::read_text("the chart", &rendered)
            .into_result()?
            .objects;
        let of_jobset = objects
            .iter()
            .filter(|object| object.metadata.name.starts_with("jobset"));
        ensure!(of_jobset.count() > 5, "{rendered}");
        for object in &objects {
            apply(plane, object, true).await?;
        }
        let uninstall = ["uninstall", "trainyard", "--namespace", NAMESPACE];
        run(helm, plane, &uninstall)?;
        let left = deployments.get("jobset-controller").await?;
        ensure!(left.status == 404, "{left:?}");
        let crd = crds.get(CRD).await?.accepted()?;
        ensure!(crd["metadata"]["deletionTimestamp"].is_null(), "{CRD}");
        if helm == Helm::Three {
            let kept = json!({
                "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "kept"},
                "spec": {"replicatedJobs": []},
            });
            let created = job_sets.create(&kept, &Write::strict()).await?;
            created.accepted()?;
        }
    }
    job_sets.get("kept").await?.accepted()?;
    Ok(())
}

/// The other tests of charts define JobSets on their control plane.
pub(crate) fn tests() -> Vec<Test<Own<ControlPlane>>> {
    tests![jobset_is_installed_and_its_objects_are_kept]
}
