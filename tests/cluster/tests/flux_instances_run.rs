//! A TrainJob under Flux goes from its creation to its end: the API server and JobSet take what becomes of it, its pods have the
//! scripts and a certificate with keys of its own, a failed run is a failed TrainJob, and its deletion leaves nothing.
#![allow(clippy::indexing_slicing)]

use std::ffi::OsString;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{Fate, Test};

use crate::common;
use crate::common::{Controlled, Namespace, Setup, keys, runtimes};

/// A runtime of Flux.
pub(crate) struct Runtimes;

impl Setup for Runtimes {
    fn runtimes() -> Vec<Value> {
        vec![runtimes::flux()]
    }

    fn arguments() -> Result<Vec<OsString>> {
        Ok(Vec::new())
    }
}

pub(crate) type Shared = Controlled<Runtimes>;

fn spec() -> Value {
    json!({"runtimeRef": {"name": "flux"}, "trainer": {"numNodes": 2, "command": ["lmp", "-in", "in file"]}})
}

/// The two keys of a certificate.
fn keys_of(certificate: &str) -> Vec<&str> {
    let keys = certificate.split("-key = \"").skip(1);
    keys.filter_map(|rest| rest.split_once('"'))
        .map(|(key, _)| key)
        .collect()
}

async fn a_train_job_runs_to_its_end_and_leaves_nothing(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    let secrets = keys::secrets();
    let secrets = namespace.api(&secrets);
    let maps = namespace.api(&namespace.config_maps);
    let mut made = Vec::new();
    for name in ["first", "second"] {
        namespace.create(name, &spec()).await?;
        namespace.until_active(name, 1).await?;
        let secret = secrets
            .get(&format!("{name}-flux-curve"))
            .await?
            .accepted()?;
        let certificate = keys::text(&secret, "curve.cert")?;
        let keys = keys_of(&certificate);
        ensure!(
            keys.len() == 2 && keys.iter().all(|key| key.len() == 40),
            "no certificate"
        );
        made.extend(keys.into_iter().map(str::to_owned));
        let map = maps
            .get(&format!("{name}-flux-entrypoint"))
            .await?
            .accepted()?;
        let settings = map["data"]["settings.sh"].as_str().unwrap_or_default();
        ensure!(
            settings.contains(&format!("hosts='{name}-node-0-[0-1]'")),
            "{settings}"
        );
    }
    made.sort();
    made.dedup();
    ensure!(made.len() == 4, "each TrainJob has keys of its own");
    let pods = namespace.api(&namespace.pods).items().await?;
    for pod in &pods {
        let spec = &pod["spec"];
        ensure!(
            spec["initContainers"][0]["name"] == "flux-installer",
            "{spec:#}"
        );
        let args = &spec["containers"][0]["args"];
        ensure!(*args == json!(["lmp", "-in", "in file"]), "{args:#}");
    }
    ensure!(pods.len() == 4, "{} pods", pods.len());

    // The status of the run is that of the first pod.
    namespace.decide_pods(|pod| {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        if name.starts_with("second-node-0-0") {
            Fate::Fail(3)
        } else {
            Fate::Succeed
        }
    });
    namespace.until_complete("first").await?;
    namespace
        .until("second", "it failed", |job| {
            common::is(job, "Failed", "True")
        })
        .await?;
    let jobs = namespace.api(&namespace.jobs);
    for name in ["first", "second"] {
        jobs.delete(name).await?.accepted()?;
    }
    let none_left = <[Value]>::is_empty;
    secrets.until_all("no Secret is left", none_left).await?;
    let no_scripts = |maps: &[Value]| {
        let mut names = maps
            .iter()
            .filter_map(|map| map["metadata"]["name"].as_str());
        !names.any(|name| name.contains("flux"))
    };
    maps.until_all("no script is left", no_scripts).await?;
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Shared>> {
    vec![Test::new(
        "a_train_job_runs_to_its_end_and_leaves_nothing",
        a_train_job_runs_to_its_end_and_leaves_nothing,
    )]
}
