//! Commands of the documentation work with kubectl as they are printed. Those of `deploy/README.md` that stop the Kubeflow Trainer protect the
//! CRDs, delete Helm's record and the webhooks, and find a webhook that is left behind. With those of `deploy/backup.md`, TrainJobs that were
//! running run again after a restore, those that were suspended stay suspended, and those that have ended are not restored.
#![allow(clippy::indexing_slicing)]

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{ControlPlane, Definitions, Resource, Test, Write, kubectl};

const README: &str = include_str!("../../../deploy/README.md");
const BACKUP: &str = include_str!("../../../deploy/backup.md");

/// Returns the shell commands between two headings or steps of a page, with names for its placeholders.
fn commands(page: &str, from: &str, to: &str, namespace: &str) -> Result<Vec<String>> {
    let (_, section) = page.split_once(from).with_context(|| from.to_owned())?;
    let (section, _) = section.split_once(to).with_context(|| to.to_owned())?;
    let blocks = section.split("```sh\n").skip(1);
    let blocks = blocks.filter_map(|block| block.split("```").next());
    let named = |block: &str| {
        block
            .replace("NAMESPACE_OF_THE_RELEASE", namespace)
            .replace("name=RELEASE", "name=trainer")
    };
    Ok(blocks.map(named).collect())
}

/// Runs a shell command in the repository with the administrator's kubeconfig, and returns its output.
fn run(plane: &ControlPlane, command: &str) -> Result<String> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    run_in(&repository, plane, command)
}

fn run_in(folder: &Path, plane: &ControlPlane, command: &str) -> Result<String> {
    let kubectl = kubectl()?;
    let programs = kubectl.parent().context("no folder")?;
    let folders = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect::<Vec<_>>();
    let path = env::join_paths([programs.to_owned()].into_iter().chain(folders))?;
    let mut shell = Command::new("sh");
    shell
        .env("PATH", path)
        .args(["-euc", command])
        .env("KUBECONFIG", plane.kubeconfig())
        .current_dir(folder)
        .stdin(Stdio::null());
    let output = shell.output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command}\n{text}{error}");
    Ok(text)
}

fn webhook(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
        "webhooks": [{
            "name": "trainer.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
            "clientConfig": {"service": {"namespace": "default", "name": "left-behind"}},
            "rules": [{
                "apiGroups": ["trainer.kubeflow.org"], "apiVersions": ["v1alpha1"], "operations": ["CREATE"],
                "resources": ["clustertrainingruntimes/status"],
            }],
        }],
    })
}

async fn the_kubeflow_trainer_is_stopped_and_its_crds_are_kept(plane: &ControlPlane) -> Result<()> {
    Definitions::read()?.on(plane, "TrainJob").await?;
    let namespace = plane.new_namespace().await?;
    let secrets = Resource::namespaced("/api/v1", "secrets");
    let secrets = plane.api(&secrets, &namespace);
    let record = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "sh.helm.release.v1.trainer.v1", "labels": {"owner": "helm", "name": "trainer"}},
    });
    secrets
        .create(&record, &Write::strict())
        .await?
        .accepted()?;
    let root = "/apis/admissionregistration.k8s.io/v1";
    for (kind, plural, name) in [
        (
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
            "validator.trainer.kubeflow.org",
        ),
        (
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
            "defaulter.trainer.kubeflow.org",
        ),
        (
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
            "renamed",
        ),
    ] {
        let resource = Resource::cluster_wide(root, plural);
        let (webhooks, write) = (plane.api(&resource, ""), Write::strict());
        let webhook = webhook(kind, name);
        webhooks.create(&webhook, &write).await?.accepted()?;
    }

    let keep = commands(
        README,
        "1. **Keep the CRDs.**",
        "2. **Stop the old controller**",
        &namespace,
    )?;
    ensure!(keep.len() == 2, "{keep:?}");
    for command in &keep {
        run(plane, command)?;
    }
    let kept = "kubectl get crd trainjobs.trainer.kubeflow.org -o jsonpath='{.metadata.annotations.helm\\.sh/resource-policy}'";
    ensure!(run(plane, kept)? == "keep");
    ensure!(secrets.items().await?.is_empty());

    let stop = commands(
        README,
        "2. **Stop the old controller**",
        "3. **Install Trainyard**",
        &namespace,
    )?;
    let [stop, check] = &stop[..] else {
        anyhow::bail!("{stop:?}");
    };
    // The Deployment was never created here.
    run(
        plane,
        &stop.replace(
            "controller-manager",
            "controller-manager --ignore-not-found",
        ),
    )?;
    let left = run(plane, check)?;
    ensure!(
        left.contains("renamed left-behind") && left.lines().count() == 1,
        "{left}"
    );
    run(plane, "kubectl delete mutatingwebhookconfiguration renamed")?;
    ensure!(run(plane, check)?.is_empty());
    Ok(())
}

fn train_job(name: &str, suspend: bool, queue: Option<&str>) -> Value {
    let mut job = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": name},
        "spec": {"suspend": suspend, "runtimeRef": {"kind": "TrainingRuntime", "name": "torch"}},
    });
    if let Some(queue) = queue {
        job["metadata"]["labels"] = json!({"kueue.x-k8s.io/queue-name": queue});
    }
    job
}

async fn a_backup_is_restored(plane: &ControlPlane) -> Result<()> {
    let definitions = Definitions::read()?;
    let (jobs, runtimes) = (
        definitions.on(plane, "TrainJob").await?,
        definitions.on(plane, "TrainingRuntime").await?,
    );
    let namespace = plane.new_namespace().await?;
    let (jobs, runtimes) = (
        plane.api(&jobs.resource, &namespace),
        plane.api(&runtimes.resource, &namespace),
    );
    let runtime = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainingRuntime",
        "metadata": {"name": "torch", "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {"template": {"spec": {"replicatedJobs": []}}},
    });
    let strict = Write::strict();
    runtimes.create(&runtime, &strict).await?.accepted()?;
    for job in [
        train_job("ran", false, None),
        train_job("held", true, None),
        train_job("queued", false, Some("team")),
        train_job("ended", false, None),
    ] {
        jobs.create(&job, &strict).await?.accepted()?;
    }
    let ended = r#"kubectl patch trainjob ended --subresource status --type merge -p '{"status": {"conditions": [
        {"type": "Complete", "status": "True", "reason": "Done", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}'"#;

    let folder = tempfile::tempdir()?;
    // Other tests use the cluster too, and define kinds of the same name in other groups.
    let ours = [
        (
            "clustertrainingruntimes,trainingruntimes",
            "trainingruntimes.trainer.kubeflow.org",
        ),
        ("get trainjobs", "get trainjobs.trainer.kubeflow.org"),
        ("patch trainjob ", "patch trainjobs.trainer.kubeflow.org "),
    ];
    let here = |command: &str| {
        let command = ours
            .iter()
            .fold(command.to_owned(), |command, (printed, full)| {
                command.replace(printed, full)
            })
            .replace("--all-namespaces", &format!("--namespace {namespace}"))
            .replace("kubectl ", &format!("kubectl --namespace {namespace} "));
        run_in(folder.path(), plane, &command)
    };
    here(ended)?;
    let backup = commands(BACKUP, "## Back up\n", "## Restore\n", &namespace)?;
    let restore = commands(BACKUP, "## Restore\n", "## If JobSets were", &namespace)?;
    ensure!(
        backup.len() == 1 && restore.len() == 3,
        "{backup:?} {restore:?}"
    );
    for command in &backup {
        here(command)?;
    }
    here(
        "kubectl delete trainjobs.trainer.kubeflow.org,trainingruntimes.trainer.kubeflow.org --all",
    )?;
    for command in &restore {
        here(command)?;
    }
    let mut restored: Vec<_> = jobs.items().await?;
    restored.sort_by_key(|job| job["metadata"]["name"].to_string());
    let restored: Vec<_> = restored
        .iter()
        .map(|job| json!([job["metadata"]["name"], job["spec"]["suspend"]]))
        .collect();
    let expected = json!([["held", true], ["queued", true], ["ran", false]]);
    ensure!(json!(restored) == expected, "{restored:?}");
    ensure!(runtimes.items().await?.len() == 1, "the runtime is lost");
    Ok(())
}

pub(crate) fn tests() -> Vec<Test> {
    vec![
        Test::new(
            "the_kubeflow_trainer_is_stopped_and_its_crds_are_kept",
            the_kubeflow_trainer_is_stopped_and_its_crds_are_kept,
        ),
        Test::new("a_backup_is_restored", a_backup_is_restored),
    ]
}
