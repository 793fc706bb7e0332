//! Each version of helm installs, upgrades, rolls back and uninstalls the chart, with the runtimes. After each step but the last, a TrainJob
//! runs to its end with the controller as the chart configures it, and with its rights. The release takes over the CRDs of the Kubeflow Trainer,
//! upgrades them, and nothing deletes them or the TrainJobs.
#![allow(clippy::indexing_slicing)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use trainyard_api::yaml;
use trainyard_cluster::{
    Cluster, Fate, Helm, Oracle, Resource, Test, Trainyard, Write, chart, eventually,
};
use trainyard_schema::documents::Kind;

use crate::common::{Namespace, is, kind};

const NAMESPACE: &str = "kubeflow-system";
const NAME: &str = "kubeflow-trainer-controller-manager";
const RUNTIMES: &str = "kubeflow-trainer-runtimes";
/// The values without a default, and a runtime.
const VALUES: [&str; 4] = [
    "--set",
    "image.repository=trainyard",
    "--set",
    "runtimes.install={torch-distributed}",
];
/// The CRD that the next version of the chart changes, and a column that it adds.
const CRD: &str = "trainjobs.trainer.kubeflow.org";
const COLUMN: &str = "Upgraded";

/// A release of the chart.
struct Release<'a> {
    cluster: &'a Cluster,
    helm: Helm,
    folder: TempDir,
    namespace: Namespace<'a>,
}

impl<'a> Release<'a> {
    async fn new(cluster: &'a Cluster, helm: Helm) -> Result<Self> {
        Ok(Self {
            cluster,
            helm,
            folder: tempfile::tempdir()?,
            namespace: Namespace::new(cluster).await?,
        })
    }

    fn command(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = self.helm.command()?;
        let kubeconfig = self.cluster.plane().kubeconfig();
        command.args(arguments).arg("--kubeconfig").arg(kubeconfig);
        Ok(command)
    }

    /// Runs helm.
    async fn run(&self, arguments: &[&str]) -> Result<()> {
        let mut command = self.command(arguments)?;
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        succeeded(&output).with_context(|| format!("{:?} {arguments:?}", self.helm))
    }

    /// Runs helm, and the hook that applies the runtimes as its pod would.
    async fn run_with_hook(&self, arguments: &[&str]) -> Result<()> {
        self.decide(Fate::Hold);
        tokio::try_join!(self.run(arguments), self.hook())?;
        Ok(())
    }

    /// Sets the fate of the hook's pod. Those of the controller keep running.
    fn decide(&self, fate: Fate) {
        self.cluster.kubelet().decide(NAMESPACE, move |pod| {
            let labels = pod.metadata.labels.as_ref();
            let component = labels.and_then(|labels| labels.get("app.kubernetes.io/component"));
            match component.map(String::as_str) {
                Some("runtimes") => fate,
                _ => Fate::Hold,
            }
        });
    }

    async fn hook(&self) -> Result<()> {
        let jobs = Resource::jobs();
        let jobs = self.cluster.api(&jobs, NAMESPACE);
        let job = jobs.until(RUNTIMES, "the hook runs", |job| {
            job["status"]["active"] == 1
        });
        let job = job.await?;
        let container = &job["spec"]["template"]["spec"]["containers"][0];
        let plane = self.cluster.plane();
        let account = plane.kubeconfig_for_service_account(NAMESPACE, RUNTIMES);
        let mut command = Command::new(Trainyard::program()?);
        command
            .args(strings(&container["args"]))
            .arg("--kubeconfig")
            .arg(account.await?);
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        succeeded(&output).context("the hook")?;
        self.decide(Fate::Succeed);
        Ok(())
    }

    async fn deployment(&self) -> Result<Value> {
        let deployments = Resource::namespaced("/apis/apps/v1", "deployments");
        let deployments = self.cluster.api(&deployments, NAMESPACE);
        Ok(deployments.get(NAME).await?.accepted()?)
    }

    /// Returns the configuration file of the controller.
    async fn config(&self) -> Result<String> {
        let maps = Resource::namespaced("/api/v1", "configmaps");
        let maps = self.cluster.api(&maps, NAMESPACE);
        let map = maps.get("kubeflow-trainer-config").await?.accepted()?;
        let text = map["data"]["controller.yaml"].as_str();
        Ok(text.context("no file")?.to_owned())
    }

    /// Checks that a TrainJob runs to its end with the controller that the Deployment describes.
    async fn runs(&self, name: &str) -> Result<()> {
        let files = self.folder.path().join(name);
        fs::create_dir(&files)?;
        fs::write(files.join("controller.yaml"), self.config().await?)?;
        let deployment = self.deployment().await?;
        let pod = &deployment["spec"]["template"]["spec"];
        let mounts = [("/etc/trainyard", &files), ("/var/trainyard", &files)];
        let place = |argument: String| {
            let mounts = mounts.iter();
            mounts.fold(argument, |argument, (mount, folder)| {
                argument.replace(mount, &folder.display().to_string())
            })
        };
        let arguments = strings(&pod["containers"][0]["args"]);
        let arguments = arguments.into_iter().skip(1).map(place);
        let plane = self.cluster.plane();
        let account = pod["serviceAccountName"].as_str().context("no account")?;
        let account = plane
            .kubeconfig_for_service_account(NAMESPACE, account)
            .await?;
        let controller = Trainyard::start(plane, &account, arguments).await?;
        let spec = json!({
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {"numNodes": 2, "image": "example.com/image"},
        });
        self.namespace.create(name, &spec).await?;
        let jobs = self.namespace.api(&self.namespace.jobs);
        jobs.until(name, "it is complete", |job| is(job, "Complete", "True"))
            .await?;
        controller.stop().await?;
        Ok(())
    }

    /// Returns a copy of the chart without the versions of Kubernetes that it supports, because this API server does not know its own.
    fn chart(&self) -> Result<PathBuf> {
        let copy = self.folder.path().join("chart");
        copied(&chart(), &copy)?;
        replace(
            &copy.join("Chart.yaml"),
            "\nkubeVersion: \">=1.33.0-0\"",
            "",
        )?;
        Ok(copy)
    }

    /// Returns a copy of that chart as its next version.
    fn next(&self, chart: &Path) -> Result<PathBuf> {
        let copy = self.folder.path().join("next");
        copied(chart, &copy)?;
        let version = ("\nversion: 0.1.0", "\nversion: 0.1.1");
        replace(&copy.join("Chart.yaml"), version.0, version.1)?;
        let column = "    - name: Age\n";
        let columns = format!(
            "    - name: {COLUMN}\n      type: date\n      jsonPath: .metadata.creationTimestamp\n{column}"
        );
        replace(&copy.join("files/crds/trainjobs.yaml"), column, &columns)?;
        Ok(copy)
    }

    async fn crd_has_column(&self) -> Result<bool> {
        let crds = Resource::crds();
        let crd = self.cluster.api(&crds, "").get(CRD).await?.accepted()?;
        let columns = &crd["spec"]["versions"][0]["additionalPrinterColumns"];
        Ok(columns.to_string().contains(COLUMN))
    }
}

fn copied(from: &Path, to: &Path) -> Result<()> {
    let copied = Command::new("cp").arg("-r").args([from, to]).status()?;
    ensure!(copied.success());
    Ok(())
}

/// Replaces a text that is in a file once.
fn replace(file: &Path, from: &str, to: &str) -> Result<()> {
    let text = fs::read_to_string(file)?;
    ensure!(text.matches(from).count() == 1, "{from}");
    Ok(fs::write(file, text.replace(from, to))?)
}

fn strings(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

fn succeeded(output: &Output) -> Result<()> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    ensure!(output.status.success(), "{out}{error}");
    Ok(())
}

/// Returns a path as an argument.
fn argument(path: &Path) -> Result<&str> {
    path.to_str().context("the path is not UTF-8")
}

/// Creates the CRDs of the Kubeflow Trainer, or puts them in the place of Trainyard's, and a role with the name of Trainyard's.
async fn leave_the_kubeflow_trainers_objects(cluster: &Cluster) -> Result<()> {
    let write = Write {
        force: true,
        ..Write::by("kubectl")
    };
    let (crds, roles) = (
        Resource::crds(),
        Resource::cluster_wide("/apis/rbac.authorization.k8s.io/v1", "clusterroles"),
    );
    let folder = Oracle::reference()?.join("manifests/base/crds");
    for kind in Kind::ALL {
        let file = folder.join(format!("trainer.kubeflow.org_{}.yaml", kind.plural()));
        let crd = yaml::read(&fs::read_to_string(&file)?).into_iter().next();
        let crd = crd.context("no document")??.value;
        let crds = cluster.api(&crds, "");
        crds.apply(&crd, &write).await?.accepted()?;
    }
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": NAME},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}],
    });
    let roles = cluster.api(&roles, "");
    roles.apply(&role, &write).await?.accepted()?;
    Ok(())
}

/// Checks that the CRDs are Trainyard's, as the API server stores them.
async fn crds_are_ours(cluster: &Cluster) -> Result<()> {
    let crds = Resource::crds();
    for kind in Kind::ALL {
        let ours = kind.crd()?;
        let name = format!("{}.trainer.kubeflow.org", kind.plural());
        let stored = cluster.api(&crds, "").get(&name).await?.accepted()?;
        let versions = |crd: &Value| crd["spec"]["versions"].clone();
        ensure!(versions(&stored) == versions(&ours), "{name}");
        let annotations = ours["metadata"]["annotations"].as_object();
        for (key, value) in annotations.context("no annotations")? {
            ensure!(
                stored["metadata"]["annotations"][key] == *value,
                "{name}: {key}"
            );
        }
    }
    Ok(())
}

async fn steps(cluster: &Cluster, helm: Helm) -> Result<()> {
    leave_the_kubeflow_trainers_objects(cluster).await?;
    let release = Release::new(cluster, helm).await?;
    let now = release.chart()?;
    let next = release.next(&now)?;
    let waits = ["--wait", "--timeout", "5m"];
    let install = [
        "install",
        "trainyard",
        argument(&now)?,
        "--create-namespace",
        "--take-ownership",
    ];
    // Version 4 applies on the server, where the Kubeflow Trainer's installer has the fields.
    let force: &[_] = match helm {
        Helm::Three => &[],
        Helm::Four => &["--force-conflicts"],
    };
    let install = [&install[..], force, &VALUES, &waits].concat();
    release.run_with_hook(&install).await?;
    crds_are_ours(cluster).await?;
    release.runs("installed").await?;

    let changes = [
        "--set",
        "manager.replicas=3,manager.config.controller.concurrency=3",
    ];
    let upgrade = ["upgrade", "trainyard", argument(&next)?];
    let upgrade = [&upgrade[..], &VALUES, &changes, &waits].concat();
    release.run_with_hook(&upgrade).await?;
    ensure!(release.crd_has_column().await?, "the CRD was not upgraded");
    ensure!(release.deployment().await?["spec"]["replicas"] == 3);
    ensure!(release.config().await?.contains("concurrency: 3"));
    release.runs("upgraded").await?;

    let rollback = ["rollback", "trainyard", "1"];
    release.run(&[&rollback[..], &waits].concat()).await?;
    ensure!(!release.crd_has_column().await?);
    ensure!(release.deployment().await?["spec"]["replicas"] == 2);
    ensure!(!release.config().await?.contains("concurrency"));
    release.runs("rolled-back").await?;

    release.run(&["uninstall", "trainyard"]).await?;
    eventually("the pods are gone", async || {
        let pods = Resource::pods();
        let left = cluster.api(&pods, NAMESPACE).items().await?;
        Ok(left.is_empty().then_some(()))
    })
    .await?;
    for kind in Kind::ALL {
        let crds = Resource::crds();
        let name = format!("{}.trainer.kubeflow.org", kind.plural());
        let crd = cluster.api(&crds, "").get(&name).await?.accepted()?;
        ensure!(crd["metadata"]["deletionTimestamp"].is_null(), "{name}");
    }
    let jobs = release.namespace.api(&release.namespace.jobs);
    let jobs = jobs.items().await?;
    ensure!(
        jobs.len() == 3 && jobs.iter().all(|job| is(job, "Complete", "True")),
        "{jobs:#?}"
    );
    let runtimes = kind(Kind::ClusterTrainingRuntime)?;
    let runtime = cluster.api(&runtimes, "").get("torch-distributed").await?;
    runtime.accepted()?;
    // What the hooks need exists only while they run.
    let roles = Resource::cluster_wide("/apis/rbac.authorization.k8s.io/v1", "clusterroles");
    let roles = cluster.api(&roles, "").items().await?;
    let left = roles.iter().find(|role| {
        let name = role["metadata"]["name"].as_str().unwrap_or_default();
        name.starts_with("kubeflow-trainer")
    });
    ensure!(left.is_none(), "{left:#?}");
    Ok(())
}

/// Both versions use the same names, so they take turns. The second one finds the CRDs that the first one kept.
async fn installed_upgraded_rolled_back_and_uninstalled(cluster: &Cluster) -> Result<()> {
    // The cluster has these CRDs, and helm would not take over objects that it did not create.
    let crds = Resource::crds();
    for kind in Kind::ALL {
        let name = format!("{}.trainer.kubeflow.org", kind.plural());
        cluster.api(&crds, "").delete(&name).await?.accepted()?;
    }
    eventually("the CRDs are gone", async || {
        let left = cluster.api(&crds, "").items().await?;
        let ours = left
            .iter()
            .any(|crd| crd["spec"]["group"] == "trainer.kubeflow.org");
        Ok((!ours).then_some(()))
    })
    .await?;
    for helm in Helm::ALL {
        steps(cluster, helm)
            .await
            .with_context(|| format!("{helm:?}"))?;
    }
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Cluster>> {
    vec![Test::new(
        "installed_upgraded_rolled_back_and_uninstalled",
        installed_upgraded_rolled_back_and_uninstalled,
    )]
}
