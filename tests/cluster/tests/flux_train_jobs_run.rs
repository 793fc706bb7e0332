//! A Flux TrainJob runs from creation to its end: the API server and JobSet accept its objects, its pods get the scripts and a certificate
//! with their own keys, a failed run is repeated in new pods with the runtime of deploy/ and fails the TrainJob with one without a failure
//! policy, and deletion leaves nothing behind.

use std::{
    ffi::OsString,
    sync::{Mutex, PoisonError},
};

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use trainyard_cluster::{Fate, Test};

use crate::{
    common,
    common::{Controlled, Namespace, Setup, keys, runtimes},
};

/// The runtime of deploy/, and one without a failure policy.
pub(crate) struct Runtimes;

/// Their names.
const SHIPPED: &str = "flux-distributed";
const PLAIN: &str = "flux";

impl Setup for Runtimes {
    fn runtimes() -> Vec<Value> {
        vec![runtimes::shipped(SHIPPED), runtimes::flux()]
    }

    fn arguments() -> Result<Vec<OsString>> {
        Ok(Vec::new())
    }
}

pub(crate) type Shared = Controlled<Runtimes>;

fn spec(runtime: &str) -> Value {
    json!({"runtimeRef": {"name": runtime}, "trainer": {"numNodes": 2, "command": ["lmp", "-in", "in file"]}})
}

/// The fate of pods whose run fails once: the followers succeed, and the first pod exits with the run's status. If it is restarted, in its
/// pod or in another one, this is its fate.
fn fails_once(then: Fate) -> impl Fn(&Pod) -> Fate + Send + Sync + 'static {
    let failed = Mutex::new(None);
    move |pod| {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        if !name.contains("-node-0-0") {
            return Fate::Succeed;
        }
        let statuses = pod
            .status
            .as_ref()
            .and_then(|status| status.container_statuses.as_ref());
        let has_restarted = statuses
            .into_iter()
            .flatten()
            .any(|status| status.restart_count > 0);
        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
        let first = failed.get_or_insert_with(|| pod.metadata.uid.clone());
        if *first == pod.metadata.uid && !has_restarted {
            Fate::Fail(3)
        } else {
            then
        }
    }
}

/// No pod is restarted alone, because a lead broker would wait for followers.
async fn failed_run_fails_the_train_job(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.decide_pods(fails_once(Fate::Hold));
    namespace.create("lmp", &spec(PLAIN)).await?;
    let is_failed = |job: &Value| common::is(job, "Failed", "True");
    namespace.until("lmp", "it failed", is_failed).await?;
    Ok(())
}

async fn failed_run_is_repeated_in_new_pods(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.decide_pods(fails_once(Fate::Succeed));
    namespace.create("lmp", &spec(SHIPPED)).await?;
    namespace.until_complete("lmp").await?;
    let job_set = namespace.job_set("lmp").await?;
    ensure!(
        job_set["status"]["restarts"] == 1,
        "{:#}",
        job_set["status"]
    );
    Ok(())
}

/// Returns the two keys of a certificate.
fn keys_of(certificate: &str) -> Vec<&str> {
    let keys = certificate.split("-key = \"").skip(1);
    keys.filter_map(|rest| rest.split_once('"'))
        .map(|(key, _)| key)
        .collect()
}

async fn flux_train_job_completes_and_leaves_nothing_behind(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    let secrets = keys::secrets();
    let secrets = namespace.api(&secrets);
    let maps = namespace.api(&namespace.config_maps);
    let mut made = Vec::new();
    for (name, runtime) in [("first", PLAIN), ("second", SHIPPED)] {
        namespace.create(name, &spec(runtime)).await?;
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

    namespace.fate(Fate::Succeed);
    for name in ["first", "second"] {
        namespace.until_complete(name).await?;
    }
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
    tests![
        flux_train_job_completes_and_leaves_nothing_behind,
        failed_run_fails_the_train_job,
        failed_run_is_repeated_in_new_pods,
    ]
}
