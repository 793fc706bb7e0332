//! When etcd is restored from a backup, a running controller notices, and continues with the restored state: new changes are followed, and
//! nothing is created for TrainJobs that have ended or no longer exist.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{
    ControlPlane, Resource, Shared, Test, Trainyard, Write, define_kinds, deploy,
};
use trainyard_schema::documents::Kind;

use crate::common::{self, is};

/// A control plane on which JobSets are only stored.
pub(crate) struct Restorable {
    plane: ControlPlane,
    account: PathBuf,
}

impl Shared for Restorable {
    fn start() -> Result<Self> {
        let plane = ControlPlane::start()?;
        let account = plane.block_on(async {
            define_kinds(&plane).await?;
            common::create_runtimes(&plane, &[common::runtime()]).await?;
            deploy(&plane).await
        })?;
        Ok(Self { plane, account })
    }

    fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    fn still_runs(&self) -> Result<()> {
        self.plane.still_runs()
    }
}

/// The TrainJobs and JobSets of one namespace.
struct Objects<'a> {
    plane: &'a ControlPlane,
    jobs: Resource,
    job_sets: Resource,
    namespace: String,
}

impl Objects<'_> {
    async fn create(&self, name: &str) -> Result<()> {
        let job = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": name},
            "spec": {"runtimeRef": {"name": "torch"}},
        });
        let jobs = self.plane.api(&self.jobs, &self.namespace);
        jobs.create(&job, &Write::strict()).await?.accepted()?;
        self.job_set_until(name, "it exists", Value::is_object)
            .await
    }

    async fn suspend(&self, name: &str) -> Result<()> {
        let spec = json!({"spec": {"suspend": true}});
        let jobs = self.plane.api(&self.jobs, &self.namespace);
        let answer = jobs.merge(name, &spec, &Write::default()).await?;
        answer.accepted()?;
        let is_suspended = |job_set: &Value| job_set["spec"]["suspend"] == true;
        let what = "it is suspended";
        self.job_set_until(name, what, is_suspended).await
    }

    async fn complete(&self, name: &str) -> Result<()> {
        let job_sets = self.plane.api(&self.job_sets, &self.namespace);
        let mut job_set = job_sets.get(name).await?.accepted()?;
        job_set["status"] = json!({"conditions": [{
            "type": "Completed", "status": "True", "reason": "AllJobsCompleted", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]});
        let written = job_sets.replace_status(&job_set, &Write::default()).await?;
        written.accepted()?;
        let jobs = self.plane.api(&self.jobs, &self.namespace);
        let is_complete = |job: &Value| is(job, "Complete", "True");
        jobs.until(name, "it is complete", is_complete).await?;
        Ok(())
    }

    async fn job_set_until(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Result<()> {
        let job_sets = self.plane.api(&self.job_sets, &self.namespace);
        job_sets.until(name, what, holds).await.map(drop)
    }

    /// Returns the names and UIDs of all JobSets.
    async fn job_sets(&self) -> Result<Vec<[Value; 2]>> {
        let job_sets = self.plane.api(&self.job_sets, &self.namespace);
        let items = job_sets.items().await?.into_iter();
        let identity = |item: Value| ["name", "uid"].map(|key| item["metadata"][key].clone());
        Ok(items.map(identity).collect())
    }
}

async fn controller_continues_with_the_restored_state(shared: &Restorable) -> Result<()> {
    let plane = &shared.plane;
    let objects = Objects {
        plane,
        jobs: common::kind(Kind::TrainJob)?,
        job_sets: Resource::jobsets(),
        namespace: plane.new_namespace().await?,
    };
    let started = || Trainyard::start(plane, &shared.account, ["--leader-elect=false"]);
    let controller = started().await?;
    objects.create("ended").await?;
    objects.create("runs").await?;
    objects.complete("ended").await?;
    let job_sets = plane.api(&objects.job_sets, &objects.namespace);
    job_sets.delete("ended").await?.accepted()?;
    let expected = objects.job_sets().await?;
    let backup = plane.back_up().await?;

    // An API server that was only restarted changes nothing.
    objects.create("later").await?;
    objects.suspend("runs").await?;
    controller.process().still_runs()?;
    plane.restore(&backup).await?;
    let status = controller.until_ended().await?;
    let log = controller.process().log()?;
    let says = "was replaced by an older one, such as a backup of etcd; start the controller again";
    ensure!(!status.success() && log.contains(says), "{status}: {log}");

    let controller = started().await?;
    ensure!(objects.job_sets().await? == expected);
    objects.suspend("runs").await?;
    controller.until_idle().await?;
    ensure!(objects.job_sets().await? == expected);
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Restorable>> {
    tests![controller_continues_with_the_restored_state]
}
