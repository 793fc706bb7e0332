//! Helm charts on a cluster: helm runs as users run it, and what pods of the charts would run are processes of this machine, with the
//! arguments, files and permissions of the pods.

mod reference;
mod shell;

pub(crate) use self::shell::Shell;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{
    Cluster, ControlPlane, Fate, Helm, Resource, Trainyard, Write, eventually,
};
use trainyard_schema::documents::Kind;

/// The namespace of both charts.
pub(crate) const NAMESPACE: &str = "kubeflow-system";
/// The Deployment, the ServiceAccount and the role of both controllers.
pub(crate) const MANAGER: &str = "kubeflow-trainer-controller-manager";
/// The release of the shadow mode, its namespace, and its objects.
pub(crate) const SHADOW: &str = "trainyard-shadow";
/// The Job of Trainyard's chart that applies its runtimes.
pub(crate) const RUNTIMES: &str = "kubeflow-trainer-runtimes";
/// The webhook configurations of both controllers.
const WEBHOOKS: [&str; 2] = [
    "defaulter.trainer.kubeflow.org",
    "validator.trainer.kubeflow.org",
];
/// The label of objects with the name of their program.
const NAME: &str = "app.kubernetes.io/name";
/// The label of a Job's pods with its name.
const JOB: &str = "batch.kubernetes.io/job-name";

/// A cluster on which a version of helm runs.
pub(crate) struct Charts<'a> {
    pub(crate) cluster: &'a Cluster,
    shell: Shell,
}

impl<'a> Charts<'a> {
    /// Prepares a shell with both charts.
    pub(crate) fn new(cluster: &'a Cluster, helm: Helm) -> Result<Self> {
        let shell = Shell::new(helm)?;
        Ok(Self { cluster, shell })
    }

    /// Returns a path in the folder of the shell.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.shell.path(name)
    }

    /// See [`Shell::taking_over`].
    pub(crate) fn taking_over(&self) -> &'static [&'static str] {
        self.shell.taking_over()
    }

    /// Runs a shell command as the administrator. Returns its output.
    pub(crate) async fn shell(&self, command: &str) -> Result<String> {
        self.shell_as(self.cluster.plane().kubeconfig(), command)
            .await
    }

    /// Runs a shell command with the permissions of a kubeconfig file. Returns its output.
    pub(crate) async fn shell_as(&self, kubeconfig: &Path, command: &str) -> Result<String> {
        self.shell.run(kubeconfig, command).await
    }

    /// Runs helm with arguments that have no spaces.
    pub(crate) async fn helm(&self, arguments: &[&str]) -> Result<String> {
        let quoted = arguments.iter().map(|argument| format!("'{argument}'"));
        let command = quoted.collect::<Vec<_>>().join(" ");
        let command = format!("helm {command} --namespace {NAMESPACE}");
        self.shell(&command).await
    }

    /// Sets the fate of the pods of hooks. Those of the controllers keep running.
    fn decide(&self, fate: Fate) {
        let is_of_hook = |pod: &k8s_openapi::api::core::v1::Pod| {
            let labels = pod.metadata.labels.as_ref();
            labels.is_some_and(|labels| labels.contains_key(JOB))
        };
        self.cluster
            .kubelet()
            .decide(NAMESPACE, move |pod| match is_of_hook(pod) {
                true => fate,
                false => Fate::Hold,
            });
    }

    /// Runs what installs or upgrades a chart, and meanwhile `hook` with the pod of a Job, as soon as it runs.
    pub(crate) async fn with_hook<R>(
        &self,
        installs: impl Future<Output = Result<String>>,
        job: &str,
        hook: impl AsyncFnOnce(Value) -> Result<R>,
    ) -> Result<R> {
        self.decide(Fate::Hold);
        let hook = async {
            let jobs = Resource::jobs();
            let jobs = self.cluster.api(&jobs, NAMESPACE);
            let runs = jobs.until(job, "the hook runs", |job| job["status"]["active"] == 1);
            let pod = runs.await?["spec"]["template"]["spec"].take();
            let done = hook(pod).await.with_context(|| format!("the hook {job}"))?;
            self.decide(Fate::Succeed);
            anyhow::Ok(done)
        };
        let (_, done) = tokio::try_join!(installs, hook)?;
        Ok(done)
    }

    /// Runs what installs or upgrades Trainyard's chart. Before the hook applies the runtimes, the controller of the chart starts.
    pub(crate) async fn install_trainyard(
        &self,
        installs: impl Future<Output = Result<String>>,
    ) -> Result<Trainyard> {
        let hook = async |pod: Value| {
            let controller = self.trainyard().await?;
            let plane = self.cluster.plane();
            let account = plane.kubeconfig_for_service_account(NAMESPACE, RUNTIMES);
            let arguments = strings(&pod["containers"][0]["args"]).join(" ");
            self.shell_as(&account.await?, &format!("trainyard {arguments}"))
                .await?;
            Ok(controller)
        };
        self.with_hook(installs, RUNTIMES, hook).await
    }

    /// Starts the controller as the Deployment of Trainyard's chart describes it, and waits until it is ready. If the chart has webhooks, API
    /// servers call them.
    pub(crate) async fn trainyard(&self) -> Result<Trainyard> {
        let config = self.config("controller.yaml").await?;
        self.start(NAMESPACE, self.deployment().await?, &config)
            .await
    }

    /// Starts what the shadow mode of Trainyard's chart runs.
    pub(crate) async fn shadow(&self) -> Result<Trainyard> {
        let get = async |root: &str, plural: &str, name: &str| {
            let resource = Resource::namespaced(root, plural);
            let found = self.cluster.api(&resource, SHADOW).get(name).await?;
            anyhow::Ok(found.accepted()?)
        };
        let deployment = get("/apis/apps/v1", "deployments", SHADOW).await?;
        let map = get("/api/v1", "configmaps", "trainyard-shadow-config").await?;
        let config = map["data"]["controller.yaml"].as_str();
        self.start(SHADOW, deployment, config.context("no file")?)
            .await
    }

    async fn start(&self, namespace: &str, deployment: Value, config: &str) -> Result<Trainyard> {
        let plane = self.cluster.plane();
        let files = tempfile::tempdir_in(self.path(""))?.keep();
        fs::write(files.join("controller.yaml"), config)?;
        let pod = &deployment["spec"]["template"]["spec"];
        let mounts = [("/etc/trainyard", &files), ("/var/trainyard", &files)];
        let place = |argument: String| {
            let mounts = mounts.iter();
            mounts.fold(argument, |argument, (mount, folder)| {
                argument.replace(mount, &folder.display().to_string())
            })
        };
        let arguments = strings(&pod["containers"][0]["args"]);
        let mut arguments: Vec<_> = arguments.into_iter().skip(1).map(place).collect();
        let ports = pod["containers"][0]["ports"].as_array();
        let webhooks = ports
            .into_iter()
            .flatten()
            .find(|port| port["name"] == "webhook");
        if let Some(port) = webhooks {
            let port = &port["containerPort"];
            arguments.push(format!("--webhook-bind-address=127.0.0.1:{port}"));
            self.route_webhooks(port).await?;
        }
        let account = pod["serviceAccountName"].as_str().context("no account")?;
        let account = plane.kubeconfig_for_service_account(namespace, account);
        Trainyard::start(plane, &account.await?, arguments).await
    }

    /// Makes the Service of the webhooks name this machine, because no proxy runs that knows its pods.
    async fn route_webhooks(&self, port: &Value) -> Result<()> {
        let services = Resource::namespaced("/api/v1", "services");
        let services = self.cluster.api(&services, NAMESPACE);
        let here = json!({"spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": "", "clusterIPs": null}});
        let name = "kubeflow-trainer-webhooks";
        let patched = services.merge(name, &here, &Write::by("test")).await?;
        patched.accepted()?;
        self.change_webhooks(WEBHOOKS, |webhook| {
            webhook["clientConfig"]["service"]["port"] = port.clone();
        })
        .await
    }

    /// Changes each webhook of a mutating and a validating configuration.
    pub(crate) async fn change_webhooks(
        &self,
        [mutating, validating]: [&str; 2],
        change: impl Fn(&mut Value),
    ) -> Result<()> {
        for (plural, name) in [
            ("mutatingwebhookconfigurations", mutating),
            ("validatingwebhookconfigurations", validating),
        ] {
            let resource = Resource::cluster_wide("/apis/admissionregistration.k8s.io/v1", plural);
            let configurations = self.cluster.api(&resource, "");
            // A controller may write its authority meanwhile.
            eventually("the webhooks are changed", async || {
                let mut found = configurations.get(name).await?.accepted()?;
                found["webhooks"]
                    .as_array_mut()
                    .into_iter()
                    .flatten()
                    .for_each(&change);
                let written = configurations.replace(&found, &Write::by("test")).await?;
                Ok(written.accepted().ok().map(drop))
            })
            .await?;
        }
        Ok(())
    }

    /// Returns the Deployment of the controller.
    pub(crate) async fn deployment(&self) -> Result<Value> {
        let deployments = Resource::namespaced("/apis/apps/v1", "deployments");
        let deployments = self.cluster.api(&deployments, NAMESPACE);
        Ok(deployments.get(MANAGER).await?.accepted()?)
    }

    /// Returns the configuration file of the controller.
    pub(crate) async fn config(&self, file: &str) -> Result<String> {
        let maps = Resource::namespaced("/api/v1", "configmaps");
        let maps = self.cluster.api(&maps, NAMESPACE);
        let map = maps.get("kubeflow-trainer-config").await?.accepted()?;
        let text = map["data"][file].as_str();
        Ok(text.context("no file")?.to_owned())
    }

    /// Lets the pod of the shadow mode run.
    pub(crate) fn hold_the_shadow(&self) {
        self.cluster.kubelet().decide(SHADOW, |_| Fate::Hold);
    }

    /// Waits until the pods of the controllers and of the hooks are gone. JobSet's may stay.
    pub(crate) async fn until_no_pods(&self) -> Result<()> {
        eventually("the pods are gone", async || {
            let pods = Resource::pods();
            let left = self.cluster.api(&pods, NAMESPACE).items().await?;
            let is_jobset = |pod: &Value| pod["metadata"]["labels"][NAME] == "jobset";
            Ok(left.iter().all(is_jobset).then_some(()))
        })
        .await
    }
}

/// Deletes the CRDs of both charts, which a cluster has from its start. Helm would not take over objects that it did not create.
pub(crate) async fn delete_crds(plane: &ControlPlane) -> Result<()> {
    let crds = Resource::crds();
    for kind in Kind::ALL {
        let name = format!("{}.trainer.kubeflow.org", kind.plural());
        let deleted = plane.api(&crds, "").delete(&name).await?;
        ensure!([200, 404].contains(&deleted.status.as_u16()), "{deleted:?}");
    }
    eventually("the CRDs are gone", async || {
        let left = plane.api(&crds, "").items().await?;
        let ours = left
            .iter()
            .any(|crd| crd["spec"]["group"] == "trainer.kubeflow.org");
        Ok((!ours).then_some(()))
    })
    .await
}

/// Copies a folder.
pub(crate) fn copied(from: &Path, to: &Path) -> Result<()> {
    let copied = Command::new("cp").arg("-r").args([from, to]).status()?;
    ensure!(copied.success());
    Ok(())
}

/// Replaces a text that is in a file once.
pub(crate) fn replace(file: &Path, from: &str, to: &str) -> Result<()> {
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
