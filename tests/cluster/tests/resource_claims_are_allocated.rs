//! TrainJobs get devices by Dynamic Resource Allocation: the scheduler allocates their pods' claims, a TrainJob without free devices waits,
//! and released devices are allocated again.

use std::ffi::OsString;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{Fate, Resource, Test, Write};

use crate::{
    common,
    common::{Controlled, Namespace, Setup, devices},
};

/// A runtime whose nodes have four devices each, and one without devices.
pub(crate) struct Runtimes;

impl Setup for Runtimes {
    fn runtimes() -> Vec<Value> {
        vec![common::runtime(), devices::runtime()]
    }

    fn arguments() -> Result<Vec<OsString>> {
        Ok(Vec::new())
    }
}

pub(crate) type Shared = Controlled<Runtimes>;

/// Returns the pods of a TrainJob.
fn of<'p>(job: &'static str, pods: &'p [Value]) -> impl Iterator<Item = &'p Value> {
    let label = "jobset.sigs.k8s.io/jobset-name";
    pods.iter()
        .filter(move |pod| pod["metadata"]["labels"][label] == job)
}

async fn devices_are_allocated_awaited_and_released(shared: &Shared) -> Result<()> {
    devices::machines(&shared.cluster, 4).await?;
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    let spec = json!({"runtimeRef": {"name": devices::RUNTIME}, "trainer": {"numNodes": 1}});
    for name in ["first", "second"] {
        namespace.create(name, &spec).await?;
        namespace.until_active(name, 1).await?;
    }
    let job_set = namespace.job_set("first").await?;
    let pod = &job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"];
    let env = pod["containers"][0]["env"].as_array();
    let processes = env.and_then(|env| env.iter().find(|one| one["name"] == "PET_NPROC_PER_NODE"));
    ensure!(processes.is_some_and(|one| one["value"] == "4"), "{pod:#}");

    namespace.create("third", &spec).await?;
    let waits = |pods: &[Value]| {
        of("third", pods).any(|pod| {
            let conditions = pod["status"]["conditions"].as_array();
            conditions.into_iter().flatten().any(|one| {
                one["type"] == "PodScheduled"
                    && one["status"] == "False"
                    && one["reason"] == "Unschedulable"
            })
        })
    };
    let pods = namespace.api(&namespace.pods);
    pods.until_all("the third one's pod finds no device", waits)
        .await?;

    // As in an eviction by a queue, the devices go to the waiting TrainJob, and return after it.
    namespace.patch("first", &json!({"suspend": true})).await?;
    namespace.until_active("third", 1).await?;
    namespace.patch("first", &json!({"suspend": false})).await?;
    let waits = |pods: &[Value]| of("first", pods).any(|pod| pod["status"]["phase"] == "Pending");
    pods.until_all("the evicted one's pod waits", waits).await?;
    namespace.fate(Fate::Succeed);
    for name in ["first", "second", "third"] {
        namespace.until_complete(name).await?;
    }
    Ok(())
}

async fn train_job_waits_for_a_missing_template(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    let wish = json!([{"name": "gpu", "resourceClaimTemplateName": "later"}]);
    let spec = json!({"runtimeRef": {"name": "torch"}, "trainer": {"resourceClaimsPerNode": wish}});
    namespace.create("early", &spec).await?;
    namespace
        .event("early", "ResourceClaimTemplate `later`")
        .await?;
    let templates = Resource::namespaced("/apis/resource.k8s.io/v1", "resourceclaimtemplates");
    // This class is separate, because the devices of the other test are all in use.
    let exactly = json!({"deviceClassName": "gpu.later.example.com", "count": 2});
    let request = json!({"name": "gpu", "exactly": exactly});
    let template = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "later"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    });
    let api = namespace.api(&templates);
    api.create(&template, &Write::strict()).await?.accepted()?;
    let job_set = namespace.job_set("early").await?;
    let pod = &job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"];
    let claims = &pod["containers"][0]["resources"]["claims"];
    ensure!(*claims == json!([{"name": "gpu"}]), "{pod:#}");
    let two = json!({"name": "PET_NPROC_PER_NODE", "value": "2"});
    let env = pod["containers"][0]["env"].as_array();
    ensure!(env.is_some_and(|env| env.contains(&two)), "{pod:#}");
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Shared>> {
    tests![
        devices_are_allocated_awaited_and_released,
        train_job_waits_for_a_missing_template,
    ]
}
