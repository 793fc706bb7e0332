//! Kueue, with its own controller and webhooks, queues TrainJobs of each policy, admits them to a flavor of nodes, preempts them for others,
//! and admits them again. Their JobSets are created once. Pods exist only while Kueue has admitted the TrainJob, as many as it reserved quota
//! for, and each on the nodes of the flavor.
#![allow(clippy::indexing_slicing)]

mod queue;

use std::{marker::PhantomData, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{
    Cluster, ControlPlane, Fate, KueueController, KueueRelease, NodeSpec, PodGroups, Shared, Test,
    Trainyard,
};

use self::queue::{FLAVOR, Queue, create_cluster_objects};
use crate::common::{is_running, is_suspended, prepare, runtimes};

/// The policies, each with the number of its pods.
const POLICIES: [(&str, u64); 9] = [
    ("plain", 2),
    ("torch-distributed", 2),
    ("jax-distributed", 2),
    ("xgboost-distributed", 2),
    ("own-launcher", 3),
    ("launcher-node", 2),
    ("flux", 2),
    ("coscheduling", 3),
    ("volcano", 3),
];

/// A release of Kueue.
pub(crate) trait Release: Send + Sync + 'static {
    const RELEASE: KueueRelease;
}

pub(crate) struct Newest;
pub(crate) struct Oldest;

impl Release for Newest {
    const RELEASE: KueueRelease = KueueRelease::Newest;
}

impl Release for Oldest {
    const RELEASE: KueueRelease = KueueRelease::Oldest;
}

/// A cluster with Kueue and Trainyard.
pub(crate) struct Queued<R> {
    cluster: Cluster,
    kueue: KueueController,
    trainyard: Trainyard,
    release: PhantomData<R>,
}

impl<R: Release> Shared for Queued<R> {
    fn start() -> Result<Self> {
        let kinds = PodGroups::ALL.map(PodGroups::definition);
        let cluster = Cluster::start_with(kinds.into_iter().collect::<Result<_>>()?)?;
        let account = prepare(&cluster, &runtimes())?;
        let plane = cluster.plane();
        let (kueue, trainyard) = plane.block_on(async {
            for node in ["reserved-0", "reserved-1"] {
                let mut node = NodeSpec::large(node);
                let (key, value) = FLAVOR;
                node.labels.insert(key.to_owned(), value.to_owned());
                cluster.kubelet().add_node(&node).await?;
            }
            let kueue = KueueController::start(plane, R::RELEASE).await?;
            create_cluster_objects(&cluster).await?;
            let trainyard = start(plane, &account).await?;
            anyhow::Ok((kueue, trainyard))
        })?;
        Ok(Self {
            cluster,
            kueue,
            trainyard,
            release: PhantomData,
        })
    }

    fn plane(&self) -> &ControlPlane {
        self.cluster.plane()
    }

    fn still_runs(&self) -> Result<()> {
        self.cluster.still_runs()?;
        self.kueue.still_runs()?;
        self.trainyard.process().still_runs()
    }

    fn last_words(&self) -> String {
        self.cluster.kubelet().last_words() + &self.kueue.last_words()
    }
}

async fn start(plane: &ControlPlane, account: &PathBuf) -> Result<Trainyard> {
    Trainyard::start(plane, account, ["--leader-elect=false"]).await
}

/// Returns a runtime of each policy. Kueue counts the nodes of MPI by their Job, and not by `mlPolicy.numNodes` (docs/kueue.md).
fn runtimes() -> Vec<Value> {
    let mpi = |name, launcher_is_node| {
        let mut runtime = runtimes::mpi(name, launcher_is_node);
        if let Some(policy) = runtime["spec"]["mlPolicy"].as_object_mut() {
            policy.remove("numNodes");
        }
        runtime
    };
    let gangs = PodGroups::ALL.map(runtimes::gang);
    let shipped = [
        "torch-distributed",
        "jax-distributed",
        "xgboost-distributed",
    ];
    let mut all: Vec<_> = shipped.map(runtimes::shipped).into();
    all.extend([runtimes::plain(), runtimes::flux()]);
    all.extend([mpi("own-launcher", false), mpi("launcher-node", true)]);
    all.extend(gangs);
    all
}

/// Two TrainJobs of low priority and one of high priority share a queue that has quota for one.
async fn preempts(cluster: &Cluster, policy: &str, pods: u64) -> Result<()> {
    let queue = Queue::new(cluster, pods).await?;
    let namespace = &queue.namespace;
    queue.create("first", policy, "low").await?;
    namespace.until("first", "it runs", is_running).await?;
    queue.has_pods("first", pods).await?;
    let first = namespace.job_set("first").await?;

    queue.create("waits", policy, "low").await?;
    queue.until_pending("waits").await?;
    namespace.until("waits", "it waits", is_waiting).await?;
    queue.has_pods("waits", 0).await?;

    queue.create("urgent", policy, "high").await?;
    namespace.until("urgent", "it runs", is_running).await?;
    queue.has_pods("urgent", pods).await?;
    namespace.until("first", "it waits", is_suspended).await?;
    queue.has_pods("first", 0).await?;

    queue.end("urgent").await?;
    namespace
        .until("first", "it runs again", is_running)
        .await?;
    queue.has_pods("first", pods).await?;
    let resumed = namespace.job_set("first").await?;
    ensure!(
        resumed["metadata"]["uid"] == first["metadata"]["uid"],
        "the JobSet was recreated: {resumed:#}"
    );
    queue.has_pods("waits", 0).await?;

    queue.end("first").await?;
    namespace.until("waits", "it runs", is_running).await?;
    queue.has_pods("waits", pods).await?;
    queue.end("waits").await?;
    queue.all_are_finished(&["first", "waits", "urgent"]).await
}

fn is_waiting(job: &Value) -> bool {
    crate::common::is(job, "Suspended", "True") && job["spec"]["suspend"] == json!(true)
}

async fn train_jobs_of_each_policy<R: Release>(shared: &Queued<R>) -> Result<()> {
    let all = POLICIES.map(async |(policy, pods)| {
        preempts(&shared.cluster, policy, pods)
            .await
            .with_context(|| format!("{policy} with {:?}", R::RELEASE))
    });
    let results = futures_util::future::join_all(all).await;
    let failed: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    let texts: Vec<_> = failed.iter().map(|error| format!("{error:#}")).collect();
    ensure!(texts.is_empty(), "{}", texts.join("\n\n"));
    let _ = Fate::Hold;
    Ok(())
}

pub(crate) fn tests<R: Release>() -> Vec<Test<Queued<R>>> {
    let name = format!(
        "train_jobs_of_each_policy_with_the_{:?}_release",
        R::RELEASE
    );
    vec![Test::new(
        name.to_lowercase(),
        train_jobs_of_each_policy::<R>,
    )]
}
