//! MPI TrainJobs run from creation to completion on a real cluster: with a dedicated launcher, with a launcher that runs as node, and with
//! a launcher that is the only node. Mistakes are reported in an Event, and keys are generated once and deleted with their TrainJob.

use std::ffi::OsString;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{Fate, Resource, Test};

use crate::common::{Controlled, Namespace, Setup, runtimes};

/// Runtimes of MPI with each kind of launcher.
pub(crate) struct Runtimes;

impl Setup for Runtimes {
    fn runtimes() -> Vec<Value> {
        vec![
            runtimes::mpi("own-launcher", false),
            runtimes::mpi("launcher-node", true),
        ]
    }

    fn arguments() -> Result<Vec<OsString>> {
        Ok(Vec::new())
    }
}

pub(crate) type Shared = Controlled<Runtimes>;

fn secrets() -> Resource {
    Resource::namespaced("/api/v1", "secrets")
}

/// Lets the launcher succeed. The nodes' SSH servers do not exit.
fn let_the_launcher_end(namespace: &Namespace<'_>) {
    namespace.decide_pods(|pod| match runtimes::replicated_job(pod) {
        "launcher" => Fate::Succeed,
        _ => Fate::Hold,
    });
}

/// Runs a TrainJob with this number of nodes until it is complete. Returns its hostfile and the number of its Jobs of `node`.
async fn run(namespace: &Namespace<'_>, runtime: &str, nodes: u32) -> Result<(String, Value)> {
    let name = format!("{runtime}-{nodes}");
    let spec = json!({"runtimeRef": {"name": runtime}, "trainer": {"numNodes": nodes}});
    namespace.create(&name, &spec).await?;
    namespace.until_complete(&name).await?;
    let hostfile = format!("{name}-mpi-hostfile");
    let hostfile = namespace.api(&namespace.config_maps).get(&hostfile).await?;
    let hostfile = hostfile.accepted()?["data"]["hostfile"].clone();
    let job_set = namespace.job_set(&name).await?;
    let replicas = job_set["spec"]["replicatedJobs"][0]["replicas"].clone();
    Ok((
        hostfile.as_str().context("no hostfile")?.to_owned(),
        replicas,
    ))
}

async fn each_kind_of_launcher_completes(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    let_the_launcher_end(&namespace);
    for (runtime, nodes, hosts, replicas) in [
        ("own-launcher", 2, vec!["node-0-0", "node-0-1"], 1),
        ("launcher-node", 2, vec!["node-0-0", "launcher-0-0"], 1),
        ("launcher-node", 1, vec!["launcher-0-0"], 0),
    ] {
        let name = format!("{runtime}-{nodes}");
        let lines = hosts.iter().map(|host| match *host {
            // mpirun identifies its own pod by the host name.
            "launcher-0-0" => format!("{name}-{host} slots=1\n"),
            _ => format!("{name}-{host}.{name} slots=1\n"),
        });
        let expected = (lines.collect::<String>(), json!(replicas));
        let found = run(&namespace, runtime, nodes).await?;
        ensure!(found == expected, "{name}: {found:?}");
    }
    Ok(())
}

async fn launcher_that_is_the_only_node_is_resumed(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    let trainer = json!({"numNodes": 1});
    let spec = |suspend: bool| json!({"runtimeRef": {"name": "launcher-node"}, "trainer": trainer, "suspend": suspend});
    namespace.create("one", &spec(true)).await?;
    namespace.job_set("one").await?;
    for _ in 0..2 {
        namespace.patch("one", &json!({"suspend": false})).await?;
        let runs = |pods: &[Value]| pods.iter().any(|pod| pod["status"]["phase"] == "Running");
        let pods = namespace.api(&namespace.pods);
        pods.until_all("the launcher runs", runs).await?;
        namespace.patch("one", &json!({"suspend": true})).await?;
        let none = |pods: &[Value]| pods.is_empty();
        pods.until_all("no pod is there", none).await?;
    }
    let_the_launcher_end(&namespace);
    namespace.patch("one", &json!({"suspend": false})).await?;
    namespace.until_complete("one").await?;
    Ok(())
}

async fn keys_are_generated_once_and_deleted_with_their_train_job(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    let spec = json!({"runtimeRef": {"name": "own-launcher"}, "trainer": {"numNodes": 1}});
    namespace.create("keys", &spec).await?;
    namespace.until_active("keys", 1).await?;
    let secrets = secrets();
    let api = namespace.api(&secrets);
    let secret = api.get("keys-mpi-ssh-auth").await?.accepted()?;
    ensure!(
        secret["type"] == "kubernetes.io/ssh-auth" && secret["immutable"].is_null(),
        "{secret:#}"
    );
    let data = secret["data"].as_object().context("no keys")?;
    let names: Vec<&String> = data.keys().collect();
    ensure!(names == ["ssh-privatekey", "ssh-publickey"], "{names:?}");
    // A change of the TrainJob does not generate other keys.
    namespace.patch("keys", &json!({"suspend": true})).await?;
    namespace.patch("keys", &json!({"suspend": false})).await?;
    namespace.until_active("keys", 1).await?;
    let later = api.get("keys-mpi-ssh-auth").await?.accepted()?;
    ensure!(later["data"] == secret["data"], "the keys are others");
    let jobs = namespace.api(&namespace.jobs);
    jobs.delete("keys").await?.accepted()?;
    let none = |secrets: &[Value]| {
        let mut secrets = secrets.iter();
        secrets.all(|secret| secret["metadata"]["name"] != "keys-mpi-ssh-auth")
    };
    api.until_all("the keys are gone", none).await?;
    Ok(())
}

async fn mistake_is_reported_in_an_event(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    let env = json!([{"name": "OMPI_MCA_plm_rsh_args", "value": "x"}]);
    let trainer = json!({"numNodes": 1, "command": [""], "env": env});
    let spec = json!({"runtimeRef": {"name": "own-launcher"}, "trainer": trainer});
    namespace.create("wrong", &spec).await?;
    for path in [
        "spec.trainer.command: must begin with the name of a program",
        "spec.trainer.env[0].name",
    ] {
        namespace.event("wrong", path).await?;
    }
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Shared>> {
    tests![
        each_kind_of_launcher_completes,
        launcher_that_is_the_only_node_is_resumed,
        keys_are_generated_once_and_deleted_with_their_train_job,
        mistake_is_reported_in_an_event,
    ]
}
