//! A controller that starts before its CRDs reports which one is missing and what to install, is not ready, and continues as soon as they
//! are served.

use anyhow::{Result, ensure};
use serde_json::json;
use trainyard_cluster::{
    ControlPlane, Install, Own, Resource, Test, Trainyard, Write, define_kinds, deploy, eventually,
    install,
};
use trainyard_schema::documents::Kind;

use crate::common::kind;

/// Waits until the controller is not ready for exactly these reasons of the list.
async fn until_it_lacks(controller: &Trainyard, lacks: &[&str], has: &[&str]) -> Result<()> {
    eventually("the reason why it is not ready", async || {
        controller.process().still_runs()?;
        // It may not be listening yet.
        let Ok((code, text)) = controller.readiness().await else {
            return Ok(None);
        };
        ensure!(code == 503, "{code}: {text}");
        let tells = lacks.iter().all(|lack| text.contains(lack));
        Ok((tells && !has.iter().any(|has| text.contains(has))).then_some(()))
    })
    .await
}

async fn controller_waits_for_its_crds(Own(plane): &Own<ControlPlane>) -> Result<()> {
    let account = deploy(plane).await?;
    let controller = Trainyard::start_unready(plane, &account, ["--leader-elect=false"])?;
    let job_set = "JobSet (jobset.x-k8s.io/v1alpha2) is not served; install JobSet";
    let ours = "(trainer.kubeflow.org/v1alpha1) is not served; apply the CRDs";
    let all = [
        job_set,
        &format!("TrainJob {ours}"),
        &format!("TrainingRuntime {ours}"),
        &format!("ClusterTrainingRuntime {ours}"),
    ];
    until_it_lacks(&controller, &all, &[]).await?;
    for kind in Kind::ALL {
        install(plane, &kind.crd()?, Install::ServerSide).await?;
    }
    let (jobs, runtimes) = (kind(Kind::TrainJob)?, kind(Kind::TrainingRuntime)?);
    let namespace = plane.new_namespace().await?;
    let runtime = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainingRuntime", "metadata": {"name": "plain"},
        "spec": {"template": {"spec": {"replicatedJobs": [{
            "name": "node",
            "template": {"spec": {"template": {"spec": {"containers": [{"name": "node", "image": "example.com/image"}]}}}},
        }]}}},
    });
    let job = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "early"},
        "spec": {"runtimeRef": {"kind": "TrainingRuntime", "name": "plain"}},
    });
    for (resource, object) in [(&runtimes, &runtime), (&jobs, &job)] {
        let api = plane.api(resource, &namespace);
        api.create(object, &Write::strict()).await?.accepted()?;
    }
    until_it_lacks(&controller, &[job_set], &[ours]).await?;
    define_kinds(plane).await?;
    controller.until_ready().await?;
    let job_sets = Resource::jobsets();
    let job_sets = plane.api(&job_sets, &namespace);
    job_sets.until("early", "it is made", |_| true).await?;
    controller.process().still_runs()
}

pub(crate) fn tests() -> Vec<Test<Own<ControlPlane>>> {
    tests![controller_waits_for_its_crds]
}
