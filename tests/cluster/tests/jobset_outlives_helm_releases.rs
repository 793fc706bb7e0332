//! What docs/move.md says of Helm and JobSet, with each version of helm: which commands with the Kubeflow Trainer's chart delete or break
//! JobSet, and that those with the package of Trainyard do not. The package keeps the certificate of JobSet's webhooks in an upgrade, refuses
//! to take JobSet over from another release, and JobSet can be taken out of its release.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{ControlPlane, Helm, Resource, Test, Write, eventually};

use crate::{
    chart_installs_jobset::packaged,
    common::{
        InTurns,
        charts::{self, NAMESPACE, Shell},
        pages::{self, MOVE},
    },
};

const SECRET: &str = "jobset-webhook-server-cert";
const SERVICE: &str = "jobset-webhook-service";
const DEPLOYMENT: &str = "jobset-controller";
/// The kinds of the objects of JobSet's chart.
const KINDS: &str = "deployments,services,secrets,configmaps,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,\
    mutatingwebhookconfigurations,validatingwebhookconfigurations";
const INSTANCE: &str = "app.kubernetes.io/instance";

/// JobSet on a cluster, and a version of helm.
struct JobSet<'a> {
    plane: &'a ControlPlane,
    shell: Shell,
}

impl<'a> JobSet<'a> {
    /// Removes JobSet's controller and what the charts of earlier turns left.
    async fn cleared(plane: &'a ControlPlane, helm: Helm) -> Result<Self> {
        let shell = Shell::new(helm)?;
        fs::create_dir(shell.path("package"))?;
        packaged(&shell.path("package"))?;
        let jobset = Self { plane, shell };
        for release in ["kubeflow-trainer", "other", "trainyard"] {
            jobset
                .run(&format!(
                    "helm uninstall {release} --namespace {NAMESPACE} --no-hooks --ignore-not-found"
                ))
                .await?;
        }
        jobset
            .run(&format!(
                "kubectl delete {KINDS} --all-namespaces -l app.kubernetes.io/name=jobset"
            ))
            .await?;
        charts::delete_crds(plane).await?;
        Ok(jobset)
    }

    async fn run(&self, command: &str) -> Result<String> {
        self.shell.run(self.plane.kubeconfig(), command).await
    }

    /// Runs a command that fails. Returns its output.
    async fn fails(&self, command: &str) -> Result<String> {
        match self.run(command).await {
            Ok(output) => anyhow::bail!("{command} succeeded: {output}"),
            Err(error) => Ok(error.to_string()),
        }
    }

    /// Runs a command of helm for a chart in the folder, which waits for nothing.
    async fn helm(&self, command: &str, chart: &str, more: &str) -> Result<String> {
        let takes = self.shell.taking_over().join(" ");
        let takes = takes.replace(
            "--take-ownership",
            match command.starts_with("install") {
                true => "--take-ownership --create-namespace",
                false => "",
            },
        );
        let values = "--set image.repository=example.com/trainyard";
        self.run(&format!(
            "helm {command} {chart} --namespace {NAMESPACE} --no-hooks {takes} {values} {more}"
        ))
        .await
    }

    async fn get(&self, root: &str, plural: &str, name: &str) -> Result<Value> {
        let resource = Resource::namespaced(root, plural);
        let found = self.plane.api(&resource, NAMESPACE).get(name).await?;
        Ok(found.accepted()?)
    }

    async fn certificate(&self) -> Result<Value> {
        Ok(self.get("/api/v1", "secrets", SECRET).await?["data"].take())
    }

    /// Writes a certificate as JobSet's controller does.
    async fn write_certificate(&self) -> Result<Value> {
        let mut secret = self.get("/api/v1", "secrets", SECRET).await?;
        for file in ["ca.crt", "ca.key", "tls.crt", "tls.key"] {
            secret["data"][file] = json!("eA==");
        }
        let secrets = Resource::namespaced("/api/v1", "secrets");
        let secrets = self.plane.api(&secrets, NAMESPACE);
        let written = secrets.replace(&secret, &Write::by("manager")).await?;
        Ok(written.accepted()?["data"].take())
    }

    /// Returns the release whose pods the Service of the webhooks selects, and that of the pods.
    async fn selected(&self) -> Result<[Value; 2]> {
        let mut service = self.get("/api/v1", "services", SERVICE).await?;
        let mut deployment = self.get("/apis/apps/v1", "deployments", DEPLOYMENT).await?;
        let labels = &mut deployment["spec"]["template"]["metadata"]["labels"];
        Ok([
            service["spec"]["selector"][INSTANCE].take(),
            labels[INSTANCE].take(),
        ])
    }

    /// Returns all objects of JobSet's chart, without Helm's annotations and what changes with them.
    async fn objects(&self) -> Result<Value> {
        let command = format!(
            "kubectl get {KINDS} --all-namespaces -l app.kubernetes.io/name=jobset -o json"
        );
        let mut objects: Value = serde_json::from_str(&self.run(&command).await?)?;
        let items = objects["items"].as_array_mut().context("no list")?;
        ensure!(items.len() > 10, "{items:?}");
        for item in items {
            let metadata = item["metadata"].as_object_mut().context("no metadata")?;
            metadata.retain(|name, _| name != "resourceVersion" && name != "generation");
            let mut annotations = metadata.remove("annotations").unwrap_or_default();
            if let Some(annotations) = annotations.as_object_mut() {
                annotations.retain(|name, _| !name.contains("helm.sh/"));
            }
            let others = annotations
                .as_object()
                .filter(|annotations| !annotations.is_empty());
            item["annotations"] = json!(others);
        }
        Ok(objects["items"].take())
    }
}

/// The rows of the table in docs/move.md.
async fn the_kubeflow_trainers_chart_breaks_jobset_as_documented(
    plane: &ControlPlane,
    helm: Helm,
) -> Result<()> {
    let jobset = JobSet::cleared(plane, helm).await?;
    let chart = "charts/kubeflow-trainer";
    jobset.helm("install kubeflow-trainer", chart, "").await?;
    let crds = Resource::crds();
    let crds = plane.api(&crds, "");
    let crd = crds.get("jobsets.jobset.x-k8s.io").await?.accepted()?;

    let written = jobset.write_certificate().await?;
    let upgrade =
        format!("helm upgrade kubeflow-trainer {chart} --namespace {NAMESPACE} --no-hooks");
    if helm == Helm::Four {
        let refused = jobset.fails(&upgrade).await?;
        ensure!(refused.contains("conflict"), "{refused}");
        ensure!(jobset.certificate().await? == written);
    }
    jobset.helm("upgrade kubeflow-trainer", chart, "").await?;
    let certificate = jobset.certificate().await?;
    ensure!(certificate["tls.crt"] == "", "{certificate}");

    let uninstall = format!("helm uninstall kubeflow-trainer --namespace {NAMESPACE} --no-hooks");
    jobset.run(&uninstall).await?;
    let webhooks = jobset
        .run("kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o name");
    ensure!(!webhooks.await?.contains("jobset"), "webhooks are left");
    ensure!(jobset.selected().await.is_err(), "the controller is left");
    let kept = crds.get("jobsets.jobset.x-k8s.io").await?.accepted()?;
    ensure!(kept["metadata"]["uid"] == crd["metadata"]["uid"]);
    ensure!(kept["metadata"]["deletionTimestamp"].is_null(), "{kept}");
    eventually("the CRD of TrainJobs is deleted", async || {
        let found = crds.get("trainjobs.trainer.kubeflow.org").await?;
        Ok((found.status == 404).then_some(()))
    })
    .await?;

    jobset.helm("install kubeflow-trainer", chart, "").await?;
    let takes = jobset.shell.taking_over().join(" ");
    let other = jobset
        .fails(&format!(
            "helm install other {chart} --namespace {NAMESPACE} --no-hooks {takes}"
        ))
        .await?;
    ensure!(other.contains("field is immutable"), "{other}");
    // The Service selects no pods.
    ensure!(jobset.selected().await? == ["other", "kubeflow-trainer"]);
    Ok(())
}

async fn the_package_of_trainyard_leaves_jobset_as_it_is(
    plane: &ControlPlane,
    helm: Helm,
) -> Result<()> {
    let jobset = JobSet::cleared(plane, helm).await?;
    let package = "package/trainyard";
    let with_jobset = "--set jobset.install=true";
    jobset
        .helm("install trainyard", package, with_jobset)
        .await?;
    let written = jobset.write_certificate().await?;
    let before = jobset.objects().await?;
    // Without --force-conflicts: the controller of JobSet has written nothing that Helm applies.
    jobset
        .run(&format!(
            "helm upgrade trainyard {package} --namespace {NAMESPACE} --no-hooks --reuse-values"
        ))
        .await?;
    ensure!(jobset.certificate().await? == written);
    ensure!(jobset.objects().await? == before);

    let other = format!(
        "helm install other {package} --namespace {NAMESPACE} --no-hooks {} {with_jobset} --set image.repository=example.com/trainyard",
        jobset.shell.taking_over().join(" "),
    );
    let refused = jobset.fails(&other).await?;
    let of_release = "jobset.install: the cluster has JobSet already, from the Helm release trainyard in the namespace kubeflow-system; \
                      set it to false";
    ensure!(refused.contains(of_release), "{refused}");
    ensure!(jobset.objects().await? == before);

    let (_, section) = MOVE
        .split_once("### Take JobSet out")
        .context("no such section")?;
    let commands = pages::commands(&format!("{section}END"), "release", "END")?;
    let [keep, upgrade, forget] = &commands[..] else {
        anyhow::bail!("{commands:?}");
    };
    jobset.run(keep).await?;
    let upgrade = upgrade.replace("trainyard-0.1.0.tgz", package);
    jobset.run(&format!("{upgrade} --no-hooks")).await?;
    jobset.run(forget).await?;
    jobset
        .run(&format!(
            "helm uninstall trainyard --namespace {NAMESPACE} --no-hooks"
        ))
        .await?;
    ensure!(jobset.objects().await? == before);
    ensure!(jobset.selected().await? == ["trainyard", "trainyard"]);

    let refused = jobset.fails(&other).await?;
    let without_helm =
        "the cluster has JobSet already, which Helm did not install; set it to false";
    ensure!(refused.contains(without_helm), "{refused}");
    Ok(())
}

async fn of_the_kubeflow_trainer(shared: &InTurns) -> Result<()> {
    let _turn = shared.turn.lock().await;
    for helm in Helm::ALL {
        the_kubeflow_trainers_chart_breaks_jobset_as_documented(&shared.plane, helm).await?;
    }
    Ok(())
}

async fn of_trainyard(shared: &InTurns) -> Result<()> {
    let _turn = shared.turn.lock().await;
    for helm in Helm::ALL {
        the_package_of_trainyard_leaves_jobset_as_it_is(&shared.plane, helm).await?;
    }
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<InTurns>> {
    vec![
        Test::new(
            "of_the_kubeflow_trainer_as_documented",
            of_the_kubeflow_trainer,
        ),
        Test::new("of_trainyard", of_trainyard),
    ]
}
