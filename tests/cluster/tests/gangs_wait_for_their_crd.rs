//! If the CRD of PodGroups is not installed, an Event of the TrainJob names the missing kind, no pods are created, and other TrainJobs run.
//! Once the CRD is installed, the TrainJob runs, with the same controller.

use std::ffi::OsString;

use anyhow::{Context as _, Result, ensure};
use http::StatusCode;
use serde_json::{Value, json};
use trainyard_cluster::{Fate, Install, PodGroups, Test, install};

use crate::common::{self, Controlled, Namespace, Setup, runtimes};

/// The runtimes of both kinds, without their CRDs, and one without a gang.
pub(crate) struct WithoutPodGroups;

impl Setup for WithoutPodGroups {
    fn runtimes() -> Vec<Value> {
        let gangs = PodGroups::ALL.map(runtimes::gang);
        gangs.into_iter().chain([common::runtime()]).collect()
    }

    fn arguments() -> Result<Vec<OsString>> {
        Ok(Vec::new())
    }
}

pub(crate) type Shared = Controlled<WithoutPodGroups>;

/// Returns the API version of a kind.
fn api_version(kind: PodGroups) -> &'static str {
    match kind {
        PodGroups::Coscheduling => "scheduling.x-k8s.io/v1alpha1",
        PodGroups::Volcano => "scheduling.volcano.sh/v1beta1",
    }
}

async fn train_job_runs_once_its_crd_is_installed(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Succeed);
    for kind in PodGroups::ALL {
        let name = kind.policy();
        let spec = json!({"runtimeRef": {"name": name}, "trainer": {"numNodes": 2}});
        namespace.create(name, &spec).await?;
    }
    let plain = json!({"runtimeRef": {"name": "torch"}});
    namespace.create("plain", &plain).await?;
    namespace.until_complete("plain").await?;
    let waits = async |kind: PodGroups| {
        let (name, version) = (kind.policy(), api_version(kind));
        let missing = format!("the API server does not serve PodGroup ({version})");
        let event = namespace.event(name, &missing).await?;
        let message = event["message"].as_str().context("no message")?;
        ensure!(
            event["type"] == "Warning" && message.contains("install its CRD"),
            "{event:#}"
        );
        let job_set = namespace.api(&namespace.job_sets).get(name).await?;
        ensure!(job_set.status == StatusCode::NOT_FOUND, "{job_set:?}");
        anyhow::Ok(())
    };
    for kind in PodGroups::ALL {
        waits(kind).await?;
        // The CRD of the other kind has no effect.
        let definition = kind.definition()?;
        let resource = install(shared.cluster.plane(), &definition, Install::ServerSide).await?;
        ensure!(resource == kind.resource(), "{resource:?}");
        namespace.until_complete(kind.policy()).await?;
        let group = namespace.api(&resource).get(kind.policy()).await?;
        let group = group.accepted()?;
        ensure!(group["spec"]["minMember"] == 2, "{group:#}");
    }
    shared.controller.process().still_runs()
}

pub(crate) fn tests() -> Vec<Test<Shared>> {
    tests![train_job_runs_once_its_crd_is_installed]
}
