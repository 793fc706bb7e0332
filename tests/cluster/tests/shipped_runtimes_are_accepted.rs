//! JobSets of the shipped runtimes and of the presets are accepted by JobSet's webhooks, and their Jobs and pods by the API server.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_api::yaml;
use trainyard_cluster::{Resource, Test, Write};
use trainyard_plugin_folders::{of_each, root};

use crate::common::{Namespace, Undisturbed};

/// Returns the runtimes in the files of a directory of the plugins.
fn runtimes(directory: &str) -> Result<Vec<Value>> {
    let mut runtimes = Vec::new();
    for file in of_each(&root(), directory)? {
        let text = fs::read_to_string(file)?;
        let documents = yaml::read(&text).into_iter().flatten();
        runtimes.extend(documents.map(|document| document.value));
    }
    runtimes.retain(|runtime| runtime["kind"] == "ClusterTrainingRuntime");
    Ok(runtimes)
}

/// Adds the volumes of the JobSet's claims, which JobSet adds when it creates a Job.
fn with_claims(job_set: &Value, mut job: Value) -> Value {
    let policies = job_set["spec"]["volumeClaimPolicies"].as_array();
    let claims = policies
        .into_iter()
        .flatten()
        .filter_map(|policy| policy["templates"].as_array())
        .flatten()
        .map(|claim| json!({"name": claim["metadata"]["name"], "emptyDir": {}}));
    let pods = &mut job["template"]["spec"];
    let volumes = pods["volumes"].as_array().cloned().unwrap_or_default();
    pods["volumes"] = volumes.into_iter().chain(claims).collect();
    job
}

/// Checks what becomes of a suspended TrainJob with two nodes.
async fn check(namespace: &Namespace<'_>, runtime: Value, name: &str) -> Result<()> {
    let of_runtime = json!({"name": runtime["metadata"]["name"], "kind": "TrainingRuntime"});
    namespace.create_runtime(runtime).await?;
    let spec = json!({
        "suspend": true, "runtimeRef": of_runtime,
        "trainer": {"numNodes": 2, "command": ["mpirun", "train"]},
    });
    namespace.create(name, &spec).await?;
    let job_set = namespace.job_set(name).await?;
    let write = Write {
        dry_run: true,
        ..Write::strict()
    };
    let jobs = job_set["spec"]["replicatedJobs"].as_array();
    for pods in jobs.context("the JobSet has no replicated jobs")? {
        let spec = with_claims(&job_set, pods["template"]["spec"].clone());
        let named = |api: &str, kind: &str, spec: &Value| {
            let metadata = json!({"name": name});
            json!({"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec})
        };
        let job = named("batch/v1", "Job", &spec);
        let of_jobs = Resource::jobs();
        let of_jobs = namespace.api(&of_jobs);
        of_jobs.create(&job, &write).await?.accepted()?;
        let mut pod = named("v1", "Pod", &spec["template"]["spec"]);
        pod["metadata"]["annotations"] = spec["template"]["metadata"]["annotations"].clone();
        let of_pods = namespace.api(&namespace.pods);
        of_pods.create(&pod, &write).await?.accepted()?;
    }
    Ok(())
}

async fn their_objects_are_accepted(shared: &Undisturbed) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    let (shipped, presets) = (runtimes("runtimes")?, runtimes("presets")?);
    ensure!(shipped.len() > 10 && presets.len() > 2);
    for (number, runtime) in shipped.into_iter().chain(presets).enumerate() {
        let about = runtime["metadata"]["name"].to_string();
        let name = format!("job-{number}");
        check(&namespace, runtime, &name).await.context(about)?;
    }
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Undisturbed>> {
    tests![their_objects_are_accepted]
}
