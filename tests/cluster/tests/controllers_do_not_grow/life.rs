//! The life of one TrainJob, from its creation until it is deleted.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use fastrand::Rng;
use http::StatusCode;
use serde_json::{Value, json};
use trainyard_cluster::{Answer, Fate, Resource, Write};
use trainyard_schema::documents::Kind;

use super::{
    PATIENCE, Soak, patiently,
    tenant::{Tenant, has_launcher},
};
use crate::common::{self, Namespace, devices, is, is_running};

/// Runtimes of deploy/, whose TrainJobs are only let fail after several restarts, which would take long.
pub(super) const SHIPPED: [&str; 4] = [
    "jax-distributed",
    "xgboost-distributed",
    "flux-distributed",
    "torchtune-llama3.2-1b",
];
/// Runtimes whose TrainJobs fail with their first pod.
pub(super) const QUICK: [&str; 9] = [
    "torch",
    "plain",
    "with-initializers",
    "own-launcher",
    "launcher-node",
    "flux",
    "coscheduling",
    "volcano",
    devices::RUNTIME,
];
/// The runtime whose pods share a volume, which no other part of the cluster creates.
const WITH_VOLUME: &str = SHIPPED[3];
/// How often the JobSet of a new TrainJob is looked for, and so the resolution of the measured time.
const LOOK: Duration = Duration::from_millis(20);
/// The deadline of TrainJobs that exceed it.
const DEADLINE: u64 = 3;

/// Which of the lives it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    /// It runs until its pods succeed.
    Completes,
    /// It runs until its pods fail.
    Fails,
    /// It exceeds its deadline.
    IsOverdue,
    /// It is deleted while it runs.
    IsDeleted,
    /// It is deleted before anything was seen of it.
    IsDeletedAtOnce,
    /// Its runtime is created after it.
    Waits,
    /// A plugin refuses it.
    IsRefused,
}

/// A TrainJob.
pub(super) struct Life<'a> {
    soak: &'a Soak<'a>,
    tenant: &'a Tenant<'a>,
    name: String,
    runtime: &'static str,
    course: Course,
    rng: Rng,
}

impl<'a> Life<'a> {
    pub(super) fn new(
        soak: &'a Soak<'a>,
        tenant: &'a Tenant<'a>,
        number: usize,
        mut rng: Rng,
    ) -> Self {
        let runtimes: Vec<_> = QUICK.into_iter().chain(SHIPPED).collect();
        let runtime = runtimes[rng.usize(..runtimes.len())];
        let course = match rng.u8(..10) {
            0..4 => Course::Completes,
            4 if QUICK.contains(&runtime) => Course::Fails,
            4 | 5 => Course::IsDeleted,
            6 => Course::IsOverdue,
            7 => Course::IsDeletedAtOnce,
            8 => Course::Waits,
            _ => Course::IsRefused,
        };
        Self {
            soak,
            tenant,
            name: format!("{runtime}-{number}").replace('.', "-"),
            runtime,
            course,
            rng,
        }
    }

    /// Lives, and reports what went wrong.
    pub(super) async fn live(mut self) {
        let lived = match self.lived().await {
            Ok(()) => self.delete().await,
            Err(error) => {
                let _ = self.delete().await;
                Err(error)
            }
        };
        if let Err(error) = lived {
            let (namespace, name) = (&self.namespace().name, &self.name);
            let course = self.course;
            let what = format!("TrainJob {namespace}/{name}, {course:?}: {error:#}");
            self.soak.failed(what);
        }
    }

    fn namespace(&self) -> &Namespace<'a> {
        &self.tenant.namespace
    }

    async fn lived(&mut self) -> Result<()> {
        match self.course {
            Course::Waits => return self.waited().await,
            Course::IsRefused => return self.refused().await,
            Course::IsDeletedAtOnce => {
                let spec = self.spec();
                return self.namespace().create(&self.name, &spec).await.map(drop);
            }
            _ => {}
        }
        if self.runtime == WITH_VOLUME {
            self.create_volume().await?;
        }
        let is_queued = self.rng.bool();
        let mut spec = self.spec();
        spec["suspend"] = json!(is_queued);
        if self.course == Course::IsOverdue {
            // It may be overdue before it has a JobSet.
            spec["activeDeadlineSeconds"] = json!(DEADLINE);
            self.namespace().create(&self.name, &spec).await?;
        } else {
            self.create(&spec).await?;
        }
        if is_queued {
            self.queued().await?;
        }
        if self.course == Course::IsOverdue {
            return self.until_it_is("Failed").await;
        }
        self.until("it runs", runs).await?;
        for _ in 0..self.rng.usize(..3) {
            if self.changed().await? {
                return Ok(());
            }
        }
        self.end().await
    }

    fn spec(&self) -> Value {
        let mut spec = json!({"runtimeRef": {"name": self.runtime}});
        if has_launcher(self.runtime) {
            spec["trainer"] = json!({"numNodes": 2});
        }
        if self.runtime.starts_with("flux") {
            spec["trainer"] = json!({"numNodes": 2, "command": ["lmp", "-in", "in file"]});
        }
        spec
    }

    /// Creates the TrainJob, and records the time until its JobSet is seen.
    async fn create(&self, spec: &Value) -> Result<()> {
        let since = Instant::now();
        self.namespace().create(&self.name, spec).await?;
        let job_sets = self.namespace().api(&self.namespace().job_sets);
        while job_sets.get(&self.name).await?.status == StatusCode::NOT_FOUND {
            ensure!(since.elapsed() < PATIENCE, "it has no JobSet");
            tokio::time::sleep(LOOK).await;
        }
        let time = since.elapsed().as_secs_f64();
        self.soak.records.add("creation", self.runtime, time)
    }

    /// Is changed while it is suspended, and admitted with a placement, as by Kueue.
    async fn queued(&mut self) -> Result<()> {
        self.until_it_is("Suspended").await?;
        for _ in 0..self.rng.usize(..3) {
            let patches = placement(&self.rng.u32(..).to_string());
            self.patch(&json!({"runtimePatches": patches})).await?;
            self.pause().await;
        }
        let patches = placement("example.com/pool");
        let spec = json!({"suspend": false, "runtimePatches": patches});
        self.patch(&spec).await
    }

    /// Is changed while it runs, and runs again. Returns whether it has ended by that.
    async fn changed(&mut self) -> Result<bool> {
        match self.rng.u8(..5) {
            0 => {
                self.patch(&json!({"suspend": true})).await?;
                self.until_it_is("Suspended").await?;
                self.patch(&json!({"suspend": false})).await?;
            }
            1 => {
                self.patch(&json!({"suspend": true})).await?;
                self.patch(&json!({"suspend": false})).await?;
            }
            2 => {
                let labels = json!({"example.com/seed": self.rng.u32(..).to_string()});
                let patch = json!({"metadata": {"labels": labels}});
                let jobs = self.namespace().api(&self.namespace().jobs);
                let answer = jobs.merge(&self.name, &patch, &Write::strict()).await?;
                answer.accepted()?;
            }
            3 => {
                let patch = json!({"spec": {"suspend": true}});
                let job_sets = self.namespace().api(&self.namespace().job_sets);
                let answer = job_sets.merge(&self.name, &patch, &Write::strict()).await?;
                answer.accepted()?;
            }
            // The volume is that of the claims of one JobSet.
            _ if self.runtime == WITH_VOLUME => {}
            _ => return self.loses_its_job_set().await,
        }
        self.until("it runs again", runs).await?;
        Ok(false)
    }

    /// Loses its JobSet while it is suspended, and gets another. If no controller has seen that the JobSet ran, and none has seen its deletion,
    /// nobody knows how it ended, and so the TrainJob has failed.
    async fn loses_its_job_set(&self) -> Result<bool> {
        self.patch(&json!({"suspend": true})).await?;
        self.until_it_is("Suspended").await?;
        let job_sets = self.namespace().api(&self.namespace().job_sets);
        let lost = job_sets.get(&self.name).await?.accepted()?;
        job_sets.delete(&self.name).await?.accepted()?;
        self.patch(&json!({"suspend": false})).await?;
        let jobs = self.namespace().api(&self.namespace().jobs);
        // Until a controller has seen the deletion, the status says that it runs.
        patiently("it has another JobSet or has failed", async || {
            let found = job_sets.get(&self.name).await?.accepted();
            if found.is_ok_and(|found| found["metadata"]["uid"] != lost["metadata"]["uid"]) {
                return Ok(Some(false));
            }
            let job = jobs.get(&self.name).await?.accepted()?;
            Ok(is(&job, "Failed", "True").then_some(true))
        })
        .await
    }

    async fn end(&mut self) -> Result<()> {
        self.pause().await;
        match self.course {
            Course::Completes => {
                self.tenant.decide(&self.name, Fate::Succeed);
                self.until_it_is("Complete").await
            }
            Course::Fails => {
                self.tenant.decide(&self.name, Fate::Fail(1));
                self.until_it_is("Failed").await
            }
            _ => Ok(()),
        }
    }

    async fn waited(&mut self) -> Result<()> {
        let spec = json!({"runtimeRef": {"kind": "TrainingRuntime", "name": self.name}});
        self.namespace().create(&self.name, &spec).await?;
        self.pause().await;
        let mut runtime = common::runtime();
        runtime["metadata"]["name"] = json!(self.name);
        self.namespace().create_runtime(runtime).await?;
        self.until("it runs", runs).await?;
        self.delete().await?;
        let runtimes = common::kind(Kind::TrainingRuntime)?;
        let runtimes = self.namespace().api(&runtimes);
        runtimes.delete(&self.name).await?.accepted().map(drop)?;
        Ok(())
    }

    async fn refused(&self) -> Result<()> {
        let trainer = json!({"numNodes": 1, "command": [""]});
        let spec = json!({"runtimeRef": {"name": "own-launcher"}, "trainer": trainer});
        self.namespace().create(&self.name, &spec).await?;
        let error = |job: &Value| job["metadata"]["annotations"][ERROR].is_string();
        self.until("it says why it waits", error).await.map(drop)
    }

    async fn create_volume(&self) -> Result<()> {
        let volume = json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": self.volume()},
            "spec": {
                "capacity": {"storage": "20Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/var/empty"},
                "persistentVolumeReclaimPolicy": "Retain",
            },
        });
        let volumes = volumes();
        let volumes = self.soak.shared.cluster.api(&volumes, "");
        let created = volumes.create(&volume, &Write::strict()).await?;
        created.accepted().map(drop)?;
        Ok(())
    }

    fn volume(&self) -> String {
        format!("{}-{}", self.namespace().name, self.name)
    }

    /// Deletes the TrainJob, and waits until it is gone.
    async fn delete(&self) -> Result<()> {
        let jobs = self.namespace().api(&self.namespace().jobs);
        deleted(jobs.delete(&self.name).await?)?;
        patiently("it is gone", async || {
            let answer = jobs.get(&self.name).await?;
            Ok((answer.status == StatusCode::NOT_FOUND).then_some(()))
        })
        .await?;
        let volumes = volumes();
        let volumes = self.soak.shared.cluster.api(&volumes, "");
        deleted(volumes.delete(&self.volume()).await?)
    }

    async fn patch(&self, spec: &Value) -> Result<()> {
        self.namespace().patch(&self.name, spec).await.map(drop)
    }

    async fn until_it_is(&self, condition: &str) -> Result<()> {
        let what = format!("it is {condition}");
        let holds = |job: &Value| is(job, condition, "True");
        self.until(&what, holds).await.map(drop)
    }

    async fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Result<Value> {
        let jobs = self.namespace().api(&self.namespace().jobs);
        let mut last = Value::Null;
        let found = patiently(what, async || {
            last = jobs.get(&self.name).await?.accepted()?;
            Ok(holds(&last).then(|| last.clone()))
        });
        found
            .await
            .map_err(|error| error.context(format!("{}, {}", last["spec"], last["status"])))
    }

    /// Lets some time pass, as users do.
    async fn pause(&mut self) {
        let time = Duration::from_millis(self.rng.u64(..3000));
        tokio::time::sleep(time).await;
    }
}

/// The annotation that says why a TrainJob waits.
const ERROR: &str = "trainyard.dev/reconcile-error";

/// Returns the patches of a queue that lets nodes run on machines with a taint of this key.
fn placement(taint: &str) -> Value {
    let tolerations = json!({"tolerations": [{"key": taint, "operator": "Exists"}]});
    let job = json!({"name": "node", "template": {"spec": {"template": {"spec": tolerations}}}});
    let patch = json!({"template": {"spec": {"replicatedJobs": [job]}}});
    json!([{"manager": "example.com/queue", "trainingRuntimeSpec": patch}])
}

fn volumes() -> Resource {
    Resource::cluster_wide("/api/v1", "persistentvolumes")
}

fn runs(job: &Value) -> bool {
    is_running(job) && !is(job, "Suspended", "True")
}

/// Accepts that something does not exist.
fn deleted(answer: Answer) -> Result<()> {
    if answer.status != StatusCode::NOT_FOUND {
        answer.accepted()?;
    }
    Ok(())
}
