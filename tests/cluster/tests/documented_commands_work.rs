//! Commands of the documentation work with kubectl as they are printed. Those of `docs/move.md` that stop the Kubeflow Trainer protect the
//! CRDs, delete Helm's record and the webhooks, and find a webhook that is left behind; the others install Trainyard over it, and remove it
//! again without losing a TrainJob. With those of `docs/backup.md`, TrainJobs that were running run again after a restore, those that were
//! suspended stay suspended, and those that have ended are not restored; a JobSet without an owner becomes that of its TrainJob.

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{ControlPlane, Definitions, Resource, Shared, Test, Write, kubectl};
use trainyard_schema::documents::Kind;

use crate::common::{
    InTurns, kind,
    pages::{self, MOVE},
};

const BACKUP: &str = include_str!("../../../docs/backup.md");

/// Returns the commands of kubectl between two headings or steps of a page, with names for its placeholders.
/// `charts_replace_each_other` runs those of helm and trainyard.
fn commands(page: &str, from: &str, to: &str, namespace: &str) -> Result<Vec<String>> {
    let blocks = pages::commands(page, from, to)?.into_iter();
    let blocks = blocks.filter(|block| {
        let program = block.split_whitespace().next();
        !matches!(program, Some("helm" | "trainyard"))
    });
    let named = |block: String| {
        block
            .replace("NAMESPACE_OF_THE_RELEASE", namespace)
            .replace("=RELEASE", "=trainer")
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
        MOVE,
        "2. **Keep the values and the CRDs.**",
        "3. **Stop the old controller**",
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
        MOVE,
        "3. **Stop the old controller**",
        "4. **Install Trainyard**",
        &namespace,
    )?;
    let [webhooks, of_chart, stop, check] = &stop[..] else {
        anyhow::bail!("{stop:?}");
    };
    run(plane, webhooks)?;
    run(plane, of_chart)?;
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

/// Creates a TrainJob and a JobSet of the same name without an owner. Returns both.
async fn create(
    plane: &ControlPlane,
    namespace: &str,
    name: &str,
    suspend: bool,
) -> Result<[Value; 2]> {
    let pod = json!({"containers": [{"name": "node", "image": "example.com/image"}]});
    let job = json!({"name": "node", "template": {"spec": {"template": {"spec": pod}}}});
    let job_set = json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name},
        "spec": {"suspend": suspend, "replicatedJobs": [job]},
    });
    let jobs = kind(Kind::TrainJob)?;
    let create = async |resource: &Resource, object: &Value| {
        let api = plane.api(resource, namespace);
        anyhow::Ok(api.create(object, &Write::strict()).await?.accepted()?)
    };
    Ok([
        create(&jobs, &train_job(name, suspend, None)).await?,
        create(&Resource::jobsets(), &job_set).await?,
    ])
}

async fn a_job_set_without_an_owner_is_given_to_its_train_job(shared: &InTurns) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let plane = shared.plane();
    let namespace = plane.new_namespace().await?;
    let [job, restored] = create(plane, &namespace, "runs", false).await?;
    create(plane, &namespace, "another", false).await?;
    let (_, section) = BACKUP
        .split_once("## If JobSets were restored first\n")
        .context("no such section")?;
    let adopt = commands(
        section,
        "**Without owner references**",
        "To run the TrainJob anew",
        "",
    )?;
    let [adopt] = &adopt[..] else {
        anyhow::bail!("{adopt:?}");
    };
    let adopt = adopt.replace("NAMESPACE", &namespace);
    run(plane, &adopt.replace("NAME", "runs"))?;
    let job_sets = Resource::jobsets();
    let job_sets = plane.api(&job_sets, &namespace);
    let owned = job_sets.get("runs").await?.accepted()?;
    let owner = json!([{
        "apiVersion": job["apiVersion"], "kind": "TrainJob", "name": "runs", "uid": job["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    }]);
    ensure!(owned["metadata"]["ownerReferences"] == owner, "{owned:#}");
    ensure!(owned["spec"] == restored["spec"], "{owned:#}");
    let another = job_sets.get("another").await?.accepted()?;
    ensure!(
        another["metadata"]["ownerReferences"].is_null(),
        "{another:#}"
    );
    Ok(())
}

/// Runs the commands of a step, which are in one block.
fn run_step(plane: &ControlPlane, page: &str, from: &str, to: &str) -> Result<String> {
    let blocks = commands(page, from, to, "")?;
    let [block] = &blocks[..] else {
        anyhow::bail!("{blocks:?}");
    };
    run(plane, block)
}

async fn trainyard_is_installed_and_removed_again(shared: &InTurns) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let plane = shared.plane();
    // Fields that the Kubeflow Trainer's installer manages.
    let mut crd = Kind::TrainJob.crd()?;
    let columns = &mut crd["spec"]["versions"][0]["additionalPrinterColumns"];
    let ours = columns.take();
    *columns = json!([ours[0]]);
    let helm = Write {
        force: true,
        ..Write::by("helm")
    };
    let crds = Resource::crds();
    let crds = plane.api(&crds, "");
    crds.apply(&crd, &helm).await?.accepted()?;
    run_step(
        plane,
        MOVE,
        "4. **Install Trainyard**",
        "### What happens to existing TrainJobs",
    )?;
    let crd = crds
        .get("trainjobs.trainer.kubeflow.org")
        .await?
        .accepted()?;
    let columns = &crd["spec"]["versions"][0]["additionalPrinterColumns"];
    ensure!(*columns == ours, "{columns:#}");
    let installed = "kubectl get -o name deployments,services,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,\
        validatingadmissionpolicies,validatingadmissionpolicybindings --namespace kubeflow-system | grep kubeflow-trainer || true";
    let objects = run(plane, installed)?;
    ensure!(objects.lines().count() > 10, "{objects}");
    let kept = "kubectl get -o name clustertrainingruntimes,crds";
    let before = run(plane, kept)?;
    ensure!(before.contains("/torch-distributed"), "{before}");

    let namespace = plane.new_namespace().await?;
    create(plane, &namespace, "runs", false).await?;
    create(plane, &namespace, "held", true).await?;
    let (_, back) = MOVE
        .split_once("## Move back to the Kubeflow Trainer\n")
        .context("no such section")?;
    let suspended = run_step(plane, back, "1. **Rehearse.**", "2. **Remove Trainyard")?;
    // Another test creates TrainJobs too, which are not suspended.
    ensure!(suspended == format!("{namespace} held\n"), "{suspended}");
    run_step(
        plane,
        back,
        "2. **Remove Trainyard",
        "3. **Install the Kubeflow Trainer**",
    )?;
    // The Kubeflow Trainer has the same.
    let left = run(plane, installed)?;
    let mut left_behind = left
        .lines()
        .filter(|name| !name.ends_with("/kubeflow-trainer-public"));
    ensure!(left_behind.next().is_none(), "{left}");
    ensure!(run(plane, kept)? == before);
    let phase = "kubectl get namespace kubeflow-system -o jsonpath='{.status.phase}'";
    ensure!(run(plane, phase)? == "Active");

    let delete = commands(
        back,
        "4. **Delete the JobSets of suspended TrainJobs**",
        "What the Kubeflow Trainer does",
        "",
    )?;
    let [delete] = &delete[..] else {
        anyhow::bail!("{delete:?}");
    };
    let delete = delete.replace("NAMESPACE", &namespace);
    run(plane, &delete.replace("NAME", "held"))?;
    let mut annotate = back
        .split('`')
        .filter(|code| code.starts_with("kubectl annotate "));
    let annotate = annotate.next().context("no command for the annotation")?;
    let set = annotate.replace("reconcile-error-", "reconcile-error=RuntimeNotFound");
    run(plane, &set)?;
    run(plane, annotate)?;
    let ours = format!("kubectl get trainjobs,jobsets --namespace {namespace} -o yaml");
    let left = run(plane, &ours)?;
    ensure!(!left.contains("reconcile-error"), "{left}");
    let names = run(plane, &ours.replace("-o yaml", "-o name"))?;
    let names: Vec<_> = names.lines().collect();
    let expected = [
        "trainjob.trainer.kubeflow.org/held",
        "trainjob.trainer.kubeflow.org/runs",
        "jobset.jobset.x-k8s.io/runs",
    ];
    ensure!(names == expected, "{names:?}");
    Ok(())
}

/// These replace the objects of deploy/, and the API server refuses some calls while a CRD changes.
pub(crate) fn tests_in_turns() -> Vec<Test<InTurns>> {
    tests![
        a_job_set_without_an_owner_is_given_to_its_train_job,
        trainyard_is_installed_and_removed_again,
    ]
}

pub(crate) fn tests() -> Vec<Test> {
    tests![
        the_kubeflow_trainer_is_stopped_and_its_crds_are_kept,
        a_backup_is_restored,
    ]
}
