//! Kueue, with its own controller and webhooks, queues TrainJobs of each policy, preempts them for others, and admits them again to other
//! nodes. Pods exist only while Kueue has admitted the TrainJob. They request what it reserved quota for (0.15 reserves
//! for one node), and have the node selector and the tolerations of the flavor to which it is admitted. The JobSet is created once, and only its
//! placement changes.

mod queue;

use std::{env, ffi::OsString, fs};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{
    Cluster, ControlPlane, KueueController, NodeSpec, PodGroups, Shared, Test, eventually,
};

use self::queue::{FLAVORS, Queue, create_cluster_objects};
use crate::common::{Controlled, Setup, differing, is_suspended, runtimes};

/// The policies, each with the number of its pods.
const POLICIES: [(&str, u64); 8] = [
    ("plain", 2),
    ("torch-distributed", 2),
    ("jax-distributed", 2),
    ("xgboost-distributed", 2),
    ("own-launcher", 3),
    (LAUNCHER_NODE, 2),
    ("coscheduling", 3),
    ("volcano", 3),
];
/// Those of which Kueue counts `resourcesPerNode` for another pod (docs/kueue.md).
const MPI: [&str; 2] = ["own-launcher", LAUNCHER_NODE];
/// The launcher is a node.
const LAUNCHER_NODE: &str = "launcher-node";

/// The runtimes whose TrainJobs Kueue never starts, each with the number of pods.
const NEVER_STARTED: [(&str, u64); 2] = [("flux", 2), (TORCHTUNE, 4)];
const TORCHTUNE: &str = "torchtune-llama3.2-1b";
/// What the API server answers when Kueue changes `spec.trainer`.
const IMMUTABLE: &str = "spec.trainer: Invalid value: field is immutable";

/// Those with an initializer. Kueue gives its quota back when it ends. As 0.15 counts one node, that is enough to admit one again that was just
/// preempted.
const WITH_INITIALIZER: [&str; 2] = ["coscheduling", "volcano"];

/// Returns whether this Kueue is 0.15. It reserves quota for one node, whatever `numNodes` is (docs/kueue.md), and contains a Kubeflow Trainer
/// without Flux.
fn is_oldest() -> bool {
    env::var("TRAINYARD_KUEUE").is_ok_and(|release| release == "0.15")
}

/// The CRDs of PodGroups, and a runtime of each policy whose containers request a CPU.
pub(crate) struct EachPolicy;

impl Setup for EachPolicy {
    fn runtimes() -> Vec<Value> {
        // Kueue counts the nodes of MPI by their Job, and not by `mlPolicy.numNodes` (docs/kueue.md).
        let mpi = |name, launcher_is_node| {
            let mut runtime = runtimes::mpi(name, launcher_is_node);
            if let Some(policy) = runtime["spec"]["mlPolicy"].as_object_mut() {
                policy.remove("numNodes");
            }
            runtime
        };
        let shipped = POLICIES.map(|(name, _)| name);
        let shipped = shipped
            .into_iter()
            .filter(|name| name.ends_with("-distributed"));
        let mut all: Vec<_> = shipped.map(runtimes::shipped).collect();
        let other = [
            runtimes::plain(),
            runtimes::flux(),
            runtimes::shipped(TORCHTUNE),
        ];
        all.extend(other);
        all.extend([mpi(MPI[0], false), mpi(MPI[1], true)]);
        all.extend(PodGroups::ALL.map(runtimes::gang));
        all.into_iter().map(with_requests).collect()
    }

    fn kinds() -> Result<Vec<Value>> {
        PodGroups::ALL
            .map(PodGroups::definition)
            .into_iter()
            .collect()
    }

    fn arguments() -> Result<Vec<OsString>> {
        Ok(vec!["--leader-elect=false".into()])
    }
}

fn with_requests(mut runtime: Value) -> Value {
    let jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"].as_array_mut();
    for job in jobs.into_iter().flatten() {
        let pod = &mut job["template"]["spec"]["template"]["spec"];
        for container in pod["containers"].as_array_mut().into_iter().flatten() {
            container["resources"] = json!({"requests": {"cpu": 1}});
        }
    }
    runtime
}

/// A cluster with Trainyard and Kueue, and nodes of each flavor.
pub(crate) struct Queued {
    controlled: Controlled<EachPolicy>,
    kueue: KueueController,
}

impl Shared for Queued {
    fn start() -> Result<Self> {
        let controlled = Controlled::<EachPolicy>::start()?;
        let plane = controlled.plane();
        let kueue = plane.block_on(async {
            for flavor in FLAVORS {
                let mut node = NodeSpec::large(format!("{flavor}-0"));
                node.labels.insert(queue::label(flavor), "yes".to_owned());
                controlled.cluster.kubelet().add_node(&node).await?;
            }
            let kueue = KueueController::start(plane).await?;
            create_cluster_objects(&controlled.cluster).await?;
            anyhow::Ok(kueue)
        })?;
        Ok(Self { controlled, kueue })
    }

    fn plane(&self) -> &ControlPlane {
        self.controlled.plane()
    }

    fn still_runs(&self) -> Result<()> {
        self.controlled.still_runs()?;
        self.kueue.still_runs()
    }

    fn last_words(&self) -> String {
        self.controlled.last_words() + &self.kueue.last_words()
    }
}

/// Two TrainJobs of low priority and one of high priority share a queue that has quota for one of them, and later for a second one.
async fn preempts(cluster: &Cluster, policy: &'static str, pods: u64) -> Result<()> {
    let [reserved, spot] = FLAVORS;
    let queue = Queue::new(cluster, policy, pods).await?;
    let namespace = &queue.namespace;
    queue.create("first", "low").await?;
    queue.runs("first", reserved).await?;
    let first = namespace.job_set("first").await?;

    queue.create("waits", "low").await?;
    queue.waits("waits").await?;

    queue.create("urgent", "high").await?;
    queue.runs("urgent", reserved).await?;
    namespace
        .until("first", "it is preempted", is_suspended)
        .await?;
    queue.waits("first").await?;

    queue.give_quota(spot).await?;
    queue.runs("first", spot).await?;
    let resumed = namespace.job_set("first").await?;
    ensure!(
        resumed["metadata"]["uid"] == first["metadata"]["uid"],
        "the JobSet was recreated: {resumed:#}"
    );
    let mut changed = differing(&first["spec"], &resumed["spec"]);
    changed.retain(|path| !path.contains("/nodeSelector") && !path.contains("/tolerations"));
    ensure!(
        changed.is_empty(),
        "more than the placement changed: {changed:?}"
    );
    queue.waits("waits").await?;

    queue.end("urgent").await?;
    queue.runs("waits", reserved).await?;
    queue.end("first").await?;
    queue.end("waits").await
}

async fn train_jobs_of_each_policy(shared: &Queued) -> Result<()> {
    let stay_preempted = |policy: &str| !(is_oldest() && WITH_INITIALIZER.contains(&policy));
    let all = POLICIES.into_iter();
    let all = all.filter(|(policy, _)| stay_preempted(policy));
    let all = all.map(async |(policy, pods)| {
        let preempted = preempts(&shared.controlled.cluster, policy, pods).await;
        preempted.with_context(|| policy.to_owned())
    });
    let results = futures_util::future::join_all(all).await;
    let failed = results.into_iter().filter_map(Result::err);
    let texts: Vec<_> = failed.map(|error| format!("{error:#}")).collect();
    ensure!(texts.is_empty(), "{}", texts.join("\n\n"));
    Ok(())
}

/// Kueue admits them, but changes their `spec.trainer` in the request that starts them, because the code of the Kubeflow Trainer in it does
/// (docs/kueue.md).
async fn flux_and_torchtune_are_never_started(shared: &Queued) -> Result<()> {
    for (runtime, pods) in NEVER_STARTED.into_iter().skip(usize::from(is_oldest())) {
        let queue = Queue::new(&shared.controlled.cluster, runtime, pods).await?;
        queue.create("first", "low").await?;
        let name = &queue.namespace.name;
        let log = shared.plane().folder().join("kueue.log");
        eventually(&format!("Kueue fails to start {runtime}"), async || {
            let log = fs::read_to_string(&log)?;
            let fails = |line: &str| line.contains(name) && line.contains(IMMUTABLE);
            Ok(log.lines().any(fails).then_some(()))
        })
        .await?;
        queue.is_admitted_without_pods("first").await?;
    }
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Queued>> {
    vec![
        Test::new("train_jobs_of_each_policy", train_jobs_of_each_policy),
        Test::new(
            "flux_and_torchtune_are_never_started",
            flux_and_torchtune_are_never_started,
        ),
    ]
}
