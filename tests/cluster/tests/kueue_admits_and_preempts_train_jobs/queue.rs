//! A queue in a namespace of its own.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{Cluster, Fate, Resource, Write, eventually};

use super::{LAUNCHER_NODE, MPI, TORCHTUNE, is_oldest};
use crate::common::{Namespace, is, is_running, runtimes};

/// The version that all releases serve.
const API_VERSION: &str = "kueue.x-k8s.io/v1beta1";
const ROOT: &str = "/apis/kueue.x-k8s.io/v1beta1";
const QUEUE: &str = "queue";
/// The flavors of nodes, in the order in which Kueue tries them.
pub(super) const FLAVORS: [&str; 2] = ["reserved", "spot"];

/// Returns the label of the nodes of a flavor, which is also the taint that its pods tolerate. Each flavor has another key, so that what is
/// left of the one before is seen.
pub(super) fn label(flavor: &str) -> String {
    format!("example.com/{flavor}")
}

fn toleration(flavor: &str) -> Value {
    json!({"key": label(flavor), "operator": "Exists", "effect": "NoSchedule"})
}

/// Creates what all queues share.
pub(super) async fn create_cluster_objects(cluster: &Cluster) -> Result<()> {
    for flavor in FLAVORS {
        let spec = json!({
            "nodeLabels": {label(flavor): "yes"}, "tolerations": [toleration(flavor)],
        });
        let flavor = object("ResourceFlavor", flavor, "spec", &spec);
        create(cluster, "resourceflavors", &flavor).await?;
    }
    for (name, value) in [("low", 1), ("high", 100)] {
        let class = object("WorkloadPriorityClass", name, "value", &json!(value));
        create(cluster, "workloadpriorityclasses", &class).await?;
    }
    Ok(())
}

fn object(kind: &str, name: &str, key: &str, content: &Value) -> Value {
    json!({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, key: content})
}

async fn create(cluster: &Cluster, plural: &str, object: &Value) -> Result<()> {
    let kind = Resource::cluster_wide(ROOT, plural);
    let kind = cluster.api(&kind, "");
    kind.create(object, &Write::strict()).await?.accepted()?;
    Ok(())
}

/// A ClusterQueue and its LocalQueue.
pub(super) struct Queue<'a> {
    pub(super) namespace: Namespace<'a>,
    cluster: &'a Cluster,
    runtime: &'static str,
    /// The number of pods of each TrainJob.
    pods: u64,
}

impl<'a> Queue<'a> {
    /// Creates them, with quota for this number of pods on nodes of the first flavor.
    pub(super) async fn new(
        cluster: &'a Cluster,
        runtime: &'static str,
        pods: u64,
    ) -> Result<Self> {
        let namespace = Namespace::new(cluster).await?;
        let this = Self {
            namespace,
            cluster,
            runtime,
            pods,
        };
        this.ends("");
        let name = &this.namespace.name;
        let queue = object("ClusterQueue", name, "spec", &this.spec(&[FLAVORS[0]]));
        create(cluster, "clusterqueues", &queue).await?;
        let queues = Resource::namespaced(ROOT, "localqueues");
        let queue = object("LocalQueue", QUEUE, "spec", &json!({"clusterQueue": name}));
        let created = this
            .namespace
            .api(&queues)
            .create(&queue, &Write::strict())
            .await?;
        created.accepted()?;
        Ok(this)
    }

    /// Returns the spec of the ClusterQueue with quota for one TrainJob on nodes of each of these flavors.
    fn spec(&self, flavors: &[&str]) -> Value {
        let flavors = FLAVORS.map(|flavor| {
            let pods = match flavors.contains(&flavor) {
                true => self.reserved(),
                false => 0,
            };
            let quota = [
                json!({"name": "cpu", "nominalQuota": 1000}),
                json!({"name": "pods", "nominalQuota": pods}),
            ];
            json!({"name": flavor, "resources": quota})
        });
        json!({
            "namespaceSelector": {}, "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [{"coveredResources": ["cpu", "pods"], "flavors": flavors}],
        })
    }

    /// Returns the number of pods for which Kueue reserves quota. There are two nodes, of which one may be the launcher.
    fn reserved(&self) -> u64 {
        let second_node = u64::from(is_oldest() && self.runtime != LAUNCHER_NODE);
        self.pods - second_node
    }

    /// Gives quota for one TrainJob on nodes of this flavor too.
    pub(super) async fn give_quota(&self, flavor: &str) -> Result<()> {
        let kind = Resource::cluster_wide(ROOT, "clusterqueues");
        let patch = json!({"spec": self.spec(&[FLAVORS[0], flavor])});
        let queues = self.cluster.api(&kind, "");
        let write = Write::strict();
        let patched = queues.merge(&self.namespace.name, &patch, &write);
        patched.await?.accepted()?;
        Ok(())
    }

    /// Creates a TrainJob in the queue.
    pub(super) async fn create(&self, name: &str, priority: &str) -> Result<()> {
        let (nodes, command) = match self.runtime {
            TORCHTUNE => (1, ["tune", "run"]),
            _ => (2, ["mpirun", "lmp"]),
        };
        let mut trainer = json!({"numNodes": nodes, "command": command});
        if !MPI.contains(&self.runtime) {
            trainer["resourcesPerNode"] = json!({"requests": {"cpu": 2}});
        }
        let labels = json!({
            "kueue.x-k8s.io/queue-name": QUEUE, "kueue.x-k8s.io/priority-class": priority,
        });
        let job = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": name, "labels": labels},
            "spec": {"runtimeRef": {"name": self.runtime}, "trainer": trainer},
        });
        let jobs = self.namespace.api(&self.namespace.jobs);
        jobs.create(&job, &Write::strict()).await?.accepted()?;
        Ok(())
    }

    /// Returns the Workload of a TrainJob, by which Kueue queues it.
    async fn workload(&self, name: &str) -> Result<Value> {
        let kind = Resource::namespaced(ROOT, "workloads");
        let all = self.namespace.api(&kind).items().await?;
        let is_its = |workload: &Value| {
            list(workload, "/metadata/ownerReferences").any(|owner| owner["name"] == name)
        };
        Ok(all.into_iter().find(is_its).unwrap_or_default())
    }

    /// Waits until all pods of a TrainJob run, and checks that they are placed on nodes of the flavor and on no others, and request what Kueue
    /// reserved.
    pub(super) async fn runs(&self, name: &str, flavor: &str) -> Result<()> {
        self.namespace.until(name, "it runs", is_running).await?;
        let what = format!("{name} has {} pods", self.pods);
        let all = self.pods_until(name, &what, |pods| pods.len() as u64 == self.pods);
        let all = all.await?;
        let workload = self.workload(name).await?;
        for pod in all.iter().filter(|pod| !has_ended(pod)) {
            ensure!(
                pod["spec"]["nodeSelector"] == json!({label(flavor): "yes"}),
                "{pod:#}"
            );
            ensure!(tolerated(pod) == [&toleration(flavor)], "{pod:#}");
        }
        for set in list(&workload, "/status/admission/podSetAssignments") {
            let of_set = |pod: &&Value| {
                pod["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"] == set["name"]
            };
            let mut pods: Vec<_> = all.iter().filter(of_set).collect();
            if is_oldest() && set["name"] == "node" {
                pods.truncate(1);
            }
            let is_same =
                set["count"] == pods.len() && cpus(&set["resourceUsage"]) == requested(&pods);
            // Kueue reserves nothing again for pods that have ended.
            ensure!(
                is_same || pods.iter().all(|pod| has_ended(pod)),
                "the pods {pods:#?} request other than {set:#}"
            );
        }
        ensure!(has_condition(&workload, "Admitted", "True"), "{workload:#}");
        Ok(())
    }

    /// Waits until Kueue has no quota for a TrainJob, and none of its pods is left except for those that have succeeded.
    pub(super) async fn waits(&self, name: &str) -> Result<()> {
        eventually(&format!("{name} is pending"), async || {
            let workload = self.workload(name).await?;
            Ok(has_condition(&workload, "QuotaReserved", "False").then_some(()))
        })
        .await?;
        let is_waiting =
            |job: &Value| is(job, "Suspended", "True") && job["spec"]["suspend"] == true;
        self.namespace.until(name, "it waits", is_waiting).await?;
        let what = format!("{name} has no pods");
        self.pods_until(name, &what, |pods| pods.iter().all(|pod| has_ended(pod)))
            .await?;
        Ok(())
    }

    /// Checks that Kueue has admitted a TrainJob that is suspended and has no pods.
    pub(super) async fn is_admitted_without_pods(&self, name: &str) -> Result<()> {
        let workload = self.workload(name).await?;
        ensure!(has_condition(&workload, "Admitted", "True"), "{workload:#}");
        let job = self.namespace.api(&self.namespace.jobs).get(name).await?;
        let job = job.accepted()?;
        ensure!(job["spec"]["suspend"] == true, "{job:#}");
        let pods = self.namespace.api(&self.namespace.pods).items().await?;
        ensure!(pods.is_empty(), "{pods:#?}");
        Ok(())
    }

    /// Waits until this holds for the pods of a TrainJob, and returns them.
    async fn pods_until(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&[&Value]) -> bool,
    ) -> Result<Vec<Value>> {
        let is_its =
            |pod: &&Value| pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] == name;
        let pods = self.namespace.api(&self.namespace.pods);
        let all = pods.until_all(what, |all| {
            holds(&all.iter().filter(is_its).collect::<Vec<_>>())
        });
        let mut all = all.await?;
        all.retain(|pod| is_its(&pod));
        Ok(all)
    }

    /// Lets a TrainJob complete, and waits until Kueue counts it as finished.
    pub(super) async fn end(&self, name: &'static str) -> Result<()> {
        self.ends(name);
        self.namespace.until_complete(name).await?;
        eventually(&format!("{name} is finished"), async || {
            let workload = self.workload(name).await?;
            Ok(has_condition(&workload, "Finished", "True").then_some(()))
        })
        .await
    }

    /// Lets the pods of this TrainJob end, except for the SSH servers of MPI's nodes, and initializers.
    fn ends(&self, name: &'static str) {
        let is_mpi = MPI.contains(&self.runtime);
        self.namespace.decide_pods(move |pod| {
            let job = runtimes::replicated_job(pod);
            let is_server = is_mpi && job == "node";
            let ends = runtimes::job_set(pod) == name && !is_server;
            if ends || job == "dataset-initializer" {
                Fate::Succeed
            } else {
                Fate::Hold
            }
        });
    }
}

fn list<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    let items = value.pointer(pointer).and_then(Value::as_array);
    items.into_iter().flatten()
}

fn has_condition(object: &Value, kind: &str, status: &str) -> bool {
    list(object, "/status/conditions").any(|it| it["type"] == kind && it["status"] == status)
}

fn has_ended(pod: &Value) -> bool {
    pod["status"]["phase"] == "Succeeded"
}

/// Returns the tolerations of a pod, without those that Kubernetes adds to all pods.
fn tolerated(pod: &Value) -> Vec<&Value> {
    let added = |toleration: &&Value| {
        let key = toleration["key"].as_str().unwrap_or_default();
        key.starts_with("node.kubernetes.io/")
    };
    let all = list(pod, "/spec/tolerations");
    all.filter(|toleration| !added(toleration)).collect()
}

/// Returns the CPUs that pods request in whole.
fn requested(pods: &[&Value]) -> u64 {
    let containers = pods.iter().flat_map(|pod| list(pod, "/spec/containers"));
    containers
        .map(|container| cpus(&container["resources"]["requests"]))
        .sum()
}

fn cpus(resources: &Value) -> u64 {
    resources["cpu"]
        .as_str()
        .and_then(|cpu| cpu.parse().ok())
        .unwrap_or_default()
}
