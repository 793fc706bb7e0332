//! The commands of `deploy/README.md` that stop the Kubeflow Trainer work with kubectl as they are printed: the CRDs are protected, Helm's record
//! and the webhooks are deleted, and a webhook that is left behind is found.
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

/// Returns the shell commands between two headings or steps of the README, with names for its placeholders.
fn commands(from: &str, to: &str, namespace: &str) -> Result<Vec<String>> {
    let (_, section) = README.split_once(from).with_context(|| from.to_owned())?;
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

/// Runs a shell command with the administrator's kubeconfig, and returns its output.
fn run(plane: &ControlPlane, command: &str) -> Result<String> {
    let kubectl = kubectl()?;
    let folder = kubectl.parent().context("no folder")?;
    let folders = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect::<Vec<_>>();
    let path = env::join_paths([folder.to_owned()].into_iter().chain(folders))?;
    let mut shell = Command::new("sh");
    shell
        .env("PATH", path)
        .args(["-euc", command])
        .env("KUBECONFIG", plane.kubeconfig())
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
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

pub(crate) fn tests() -> Vec<Test> {
    vec![Test::new(
        "the_kubeflow_trainer_is_stopped_and_its_crds_are_kept",
        the_kubeflow_trainer_is_stopped_and_its_crds_are_kept,
    )]
}
