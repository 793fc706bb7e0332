//! PyTorch trains with the runtime of examples/torch-elastic: it goes on while a machine is drained, with the nodes that are left, and takes
//! back the node that was lost. If the first node is lost, training goes on from its checkpoint.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use trainyard_cluster::{Images, Installed, NodeSpec, Resource, Test, Write, eventually};

use crate::{
    common::{Namespace, runtimes},
    frameworks_form_their_groups::Shared,
};

/// The nodes of the TrainJob, and the machines that they run on, one on each.
const NODES: usize = 3;
/// The nodes that are left while a machine is drained: the runtime's minimum.
const LEFT: usize = 2;
const NAME: &str = "llm";
/// The label of the machines of a test.
const POOL: &str = "test.example.com/pool";
/// A folder of the test in every pod.
const SHARED: &str = "/run/shared";

/// The names of the tests, each with the index of the node whose machine is drained.
const DRAINED: [(&str, usize); 2] = [
    ("training_goes_on_while_a_machine_is_drained", NODES - 1),
    (
        "training_goes_on_from_its_checkpoint_after_the_first_node",
        0,
    ),
];

/// Returns the names of the tests.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    DRAINED.into_iter().map(|(name, _)| name)
}

/// Returns the tests, with PyTorch.
pub(crate) fn tests(installed: &Installed) -> Vec<Test<Shared>> {
    let test = |(name, index)| {
        let installed = installed.clone();
        Test::new(name, async move |shared: &Shared| {
            let job = Job::new(shared, &installed).await?;
            let checked = job.check(index).await;
            checked.with_context(|| format!("the pods' logs: {:#?}", job.lines()))
        })
    };
    DRAINED.map(test).into()
}

/// An elastic TrainJob in a namespace of its own, on machines of its own.
struct Job<'a> {
    namespace: Namespace<'a>,
    logs: PathBuf,
    shared: TempDir,
}

impl<'a> Job<'a> {
    async fn new(shared: &'a Shared, installed: &Installed) -> Result<Job<'a>> {
        let namespace = Namespace::new(&shared.cluster).await?;
        let folder = tempfile::tempdir()?;
        let kubelet = shared.cluster.kubelet();
        let image = installed.image.clone().file(folder.path(), SHARED);
        kubelet.run(&namespace.name, Images::new().otherwise(image));
        for index in 0..NODES {
            let name = format!("{}-{index}", namespace.name);
            let mut machine = NodeSpec::large(name);
            let pool = namespace.name.clone();
            machine.labels.insert(POOL.to_owned(), pool);
            kubelet.add_node(&machine).await?;
        }
        namespace
            .create_runtime(runtimes::of_example("torch-elastic"))
            .await?;
        let job = Self {
            logs: kubelet.logs().join(&namespace.name),
            namespace,
            shared: folder,
        };
        job.create(installed).await?;
        Ok(job)
    }

    async fn create(&self, installed: &Installed) -> Result<()> {
        let [launcher, script] = installed.command.as_slice() else {
            anyhow::bail!("{:?}", installed.command);
        };
        let script = Path::new(script).with_file_name("torch_elastic.py");
        let pods = json!({"nodeSelector": {POOL: self.namespace.name}});
        let patch = json!({"name": "node", "template": {"spec": {"template": {"spec": pods}}}});
        let spec = json!({
            "runtimeRef": {"name": "torch-elastic", "kind": "TrainingRuntime"},
            "runtimePatches": [{
                "manager": "test.example.com/pool",
                "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [patch]}}},
            }],
            "trainer": {
                "numNodes": NODES,
                "numProcPerNode": 1,
                "command": [launcher, script],
                "args": ["--hold-until", format!("{SHARED}/go")],
                // How long a group with the minimum of nodes waits for others. The default is 30 seconds.
                "env": [{"name": "PET_RDZV_CONF", "value": "last_call_timeout=5"}],
                "resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}},
            },
        });
        self.namespace.create(NAME, &spec).await?;
        Ok(())
    }

    /// Drains the machine of a node, and returns it when the others have formed a group, or have failed with the first node.
    async fn check(&self, index: usize) -> Result<()> {
        let first = self.until_group(NODES, None).await?;
        self.until_saved(first).await?;
        let machine = self.cordon(index).await?;
        self.evict(index).await?;
        let last = match index {
            0 => first,
            _ => self.until_group(LEFT, Some(first)).await?,
        };
        self.until_saved(last).await?;
        self.set_schedulable(&machine, true).await?;
        self.until_group(NODES, Some(last)).await?;
        fs::write(self.shared.path().join("go"), "")?;
        self.namespace.until_complete(NAME).await?;
        let job_set = self.namespace.job_set(NAME).await?;
        let restarts = job_set["status"]["restarts"].as_i64().unwrap_or_default();
        ensure!(restarts == 0, "{:#}", job_set["status"]);
        Ok(())
    }

    /// Waits until a later step than this one is saved.
    async fn until_saved(&self, step: u64) -> Result<()> {
        let file = self.shared.path().join("go.step");
        eventually(&format!("a step after {step} is saved"), async || {
            let saved = fs::read_to_string(&file).unwrap_or_default();
            let is_later = saved.parse::<u64>().is_ok_and(|saved| saved > step);
            Ok(is_later.then_some(()))
        })
        .await
    }

    /// Waits until a group of this size has begun with a later step than another one. Returns the step.
    async fn until_group(&self, size: usize, after: Option<u64>) -> Result<u64> {
        let begins = format!("group of {size} begins with step ");
        eventually(&format!("{begins}after {after:?}"), async || {
            let lines = self.lines()?;
            let steps = lines.iter().filter_map(|line| {
                let (_, step) = line.split_once(&begins)?;
                step.trim().parse::<u64>().ok()
            });
            Ok(steps.filter(|step| Some(*step) > after).max())
        })
        .await
    }

    /// Returns the lines of all pods' logs.
    fn lines(&self) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for log in crate::frameworks_form_their_groups::files(&self.logs)? {
            let text = fs::read(&log)?;
            lines.extend(String::from_utf8_lossy(&text).lines().map(str::to_owned));
        }
        Ok(lines)
    }

    /// Returns the pod of a node.
    async fn pod(&self, index: usize) -> Result<Value> {
        let pods = self.namespace.api(&self.namespace.pods).items().await?;
        let label = "batch.kubernetes.io/job-completion-index";
        let mut pods = pods.into_iter().filter(|pod| {
            pod["metadata"]["labels"][label] == index.to_string().as_str()
                && pod["status"]["phase"] == "Running"
        });
        pods.next()
            .with_context(|| format!("node {index} has no pod"))
    }

    /// Marks the machine of a node as unschedulable, and returns it.
    async fn cordon(&self, index: usize) -> Result<String> {
        let pod = self.pod(index).await?;
        let machine = pod["spec"]["nodeName"].as_str().context("no machine")?;
        self.set_schedulable(machine, false).await?;
        Ok(machine.to_owned())
    }

    async fn set_schedulable(&self, machine: &str, is_schedulable: bool) -> Result<()> {
        let machines = Resource::cluster_wide("/api/v1", "nodes");
        let patch = json!({"spec": {"unschedulable": !is_schedulable}});
        let machines = self.namespace.api(&machines);
        let patched = machines.merge(machine, &patch, &Write::strict()).await?;
        patched.accepted()?;
        Ok(())
    }

    async fn evict(&self, index: usize) -> Result<()> {
        let pod = self.pod(index).await?;
        let name = pod["metadata"]["name"].as_str().context("no name")?;
        let evictions = Resource::namespaced("/api/v1", &format!("pods/{name}/eviction"));
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name},
        });
        let evictions = self.namespace.api(&evictions);
        let created = evictions.create(&eviction, &Write::strict()).await?;
        created.accepted()?;
        Ok(())
    }
}
