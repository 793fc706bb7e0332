//! The shipped runtimes restart a group as a whole. A rank that fails is counted, and an eviction is not.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{Resource, Write};

use super::{FAILING, Job, NAME};
use crate::common::runtimes;

/// The claim with the checkpoints, and where it is mounted.
const CLAIM: &str = "checkpoints";
const MOUNT: &str = "/checkpoints";

pub(super) async fn goes_on_from_its_checkpoint(job: &Job<'_>) -> Result<()> {
    create_claim(job).await?;
    let file = format!("{MOUNT}/step");
    let mut spec = job.spec(&["--fail-rank", FAILING, "--checkpoint", &file]);
    spec["runtimePatches"] = json!([{
        "manager": "test.example.com/checkpoints",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": mounts(job)}}},
    }]);
    job.namespace.create(NAME, &spec).await?;
    job.until_ended("Complete").await?;
    job.check_groups(2)?;
    let lines = job.lines()?;
    // The line of a failing rank is lost if MPI aborts before mpirun has read it.
    let resumed = |line: &&String| line.contains("trained from step 3 to 6");
    let times = lines.iter().filter(resumed).count();
    ensure!(times == 1, "{times} times: {lines:#?}");
    // With MPI, the launcher starts all ranks again once before the JobSet is restarted.
    let restarts = i64::from(!job.framework.is_mpi());
    check_restarts(job, restarts, restarts).await
}

pub(super) async fn forms_its_group_again_after_an_eviction(job: &Job<'_>) -> Result<()> {
    job.hold().await?;
    let [_, host] = job.hosts();
    let pods = job.namespace.api(&job.namespace.pods).items().await?;
    let mut names = pods
        .iter()
        .filter_map(|pod| pod["metadata"]["name"].as_str());
    let name = names.find(|name| name.starts_with(&format!("{host}-")));
    let name = name.with_context(|| format!("{host} has no pod"))?;
    let evictions = Resource::namespaced("/api/v1", &format!("pods/{name}/eviction"));
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name},
    });
    let evictions = job.namespace.api(&evictions);
    evictions
        .create(&eviction, &Write::strict())
        .await?
        .accepted()?;
    job.until_formed(2).await?;
    job.go()?;
    job.until_ended("Complete").await?;
    job.check_groups(2)?;
    check_restarts(job, 1, 0).await
}

/// Checks how often the JobSet was restarted, and how often this was counted.
async fn check_restarts(job: &Job<'_>, restarts: i64, counted: i64) -> Result<()> {
    let job_set = job.namespace.job_set(NAME).await?;
    let number = |field: &str| job_set["status"][field].as_i64().unwrap_or_default();
    let found = (number("restarts"), number("restartsCountTowardsMax"));
    ensure!(found == (restarts, counted), "{:#}", job_set["status"]);
    Ok(())
}

/// Creates the claim, with a volume for it.
async fn create_claim(job: &Job<'_>) -> Result<()> {
    let namespace = &job.namespace;
    let spec = json!({"storageClassName": "", "accessModes": ["ReadWriteMany"]});
    let with = |more: Value| {
        let mut spec = spec.clone();
        if let (Value::Object(spec), Value::Object(more)) = (&mut spec, more) {
            spec.extend(more);
        }
        spec
    };
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": namespace.name},
        "spec": with(json!({"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/var/empty"}})),
    });
    let volumes = Resource::cluster_wide("/api/v1", "persistentvolumes");
    let volumes = namespace.api(&volumes);
    volumes
        .create(&volume, &Write::strict())
        .await?
        .accepted()?;
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": CLAIM},
        "spec": with(json!({
            "volumeName": namespace.name, "resources": {"requests": {"storage": "1Gi"}},
        })),
    });
    let claims = Resource::namespaced("/api/v1", "persistentvolumeclaims");
    let claims = namespace.api(&claims);
    claims.create(&claim, &Write::strict()).await?.accepted()?;
    Ok(())
}

/// Returns patches that mount the claim in each container `node` of the runtime.
fn mounts(job: &Job<'_>) -> Vec<Value> {
    let runtime = runtimes::shipped(job.framework.runtime());
    let jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"].as_array();
    let pods = json!({
        "volumes": [{"name": CLAIM, "persistentVolumeClaim": {"claimName": CLAIM}}],
        "containers": [{"name": "node", "volumeMounts": [{"name": CLAIM, "mountPath": MOUNT}]}],
    });
    let patch = |job: &Value| json!({"name": job["name"], "template": {"spec": {"template": {"spec": pods}}}});
    jobs.into_iter().flatten().map(patch).collect()
}
