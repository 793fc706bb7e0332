//! A TrainJob of JAX and one of XGBoost run from creation to their end on the runtimes of deploy/, suspended and resumed in between: the
//! address at which their nodes meet is that of the first pod, and each pod gets its index.

use std::{collections::BTreeSet, ffi::OsString};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{Fate, Test};

use crate::common::{Controlled, Namespace, Setup, runtimes};

/// The runtimes of deploy/.
pub(crate) struct Runtimes;

impl Setup for Runtimes {
    fn runtimes() -> Vec<Value> {
        JOBS.map(|job| runtimes::shipped(job.runtime)).into()
    }

    fn arguments() -> Result<Vec<OsString>> {
        Ok(Vec::new())
    }
}

pub(crate) type Shared = Controlled<Runtimes>;

/// A TrainJob of two nodes.
struct Job {
    name: &'static str,
    runtime: &'static str,
    /// The env var with the address at which the nodes meet, and that address.
    address: (&'static str, &'static str),
    /// The env var with the pod's index.
    index: &'static str,
    /// The env var with the number of nodes.
    count: &'static str,
}

const JOBS: [Job; 2] = [
    Job {
        name: "gemma",
        runtime: "jax-distributed",
        address: ("JAX_COORDINATOR_ADDRESS", "gemma-node-0-0.gemma:29500"),
        index: "JAX_PROCESS_ID",
        count: "JAX_NUM_PROCESSES",
    },
    Job {
        name: "higgs",
        runtime: "xgboost-distributed",
        address: ("DMLC_TRACKER_URI", "higgs-node-0-0.higgs"),
        index: "DMLC_TASK_ID",
        count: "DMLC_NUM_WORKER",
    },
];

fn env<'p>(pod: &'p Value, name: &str) -> &'p Value {
    let env = pod["spec"]["containers"][0]["env"].as_array();
    let mut of_name = env.into_iter().flatten().filter(|var| var["name"] == name);
    of_name.next().unwrap_or(&Value::Null)
}

/// Checks the pods of a TrainJob, once both exist, against their names in the cluster.
async fn check_pods(namespace: &Namespace<'_>, job: &Job) -> Result<()> {
    let is_its =
        |pod: &&Value| pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] == job.name;
    // A Job counts as active once it has its first pod.
    let both_exist = |pods: &[Value]| pods.iter().filter(is_its).count() == 2;
    let pods = namespace.api(&namespace.pods);
    let pods = pods.until_all("both pods exist", both_exist).await?;
    let pods: Vec<_> = pods.iter().filter(is_its).collect();
    let (address, wanted) = job.address;
    let host_names: BTreeSet<_> = pods
        .iter()
        .map(|pod| {
            let part = |field: &str| pod["spec"][field].as_str().unwrap_or_default();
            format!("{}.{}", part("hostname"), part("subdomain"))
        })
        .collect();
    let host = wanted.strip_suffix(":29500").unwrap_or(wanted);
    ensure!(
        host_names.len() == 2 && host_names.contains(host),
        "{host_names:?}"
    );
    let mut indexes = BTreeSet::new();
    for pod in pods {
        ensure!(env(pod, address)["value"] == wanted, "{pod:#}");
        ensure!(env(pod, job.count)["value"] == "2", "{pod:#}");
        let field = env(pod, job.index)["valueFrom"]["fieldRef"]["fieldPath"].as_str();
        let annotation = field.and_then(|field| {
            let key = field.strip_prefix("metadata.annotations['")?;
            pod["metadata"]["annotations"][key.strip_suffix("']")?].as_str()
        });
        indexes.insert(annotation.unwrap_or_default().to_owned());
    }
    ensure!(
        indexes == BTreeSet::from(["0".to_owned(), "1".to_owned()]),
        "{indexes:?}"
    );
    Ok(())
}

async fn train_jobs_complete_after_they_were_suspended(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    for job in &JOBS {
        let spec = json!({"runtimeRef": {"name": job.runtime}, "trainer": {"numNodes": 2}});
        namespace.create(job.name, &spec).await?;
    }
    for job in &JOBS {
        namespace.until_active(job.name, 1).await?;
        check_pods(&namespace, job).await?;
        namespace.suspend(job.name).await?;
    }
    let none_left = <[Value]>::is_empty;
    namespace
        .api(&namespace.pods)
        .until_all("the pods are gone", none_left)
        .await?;
    for job in &JOBS {
        namespace
            .patch(job.name, &json!({"suspend": false}))
            .await?;
        namespace.until_active(job.name, 1).await?;
        check_pods(&namespace, job).await?;
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
