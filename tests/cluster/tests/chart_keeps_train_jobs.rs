//! Each version of helm installs, upgrades, rolls back and uninstalls the chart, with the runtimes: once with the default values, and once
//! with webhooks, a certificate of the controller, and a server for the progress of pods. After each step but the last, a TrainJob runs to its
//! end with the controller as the chart configures it, and with its rights. The release takes over the CRDs of the Kubeflow Trainer, upgrades
//! them, and nothing deletes them or the TrainJobs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_api::yaml;
use trainyard_cluster::{
    Cluster, Helm, Oracle, Port, Resource, Test, Trainyard, Write, eventually,
};
use trainyard_schema::documents::Kind;

use crate::common::{
    Namespace,
    charts::{self, Charts, MANAGER, copied, replace},
    is, kind,
};

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
/// A runtime that the CRD accepts, and a webhook refuses: it has no container `node`.
const INVALID: &str = "invalid";

/// A release of the chart.
struct Release<'a> {
    charts: Charts<'a>,
    namespace: Namespace<'a>,
    /// The port of the server for progress, if there are webhooks and this server.
    progress: Option<Port>,
}

impl<'a> Release<'a> {
    async fn new(cluster: &'a Cluster, helm: Helm, progress: bool) -> Result<Self> {
        Ok(Self {
            charts: Charts::new(cluster, helm)?,
            namespace: Namespace::new(cluster).await?,
            progress: progress.then(Port::find).transpose()?,
        })
    }

    /// Runs helm and the hook. Checks that a TrainJob runs to its end with the controller that then runs.
    async fn install(&self, arguments: &[&[&str]], name: &str) -> Result<()> {
        let mut values = VALUES.map(str::to_owned).to_vec();
        if let Some(port) = &self.progress {
            let port = port.number();
            values.push("--set".to_owned());
            values.push(format!(
                "manager.config.certManagement.enable=true,manager.config.featureGates.TrainJobStatus=true,\
                 manager.config.statusServer.port={port}"
            ));
        }
        let values: Vec<_> = values.iter().map(String::as_str).collect();
        let arguments = [&arguments.concat()[..], &values].concat();
        let controller = self.charts.install_trainyard(self.charts.helm(&arguments));
        self.runs(controller.await?, name).await
    }

    /// Checks that a TrainJob runs to its end with this controller, which is then stopped.
    async fn runs(&self, controller: Trainyard, name: &str) -> Result<()> {
        self.webhooks_answer().await?;
        let spec = json!({
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {"numNodes": 2, "image": "example.com/image"},
        });
        self.namespace.create(name, &spec).await?;
        self.namespace.until_complete(name).await?;
        let job_set = self.namespace.job_set(name).await?;
        let reports = job_set.to_string().contains("KUBEFLOW_TRAINER_SERVER_URL");
        ensure!(reports == self.progress.is_some(), "{job_set:#}");
        controller.stop().await?;
        Ok(())
    }

    /// Checks that the API server calls the webhooks, and trusts them, if the chart has any.
    async fn webhooks_answer(&self) -> Result<()> {
        let runtimes = kind(Kind::TrainingRuntime)?;
        let runtimes = self.namespace.api(&runtimes);
        let mut invalid = crate::common::runtime();
        invalid["kind"] = json!("TrainingRuntime");
        invalid["metadata"]["name"] = json!(INVALID);
        let container =
            "/spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/name";
        *invalid.pointer_mut(container).context("no container")? = json!("other");
        if self.progress.is_none() {
            let created = runtimes.create(&invalid, &Write::strict()).await?;
            created.accepted()?;
            runtimes.delete(INVALID).await?.accepted()?;
            return Ok(());
        }
        eventually("the webhook refuses a runtime", async || {
            let answer = runtimes.create(&invalid, &Write::strict()).await?;
            let message = answer.refused()?.message;
            Ok(message.contains("denied the request").then_some(()))
        })
        .await
    }

    /// Returns a copy of the chart as its next version.
    fn next(&self) -> Result<PathBuf> {
        let copy = self.charts.path("next");
        copied(&self.charts.path("charts/trainyard"), &copy)?;
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
        let crds = self.charts.cluster.api(&crds, "");
        let crd = crds.get(CRD).await?.accepted()?;
        let columns = &crd["spec"]["versions"][0]["additionalPrinterColumns"];
        Ok(columns.to_string().contains(COLUMN))
    }

    async fn config(&self) -> Result<String> {
        self.charts.config("controller.yaml").await
    }
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
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": MANAGER},
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

async fn steps(cluster: &Cluster, helm: Helm, progress: bool) -> Result<()> {
    leave_the_kubeflow_trainers_objects(cluster).await?;
    let release = Release::new(cluster, helm, progress).await?;
    let next = release.next()?;
    let waits = ["--wait", "--timeout", "5m"];
    let install = [
        "install",
        "trainyard",
        "charts/trainyard",
        "--create-namespace",
    ];
    let takes = release.charts.taking_over();
    release
        .install(&[&install, takes, &waits], "installed")
        .await?;
    crds_are_ours(cluster).await?;

    let changes = [
        "--set",
        "manager.replicas=3,manager.config.controller.concurrency=3",
    ];
    let upgrade = ["upgrade", "trainyard", argument(&next)?];
    release
        .install(&[&upgrade, &changes, &waits], "upgraded")
        .await?;
    ensure!(release.crd_has_column().await?, "the CRD was not upgraded");
    ensure!(release.charts.deployment().await?["spec"]["replicas"] == 3);
    ensure!(release.config().await?.contains("concurrency: 3"));

    let rollback = ["rollback", "trainyard", "1"];
    release
        .charts
        .helm(&[&rollback[..], &waits].concat())
        .await?;
    ensure!(!release.crd_has_column().await?);
    ensure!(release.charts.deployment().await?["spec"]["replicas"] == 2);
    ensure!(!release.config().await?.contains("concurrency"));
    let controller = release.charts.trainyard().await?;
    release.runs(controller, "rolled-back").await?;

    release.charts.helm(&["uninstall", "trainyard"]).await?;
    release.charts.until_no_pods().await?;
    everything_of_users_is_kept(&release).await?;
    // What the hooks need exists only while they run, and no webhook refuses what nobody checks.
    nothing_else_is_left(cluster).await
}

/// Checks that the CRDs, the TrainJobs and the runtimes are there after the release was uninstalled.
async fn everything_of_users_is_kept(release: &Release<'_>) -> Result<()> {
    let cluster = release.charts.cluster;
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
    Ok(())
}

async fn nothing_else_is_left(cluster: &Cluster) -> Result<()> {
    for (root, plural) in [
        ("/apis/rbac.authorization.k8s.io/v1", "clusterroles"),
        (
            "/apis/admissionregistration.k8s.io/v1",
            "mutatingwebhookconfigurations",
        ),
        (
            "/apis/admissionregistration.k8s.io/v1",
            "validatingwebhookconfigurations",
        ),
    ] {
        let resource = Resource::cluster_wide(root, plural);
        let objects = cluster.api(&resource, "").items().await?;
        let left = objects.iter().find(|object| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            name.starts_with("kubeflow-trainer") || name.ends_with(".trainer.kubeflow.org")
        });
        ensure!(left.is_none(), "{left:#?}");
    }
    Ok(())
}

/// Both versions use the same names, so they take turns. Each finds the CRDs that the one before it kept.
async fn installed_upgraded_rolled_back_and_uninstalled(cluster: &Cluster) -> Result<()> {
    charts::delete_crds(cluster.plane()).await?;
    for progress in [false, true] {
        for helm in Helm::ALL {
            let steps = steps(cluster, helm, progress).await;
            steps.with_context(|| format!("{helm:?}, progress: {progress}"))?;
        }
    }
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Cluster>> {
    tests![installed_upgraded_rolled_back_and_uninstalled]
}
