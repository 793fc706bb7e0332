//! The options of a NeMo Run user reach the pods, and NeMo Run can manage its job.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{Fate, Resource};
use trainyard_schema::documents::Kind;

use super::{Used, UserNamespace, create, holds, text};
use crate::common::kind;

/// Returns the options of a NeMo Run user.
pub(super) fn options() -> Value {
    let expression = json!({"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]});
    let terms = json!([{"matchExpressions": [expression]}]);
    json!({
        "runtime_ref": "torch-distributed",
        "num_nodes": 2,
        "gpus_per_node": 8,
        "cpu_requests": "4",
        "volumes": [
            {"name": "dshm", "emptyDir": {"medium": "Memory"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        ],
        "volume_mounts": [
            {"name": "dshm", "mountPath": "/dev/shm"},
            {"name": "data", "mountPath": "/data", "readOnly": true},
        ],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
        }},
        "image_pull_secrets": ["registry"],
        "labels": {"example.com/project": "speech"},
        "annotations": {"example.com/ticket": "42"},
        "pod_labels": {"example.com/team": "speech"},
        "pod_annotations": {"networking.gke.io/default-interface": "eth0"},
        "pod_spec_overrides": {"nodeSelector": {"kubernetes.io/os": "linux"}},
        "env_vars": {"GREETING": "hello"},
        "env_list": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
    })
}

/// Creates the claim that these options name, and the volume to which it is bound.
async fn make_claim(user_namespace: &UserNamespace<'_>) -> Result<()> {
    let name = format!("data-{}", user_namespace.namespace);
    let volume = json!({
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany"],
            "hostPath": {"path": "/data"},
            "claimRef": {"namespace": user_namespace.namespace, "name": "data"},
        },
    });
    let volumes = Resource::cluster_wide("/api/v1", "persistentvolumes");
    create(&user_namespace.api(&volumes), &volume).await?;
    let claim = json!({
        "metadata": {"name": "data"},
        "spec": {
            "storageClassName": "",
            "volumeName": name,
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    let claims = Resource::namespaced("/api/v1", "persistentvolumeclaims");
    create(&user_namespace.api(&claims), &claim).await
}

/// Returns the pod template that results from [`options`].
fn pod(options: &Value, image: &Value, name: &str) -> Value {
    let quantities = json!({"cpu": "4", "nvidia.com/gpu": "8"});
    json!({
        "metadata": {"labels": options["pod_labels"], "annotations": options["pod_annotations"]},
        "spec": {
            "volumes": options["volumes"],
            "tolerations": options["tolerations"],
            "affinity": options["affinity"],
            "imagePullSecrets": [{"name": "registry"}],
            "nodeSelector": options["pod_spec_overrides"]["nodeSelector"],
            "containers": [{
                "name": "node",
                "image": image,
                "command": ["torchrun", "train.py"],
                "volumeMounts": options["volume_mounts"],
                "resources": {"requests": quantities, "limits": {"nvidia.com/gpu": "8"}},
                "env": [
                    {"name": "GREETING", "value": "hello"},
                    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                    {"name": "PET_NNODES", "value": "2"},
                    {"name": "PET_NPROC_PER_NODE", "value": "8"},
                    {"name": "PET_MASTER_ADDR", "value": format!("{name}-node-0-0.{name}")},
                ],
            }],
        },
    })
}

pub(super) async fn launches_follows_and_cancels(shared: &Used) -> Result<()> {
    let user_namespace = UserNamespace::new(shared).await?;
    make_claim(&user_namespace).await?;
    user_namespace.fate(Fate::Hold);
    let options = options();
    let launched = user_namespace.nemo_run(&["launch", "Speech_1"]).await?;
    ensure!(launched["state"] == "Running", "{launched}");
    let name = text(&launched["name"])?;
    ensure!(name.starts_with("speech-1-"), "{name}");

    let pods = user_namespace.pods().await?;
    ensure!(pods.len() == 2, "{pods:#?}");
    let expected = pod(&options, &shared.image, name);
    for pod in &pods {
        ensure!(holds(pod, &expected), "{pod:#} is to hold {expected:#}");
        let containers = pod["spec"]["containers"].as_array();
        ensure!(containers.is_some_and(|all| all.len() == 1), "{pod:#}");
    }
    let jobs = kind(Kind::TrainJob)?;
    let job = user_namespace.api(&jobs).get(name).await?.accepted()?;
    let metadata = json!({"labels": options["labels"], "annotations": options["annotations"]});
    ensure!(holds(&job["metadata"], &metadata), "{job:#}");

    let status = user_namespace.nemo_run(&["status", name]).await?;
    ensure!(status == "Running", "{status}");
    let cancelled = user_namespace.nemo_run(&["cancel", name]).await?;
    ensure!(cancelled == true, "{cancelled}");
    user_namespace.until_empty().await?;
    let status = user_namespace.nemo_run(&["status", name]).await?;
    ensure!(status.is_null(), "{status}");
    Ok(())
}

pub(super) async fn replaces_an_existing_job(shared: &Used) -> Result<()> {
    let user_namespace = UserNamespace::new(shared).await?;
    make_claim(&user_namespace).await?;
    user_namespace.fate(Fate::Hold);
    let launched = user_namespace
        .nemo_run_aloud(&["launch_twice", "again"])
        .await?;
    ensure!(launched.result["state"] == "Running", "{launched:?}");
    let stale = |text: &String| text.contains("deleting stale job");
    ensure!(
        launched.warnings.len() == 1 && launched.warnings.iter().all(stale),
        "{launched:?}"
    );
    let name = text(&launched.result["name"])?;
    let jobs = kind(Kind::TrainJob)?;
    let jobs = user_namespace.api(&jobs);
    let second = jobs.get(name).await?.accepted()?;
    ensure!(second["metadata"]["generation"] == 1, "{second:#}");
    let job_sets = Resource::jobsets();
    let job_set = user_namespace.api(&job_sets).get(name).await?.accepted()?;
    ensure!(
        job_set["metadata"]["ownerReferences"][0]["uid"] == second["metadata"]["uid"],
        "{job_set:#}"
    );
    user_namespace.fate(Fate::Succeed);
    let complete = |job: &Value| {
        holds(
            job,
            &json!({"status": {"conditions": [{"type": "Complete"}]}}),
        )
    };
    jobs.until(name, "it is complete", complete).await?;
    let status = user_namespace.nemo_run(&["status", name]).await?;
    ensure!(status == "Succeeded", "{status}");
    user_namespace.nemo_run(&["cancel", name]).await?;
    user_namespace.until_empty().await
}
