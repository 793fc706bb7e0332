//! TrainJobs with a PodGroup of either kind run from creation to their end, suspended and resumed in between: the PodGroup counts exactly
//! the pods that name it, belongs to its TrainJob, changes only while the TrainJob is suspended, and is deleted with it.

use std::ffi::OsString;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use trainyard_cluster::{Api, Fate, PodGroups, Test, Write, eventually};

use crate::common::{Controlled, Namespace, RESUMED, Setup, described_conditions, is, runtimes};

/// The CRDs of both kinds, and a runtime for each.
pub(crate) struct Gangs;

impl Setup for Gangs {
    fn runtimes() -> Vec<Value> {
        PodGroups::ALL.map(runtimes::gang).to_vec()
    }

    fn kinds() -> Result<Vec<Value>> {
        let definitions = PodGroups::ALL.map(PodGroups::definition);
        definitions.into_iter().collect()
    }

    fn arguments() -> Result<Vec<OsString>> {
        Ok(Vec::new())
    }
}

pub(crate) type Shared = Controlled<Gangs>;

/// The TrainJob of each test.
const JOB: &str = "bert";
/// The number of its nodes, and what they request together.
const NODES: i64 = 3;
const CPUS: &str = "6";
/// The annotation of a runtime's template that names the queue.
const QUEUE: &str = "scheduling.volcano.sh/queue-name";

/// A number of members that no gang has.
const FOREIGN: i64 = 99;

/// Returns the PodGroup that a pod names.
fn group_of(kind: PodGroups, pod: &Value) -> &Value {
    let metadata = &pod["metadata"];
    match kind {
        PodGroups::Coscheduling => &metadata["labels"]["scheduling.x-k8s.io/pod-group"],
        PodGroups::Volcano => &metadata["annotations"]["scheduling.k8s.io/group-name"],
    }
}

/// Returns whether a pod is a node.
fn is_node(pod: &Value) -> bool {
    pod["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"] == "node"
}

/// The fate of pods: initializers succeed, and nodes have this fate.
fn nodes(fate: Fate) -> impl Fn(&Pod) -> Fate + Send + Sync + 'static {
    move |pod| match runtimes::replicated_job(pod) {
        "node" => fate,
        _ => Fate::Succeed,
    }
}

async fn group_of_coscheduling_follows_its_train_job(shared: &Shared) -> Result<()> {
    follows_its_train_job(shared, PodGroups::Coscheduling).await
}

async fn group_of_volcano_follows_its_train_job(shared: &Shared) -> Result<()> {
    follows_its_train_job(shared, PodGroups::Volcano).await
}

async fn follows_its_train_job(shared: &Shared, kind: PodGroups) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.decide_pods(nodes(Fate::Hold));
    let resource = kind.resource();
    let groups = namespace.api(&resource);

    let spec = json!({"runtimeRef": {"name": kind.policy()}, "suspend": true, "trainer": {"numNodes": NODES}});
    let job = namespace.create(JOB, &spec).await?;
    let group = groups.until(JOB, "it exists", Value::is_object).await?;
    let owner = &group["metadata"]["ownerReferences"][0];
    ensure!(
        owner["uid"] == job["metadata"]["uid"] && owner["controller"] == true,
        "{group:#}"
    );
    ensure!(
        group["spec"]["minMember"] == NODES
            && group["spec"]["minResources"] == json!({"cpu": CPUS}),
        "{group:#}"
    );

    namespace.patch(JOB, &json!({"suspend": false})).await?;
    until_running(&namespace).await?;
    members_are_the_nodes(&namespace, kind).await?;
    running_gang_keeps_its_group(shared, &namespace, &groups).await?;

    suspended_gang_is_counted_again(&namespace, kind, &groups).await?;
    namespace.patch(JOB, &json!({"suspend": false})).await?;
    let resumed = |job: &Value| is(job, "Suspended", "False");
    let resumed = namespace.until(JOB, "it is resumed", resumed).await?;
    ensure!(described_conditions(&resumed) == [RESUMED], "{resumed:#}");
    until_running(&namespace).await?;
    members_are_the_nodes(&namespace, kind).await?;

    namespace.decide_pods(nodes(Fate::Succeed));
    namespace.until_complete(JOB).await?;
    namespace.delete_all([JOB]).await?;
    let is_gone = <[Value]>::is_empty;
    groups.until_all("the PodGroup is deleted", is_gone).await?;
    Ok(())
}

/// Waits until the nodes, which are the pods of one Job, run.
async fn until_running(namespace: &Namespace<'_>) -> Result<()> {
    namespace.until_active(JOB, 1).await.map(drop)
}

/// Checks that the nodes name the PodGroup, and no other pods.
async fn members_are_the_nodes(namespace: &Namespace<'_>, kind: PodGroups) -> Result<()> {
    let pods = namespace.api(&namespace.pods).items().await?;
    let mut members = 0;
    for pod in &pods {
        let expected = if is_node(pod) {
            members += 1;
            json!(JOB)
        } else {
            Value::Null
        };
        ensure!(*group_of(kind, pod) == expected, "{pod:#}");
    }
    ensure!(members == NODES, "{pods:#?}");
    Ok(())
}

/// Changes the PodGroup of a running TrainJob, and checks that the controller leaves it unchanged.
async fn running_gang_keeps_its_group(
    shared: &Shared,
    namespace: &Namespace<'_>,
    groups: &Api<'_>,
) -> Result<()> {
    let changed = json!({"spec": {"minMember": FOREIGN}});
    let changed = groups.merge(JOB, &changed, &Write::strict()).await?;
    let changed = changed.accepted()?;
    let reconciled = async || {
        let name = "controller_runtime_reconcile_total";
        shared.controller.metric(name, "").await
    };
    let before = reconciled().await?;
    let touched = json!({"metadata": {"annotations": {"example.com/touched": "once"}}});
    let jobs = namespace.api(&namespace.jobs);
    let touched = jobs.merge(JOB, &touched, &Write::strict()).await?;
    touched.accepted()?;
    eventually("the TrainJob is reconciled", async || {
        Ok((reconciled().await? > before).then_some(()))
    })
    .await?;
    shared.controller.until_idle().await?;
    let group = groups.get(JOB).await?.accepted()?;
    ensure!(
        group["metadata"]["generation"] == changed["metadata"]["generation"],
        "{group:#}"
    );
    Ok(())
}

/// Suspends the TrainJob, with another queue for Volcano, and waits until its PodGroup is as its runtime says.
async fn suspended_gang_is_counted_again(
    namespace: &Namespace<'_>,
    kind: PodGroups,
    groups: &Api<'_>,
) -> Result<()> {
    let (mut spec, mut queue) = (json!({"suspend": true}), Value::Null);
    if kind == PodGroups::Volcano {
        let before = groups.get(JOB).await?.accepted()?;
        ensure!(before["spec"]["queue"] == "default", "{before:#}");
        let metadata = json!({"annotations": {QUEUE: "vision"}});
        let template = json!({"template": {"metadata": metadata}});
        spec["runtimePatches"] =
            json!([{"manager": "example.com/team", "trainingRuntimeSpec": template}]);
        queue = json!("vision");
    }
    namespace.patch(JOB, &spec).await?;
    let is_counted =
        |group: &Value| group["spec"]["minMember"] == NODES && group["spec"]["queue"] == queue;
    groups
        .until(JOB, "it counts the nodes again", is_counted)
        .await?;
    let pods = namespace.api(&namespace.pods);
    // The pods of the initializer, which has succeeded, are kept.
    let are_gone = |pods: &[Value]| !pods.iter().any(is_node);
    pods.until_all("the nodes are gone", are_gone).await?;
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Shared>> {
    tests![
        group_of_coscheduling_follows_its_train_job,
        group_of_volcano_follows_its_train_job,
    ]
}
