//! TrainJobs of torchtune run from creation to their end on a runtime of deploy/, suspended and resumed in between: the initializers run
//! first, the command is complete, and several nodes meet at the host name of the first pod.

use std::{collections::BTreeSet, ffi::OsString};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{Fate, Resource, Test, Write};

use crate::common::{Controlled, Namespace, Setup, runtimes};

/// A runtime of deploy/, and the same for a model that runs on several nodes.
pub(crate) struct Runtimes;

/// The runtime of deploy/.
const SHIPPED: &str = "torchtune-llama3.2-1b";
/// The same for a large model.
const LARGE: &str = "torchtune-llama3.3-70b";

impl Setup for Runtimes {
    fn runtimes() -> Vec<Value> {
        let mut large = runtimes::shipped(SHIPPED);
        large["metadata"]["name"] = LARGE.into();
        let command =
            "/spec/template/spec/replicatedJobs/2/template/spec/template/spec/containers/0/command";
        let words = large.pointer_mut(command).and_then(Value::as_array_mut);
        for word in words.into_iter().flatten() {
            if *word == "llama3_2/1B_full" {
                *word = "llama3_3/70B_full".into();
            }
        }
        vec![runtimes::shipped(SHIPPED), large]
    }

    fn arguments() -> Result<Vec<OsString>> {
        Ok(Vec::new())
    }
}

pub(crate) type Shared = Controlled<Runtimes>;

/// A TrainJob, with the part of its command that depends on it.
struct Job {
    name: &'static str,
    runtime: &'static str,
    nodes: usize,
    args: &'static [&'static str],
    /// The recipe and the configuration.
    line: [&'static str; 2],
}

const JOBS: [Job; 2] = [
    Job {
        name: "adapter",
        runtime: SHIPPED,
        nodes: 1,
        args: &["epochs=1", "model.lora_attn_modules=[q_proj,v_proj]"],
        line: ["lora_finetune_distributed", "llama3_2/1B_lora"],
    },
    Job {
        name: "large",
        runtime: LARGE,
        nodes: 2,
        args: &["epochs=1"],
        line: ["full_finetune_distributed", "llama3_3/70B_full_multinode"],
    },
];

impl Job {
    fn spec(&self) -> Value {
        json!({
            "runtimeRef": {"name": self.runtime},
            "trainer": {"command": ["tune", "run"], "args": self.args, "numNodes": self.nodes},
        })
    }

    fn command(&self) -> Value {
        let name = self.name;
        let [recipe, configuration] = self.line;
        json!([
            "tune",
            "run",
            format!("--rdzv_endpoint={name}-node-0-0.{name}:29500"),
            recipe,
            "--config",
            configuration,
            "output_dir=/workspace/output",
            "tokenizer.path=/workspace/model/original/tokenizer.model",
            "checkpointer.checkpoint_dir=/workspace/model",
        ])
    }

    /// Whether the pod is one of its nodes.
    fn has_node(&self, pod: &Value) -> bool {
        let labels = &pod["metadata"]["labels"];
        labels["jobset.sigs.k8s.io/jobset-name"] == self.name
            && labels["jobset.sigs.k8s.io/replicatedjob-name"] == "node"
    }
}

/// Creates a volume for each TrainJob, for the claims that JobSet creates: no pod starts before its claim is bound.
async fn create_volumes(shared: &Shared) -> Result<()> {
    let volumes = Resource::cluster_wide("/api/v1", "persistentvolumes");
    let volumes = shared.cluster.api(&volumes, "");
    for job in &JOBS {
        let volume = json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": job.name},
            "spec": {
                "capacity": {"storage": "20Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/var/empty"},
            },
        });
        volumes
            .create(&volume, &Write::strict())
            .await?
            .accepted()?;
    }
    Ok(())
}

/// Checks the nodes of a TrainJob, once all exist, against the host names in the cluster.
async fn check_nodes(namespace: &Namespace<'_>, job: &Job) -> Result<()> {
    let all_exist =
        |pods: &[Value]| pods.iter().filter(|pod| job.has_node(pod)).count() == job.nodes;
    let pods = namespace.api(&namespace.pods);
    let pods = pods.until_all("all nodes exist", all_exist).await?;
    let mut host_names = BTreeSet::new();
    for pod in pods.iter().filter(|pod| job.has_node(pod)) {
        let node = &pod["spec"]["containers"][0];
        ensure!(node["command"] == job.command(), "{node:#}");
        ensure!(node["args"] == json!(job.args), "{node:#}");
        let part = |field: &str| pod["spec"][field].as_str().unwrap_or_default();
        host_names.insert(format!("{}.{}", part("hostname"), part("subdomain")));
    }
    let first = format!("{0}-node-0-0.{0}", job.name);
    ensure!(
        host_names.len() == job.nodes && host_names.contains(&first),
        "{host_names:?}"
    );
    Ok(())
}

async fn train_jobs_complete_after_they_were_suspended(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.decide_pods(|pod| match runtimes::replicated_job(pod) {
        "node" => Fate::Hold,
        _ => Fate::Succeed,
    });
    create_volumes(shared).await?;
    for job in &JOBS {
        namespace.create(job.name, &job.spec()).await?;
    }
    for job in &JOBS {
        namespace.until_active(job.name, 1).await?;
        check_nodes(&namespace, job).await?;
        namespace.suspend(job.name).await?;
    }
    let no_nodes = |pods: &[Value]| {
        let is_node = |pod: &Value| JOBS.iter().any(|job| job.has_node(pod));
        !pods.iter().any(is_node)
    };
    namespace
        .api(&namespace.pods)
        .until_all("the nodes are gone", no_nodes)
        .await?;
    for job in &JOBS {
        namespace
            .patch(job.name, &json!({"suspend": false}))
            .await?;
        namespace.until_active(job.name, 1).await?;
        check_nodes(&namespace, job).await?;
    }
    namespace.fate(Fate::Succeed);
    for job in &JOBS {
        namespace.until_complete(job.name).await?;
    }
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Shared>> {
    tests![train_jobs_complete_after_they_were_suspended]
}
