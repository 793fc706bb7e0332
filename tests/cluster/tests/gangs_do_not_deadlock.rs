//! Two TrainJobs that do not fit into a cluster at the same time run one after the other: kube-scheduler with coscheduling places all nodes of
//! a TrainJob or none, by the PodGroups that the policy emits.

use std::ffi::OsString;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use trainyard_cluster::{ControlPlane, Fate, GangScheduler, PodGroups, Test};

use crate::common::{Controlled, Namespace, Setup, runtimes};

/// The CRD of PodGroups, and runtimes whose nodes each need a whole machine.
pub(crate) struct Gangs;

impl Setup for Gangs {
    fn runtimes() -> Vec<Value> {
        let runtime = runtimes::gang(PodGroups::Coscheduling);
        vec![with_accelerators(runtime)]
    }

    fn kinds() -> Result<Vec<Value>> {
        Ok(vec![PodGroups::Coscheduling.definition()?])
    }

    /// No runtime names the scheduler: the operator does.
    fn arguments() -> Result<Vec<OsString>> {
        let folder = tempfile::tempdir()?.keep();
        let policy = folder.join("policy.yaml");
        let name = GangScheduler::NAME;
        let text = json!({
            "apiVersion": "trainyard.dev/v1alpha1",
            "kind": "PolicyFile",
            "plugins": [{"name": "coscheduling", "config": {"schedulerName": name}}],
        });
        std::fs::write(&policy, text.to_string())?;
        Ok(vec!["--policy".into(), policy.into()])
    }
}

/// A cluster with the controller and a second scheduler.
pub(crate) struct Shared {
    controlled: Controlled<Gangs>,
    scheduler: GangScheduler,
}

impl trainyard_cluster::Shared for Shared {
    fn start() -> Result<Self> {
        let controlled = Controlled::<Gangs>::start()?;
        let plane = controlled.plane();
        let scheduler = plane.block_on(GangScheduler::start(plane))?;
        Ok(Self {
            controlled,
            scheduler,
        })
    }

    fn plane(&self) -> &ControlPlane {
        self.controlled.plane()
    }

    fn still_runs(&self) -> Result<()> {
        self.controlled.still_runs()?;
        self.scheduler.still_runs()
    }
}

/// The nodes of each TrainJob, of which the cluster has four.
const NODES: usize = 3;
const JOBS: [&str; 2] = ["first", "second"];

/// Lets each node request all accelerators of a machine.
fn with_accelerators(mut runtime: Value) -> Value {
    let jobs = &mut runtime["spec"]["template"]["spec"]["replicatedJobs"];
    let pod = &mut jobs[1]["template"]["spec"]["template"]["spec"];
    pod["containers"][0]["resources"] = json!({"limits": {"nvidia.com/gpu": 8}});
    runtime
}

fn job_set(pod: &Value) -> &str {
    let label = &pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"];
    label.as_str().unwrap_or_default()
}

/// Returns the pods of a TrainJob's nodes.
fn nodes<'p>(pods: &'p [Value], job: &'p str) -> impl Iterator<Item = &'p Value> {
    pods.iter().filter(move |pod| {
        let replicated_job = &pod["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"];
        job_set(pod) == job && replicated_job == "node"
    })
}

/// Returns the number of nodes of a TrainJob that have a machine.
fn placed(pods: &[Value], job: &str) -> usize {
    nodes(pods, job)
        .filter(|pod| pod["spec"]["nodeName"].is_string() && pod["status"]["phase"] == "Running")
        .count()
}

/// Returns the number of nodes of a TrainJob for which the scheduler has found no machine.
fn unschedulable(pods: &[Value], job: &str) -> usize {
    let is_unschedulable = |pod: &&Value| {
        let conditions = pod["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|it| it["type"] == "PodScheduled" && it["status"] == "False")
    };
    nodes(pods, job).filter(is_unschedulable).count()
}

/// Lets the nodes of these TrainJobs succeed. Those of the others run until then.
fn let_end(namespace: &Namespace<'_>, jobs: &[&'static str]) {
    let jobs = jobs.to_vec();
    namespace.decide_pods(move |pod: &Pod| {
        let job = pod.labels().get("jobset.sigs.k8s.io/jobset-name");
        let is_over = job.is_some_and(|job| jobs.contains(&&**job));
        match runtimes::replicated_job(pod) {
            "node" if !is_over => Fate::Hold,
            _ => Fate::Succeed,
        }
    });
}

async fn gangs_that_do_not_fit_together_run_one_after_the_other(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.controlled.cluster).await?;
    let_end(&namespace, &[]);
    let spec = json!({"runtimeRef": {"name": "coscheduling"}, "trainer": {"numNodes": NODES}});
    for job in JOBS {
        namespace.create(job, &spec).await?;
    }

    let pods = namespace.api(&namespace.pods);
    let runs = |pods: &[Value], job| placed(pods, job) == NODES;
    let one_runs = |pods: &[Value]| JOBS.iter().any(|job| runs(pods, job));
    let seen = pods.until_all("one gang runs", one_runs).await?;
    let (one, other) = if runs(&seen, JOBS[0]) {
        (JOBS[0], JOBS[1])
    } else {
        (JOBS[1], JOBS[0])
    };
    ensure!(placed(&seen, other) == 0, "{seen:#?}");
    let waits = |pods: &[Value]| unschedulable(pods, other) == NODES;
    let seen = pods.until_all("the other gang waits", waits).await?;
    ensure!(placed(&seen, other) == 0 && runs(&seen, one), "{seen:#?}");

    // Without its PodGroup, the scheduler would never start it, and nothing would change.
    namespace.settled().await?;
    let groups = PodGroups::Coscheduling.resource();
    let groups = namespace.api(&groups);
    let uid = |group: &Value| group["metadata"]["uid"].clone();
    let before = uid(&groups.get(other).await?.accepted()?);
    groups.delete(other).await?.accepted()?;
    let is_recreated = |group: &Value| group.is_object() && uid(group) != before;
    groups
        .until(other, "its PodGroup is recreated", is_recreated)
        .await?;

    let_end(&namespace, &[one]);
    namespace.until_complete(one).await?;
    let seen = pods.until_all("the other gang runs", |pods| runs(pods, other));
    seen.await?;
    let_end(&namespace, &[one, other]);
    namespace.until_complete(other).await?;
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Shared>> {
    tests![gangs_that_do_not_fit_together_run_one_after_the_other]
}
