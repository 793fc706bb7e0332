//! A queue with quota for one TrainJob, in a namespace of its own.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{Cluster, Fate, Resource, Write, eventually};

use crate::common::{Namespace, runtimes};

/// The version that both releases serve.
const API_VERSION: &str = "kueue.x-k8s.io/v1beta1";
const ROOT: &str = "/apis/kueue.x-k8s.io/v1beta1";
/// The label of the nodes that the quota is about.
pub(super) const FLAVOR: (&str, &str) = ("example.com/nodes", "reserved");
const QUEUE: &str = "queue";

fn object(kind: &str, name: &str, content: &Value) -> Value {
    let mut object = json!({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}});
    for (key, value) in content.as_object().into_iter().flatten() {
        object[key] = value.clone();
    }
    object
}

fn workloads() -> Resource {
    Resource::namespaced(ROOT, "workloads")
}

/// Creates what all queues share.
pub(super) async fn create_cluster_objects(cluster: &Cluster) -> Result<()> {
    let (key, value) = FLAVOR;
    let flavor = json!({"spec": {"nodeLabels": {key: value}}});
    create(
        cluster,
        "resourceflavors",
        &object("ResourceFlavor", value, &flavor),
    )
    .await?;
    for (name, value) in [("low", 1), ("high", 100)] {
        let class = object("WorkloadPriorityClass", name, &json!({"value": value}));
        create(cluster, "workloadpriorityclasses", &class).await?;
    }
    Ok(())
}

async fn create(cluster: &Cluster, plural: &str, object: &Value) -> Result<()> {
    let kind = Resource::cluster_wide(ROOT, plural);
    let api = cluster.api(&kind, "");
    api.create(object, &Write::strict()).await?.accepted()?;
    Ok(())
}

/// A ClusterQueue and its LocalQueue.
pub(super) struct Queue<'a> {
    pub(super) namespace: Namespace<'a>,
    cluster: &'a Cluster,
}

impl<'a> Queue<'a> {
    /// Creates them, with quota for this number of pods.
    pub(super) async fn new(cluster: &'a Cluster, pods: u64) -> Result<Self> {
        let namespace = Namespace::new(cluster).await?;
        namespace.fate(Fate::Hold);
        namespace.decide_pods(|pod| match runtimes::replicated_job(pod) {
            "dataset-initializer" => Fate::Succeed,
            _ => Fate::Hold,
        });
        let quota = json!([
            {"name": "cpu", "nominalQuota": 1000},
            {"name": "pods", "nominalQuota": pods},
        ]);
        let spec = json!({
            "namespaceSelector": {}, "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [{
                "coveredResources": ["cpu", "pods"],
                "flavors": [{"name": FLAVOR.1, "resources": quota}],
            }],
        });
        let name = namespace.name.clone();
        let of_cluster = object("ClusterQueue", &name, &json!({"spec": spec}));
        create(cluster, "clusterqueues", &of_cluster).await?;
        let queues = Resource::namespaced(ROOT, "localqueues");
        let queue = object(
            "LocalQueue",
            QUEUE,
            &json!({"spec": {"clusterQueue": name}}),
        );
        let created = namespace
            .api(&queues)
            .create(&queue, &Write::strict())
            .await?;
        created.accepted()?;
        Ok(Self { namespace, cluster })
    }

    /// Creates a TrainJob in the queue.
    pub(super) async fn create(&self, name: &str, runtime: &str, priority: &str) -> Result<()> {
        let labels = json!({
            "kueue.x-k8s.io/queue-name": QUEUE, "kueue.x-k8s.io/priority-class": priority,
        });
        let job = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "runtimeRef": {"name": runtime},
                "trainer": {"numNodes": 2, "command": ["mpirun", "lmp"]},
            },
        });
        let jobs = self.namespace.api(&self.namespace.jobs);
        jobs.create(&job, &Write::strict()).await?.accepted()?;
        Ok(())
    }

    /// Returns the Workload of a TrainJob.
    async fn workload(&self, name: &str) -> Result<Option<Value>> {
        let kind = workloads();
        let all = self.namespace.api(&kind).items().await?;
        let is_its = |workload: &Value| {
            let owners = workload["metadata"]["ownerReferences"].as_array();
            let mut owners = owners.into_iter().flatten();
            owners.any(|owner| owner["kind"] == "TrainJob" && owner["name"] == name)
        };
        Ok(all.into_iter().find(is_its))
    }

    /// Waits until Kueue has found that there is no quota for a TrainJob.
    pub(super) async fn until_pending(&self, name: &str) -> Result<()> {
        eventually(&format!("{name} is pending"), async || {
            let workload = self.workload(name).await?.unwrap_or_default();
            Ok(has_condition(&workload, "QuotaReserved", "False").then_some(()))
        })
        .await
    }

    /// Waits until a TrainJob has this number of pods that have not ended, each on the nodes of the flavor, and Kueue has reserved quota for as
    /// many. Without pods, there is no quota.
    pub(super) async fn has_pods(&self, name: &str, count: u64) -> Result<()> {
        let pods = self.namespace.api(&self.namespace.pods);
        let of = |pod: &&Value| pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] == name;
        let has_ended = |pod: &Value| pod["status"]["phase"] == "Succeeded";
        let what = format!("{name} has {count} pods");
        let all = pods.until_all(&what, |pods| {
            let of_it = || pods.iter().filter(of);
            match count {
                0 => of_it().all(has_ended),
                _ => of_it().count() as u64 == count,
            }
        });
        let all = all.await?;
        let (key, value) = FLAVOR;
        for pod in all.iter().filter(of) {
            ensure!(pod["spec"]["nodeSelector"][key] == value, "{pod:#}");
        }
        let workload = self.workload(name).await?.unwrap_or_default();
        let assigned = workload["status"]["admission"]["podSetAssignments"].as_array();
        let assigned = assigned.into_iter().flatten();
        let reserved: u64 = assigned.filter_map(|set| set["count"].as_u64()).sum();
        ensure!(reserved == count, "reserved {reserved}: {workload:#}");
        let is_admitted = has_condition(&workload, "Admitted", "True");
        ensure!(is_admitted == (count > 0), "{workload:#}");
        Ok(())
    }

    /// Lets a TrainJob complete. The SSH servers of MPI's nodes do not exit.
    pub(super) async fn end(&self, name: &'static str) -> Result<()> {
        self.namespace.decide_pods(move |pod| {
            let job = runtimes::replicated_job(pod);
            let is_ending = runtimes::job_set(pod) == name;
            match job {
                "dataset-initializer" => Fate::Succeed,
                "launcher" if is_ending => Fate::Succeed,
                "node" if is_ending && !serves(pod) => Fate::Succeed,
                _ => Fate::Hold,
            }
        });
        self.namespace.until_complete(name).await.map(drop)
    }

    /// Waits until Kueue counts the TrainJobs as finished.
    pub(super) async fn all_are_finished(&self, names: &[&str]) -> Result<()> {
        for name in names {
            eventually(&format!("{name} is finished"), async || {
                let workload = self.workload(name).await?.unwrap_or_default();
                Ok(has_condition(&workload, "Finished", "True").then_some(()))
            })
            .await?;
        }
        let kind = Resource::cluster_wide(ROOT, "clusterqueues");
        let queues = self.cluster.api(&kind, "");
        let is_free = |queue: &Value| queue["status"]["reservingWorkloads"] == 0;
        let free = queues.until(&self.namespace.name, "it is free", is_free);
        free.await.map(drop)
    }
}

/// Returns whether a pod of a TrainJob with a launcher is one of its SSH servers.
fn serves(pod: &k8s_openapi::api::core::v1::Pod) -> bool {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    containers
        .flat_map(|container| container.command.iter().flatten())
        .any(|word| word == "sshd")
}

fn has_condition(object: &Value, kind: &str, status: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == kind && it["status"] == status)
}
