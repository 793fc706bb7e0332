//! A namespace of one test.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Map, Value, json};
use trainyard_cluster::{Api, Cluster, Fate, Resource, Write, eventually};
use trainyard_schema::documents::Kind;

use super::{is, kind, runtimes};

/// Objects by their kind and name, such as `Pod bert-node-0-0-x7z2p`.
pub(crate) type Objects = BTreeMap<String, Value>;

/// How long objects must be unchanged to count as settled, which is much longer than JobSet's reaction to a change.
const SETTLED: Duration = Duration::from_secs(3);

/// A namespace for one test, with the kinds of a TrainJob's objects.
pub(crate) struct Namespace<'a> {
    pub(crate) name: String,
    pub(crate) jobs: Resource,
    pub(crate) job_sets: Resource,
    pub(crate) pods: Resource,
    pub(crate) config_maps: Resource,
    pub(crate) events: Resource,
    cluster: &'a Cluster,
}

impl<'a> Namespace<'a> {
    pub(crate) async fn new(cluster: &'a Cluster) -> Result<Self> {
        Ok(Self {
            name: cluster.new_namespace().await?,
            jobs: kind(Kind::TrainJob)?,
            job_sets: Resource::jobsets(),
            pods: Resource::pods(),
            config_maps: Resource::namespaced("/api/v1", "configmaps"),
            events: Resource::namespaced("/api/v1", "events"),
            cluster,
        })
    }

    /// Returns all objects of all kinds that a TrainJob leads to, each with its kind.
    pub(crate) async fn everything(&self) -> Result<Vec<(&'static str, Value)>> {
        let jobs = Resource::jobs();
        let [secrets, services] =
            ["secrets", "services"].map(|plural| Resource::namespaced("/api/v1", plural));
        let kinds = [
            ("TrainJob", &self.jobs),
            ("JobSet", &self.job_sets),
            ("Job", &jobs),
            ("Pod", &self.pods),
            ("ConfigMap", &self.config_maps),
            ("Secret", &secrets),
            ("Service", &services),
        ];
        let mut all = Vec::new();
        for (kind, resource) in kinds {
            let items = self.api(resource).items().await?;
            all.extend(items.into_iter().map(|item| (kind, item)));
        }
        // Kubernetes creates this ConfigMap in each namespace.
        all.retain(|(_, object)| object["metadata"]["name"] != "kube-root-ca.crt");
        Ok(all)
    }

    /// Returns the same objects by kind and name.
    pub(crate) async fn objects(&self) -> Result<Objects> {
        let all = self.everything().await?;
        let named = all.into_iter().map(|(kind, object)| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            (format!("{kind} {name}"), object)
        });
        Ok(named.collect())
    }

    /// Waits until the objects are settled, and returns them.
    pub(crate) async fn settled(&self) -> Result<Objects> {
        let mut last = (Instant::now(), self.objects().await?);
        eventually("the objects are settled", async || {
            let now = self.objects().await?;
            if now != last.1 {
                last = (Instant::now(), now);
            }
            let is_settled = last.0.elapsed() > SETTLED;
            Ok(is_settled.then(|| last.1.clone()))
        })
        .await
    }

    pub(crate) fn api(&'a self, resource: &'a Resource) -> Api<'a> {
        self.cluster.api(resource, &self.name)
    }

    /// Sets the fate of all pods of this test.
    pub(crate) fn fate(&self, fate: Fate) {
        self.decide_pods(move |_| fate);
    }

    /// Sets the fate of each pod of this test.
    pub(crate) fn decide_pods(&self, fate: impl Fn(&Pod) -> Fate + Send + Sync + 'static) {
        self.cluster.kubelet().decide(&self.name, fate);
    }

    /// Creates a TrainJob.
    pub(crate) async fn create(&self, name: &str, spec: &Value) -> Result<Value> {
        let job = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": name}, "spec": spec,
        });
        Ok(self
            .api(&self.jobs)
            .create(&job, &Write::strict())
            .await?
            .accepted()?)
    }

    /// Creates a TrainingRuntime of this namespace, from a runtime of either kind.
    pub(crate) async fn create_runtime(&self, mut runtime: Value) -> Result<()> {
        runtime["kind"] = json!("TrainingRuntime");
        let runtimes = kind(Kind::TrainingRuntime)?;
        let runtimes = self.api(&runtimes);
        let created = runtimes.create(&runtime, &Write::strict()).await?;
        created.accepted()?;
        Ok(())
    }

    /// Deletes TrainJobs, and waits until no object of any TrainJob is left.
    pub(crate) async fn delete_all(
        &self,
        names: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<()> {
        let jobs = self.api(&self.jobs);
        for name in names {
            jobs.delete(name.as_ref()).await?.accepted()?;
        }
        eventually("nothing is left", async || {
            Ok(self.everything().await?.is_empty().then_some(()))
        })
        .await
    }

    /// Deletes a JobSet, and waits until it is recreated. Returns the new one.
    pub(crate) async fn recreate_job_set(&self, name: &str) -> Result<Value> {
        let job_sets = self.api(&self.job_sets);
        let before = job_sets.get(name).await?.accepted()?;
        job_sets.delete(name).await?.accepted()?;
        let is_another = |job_set: &Value| {
            job_set.is_object() && job_set["metadata"]["uid"] != before["metadata"]["uid"]
        };
        job_sets.until(name, "it is recreated", is_another).await
    }

    /// Patches the spec of a TrainJob.
    pub(crate) async fn patch(&self, name: &str, spec: &Value) -> Result<Value> {
        let patch = json!({"spec": spec});
        Ok(self
            .api(&self.jobs)
            .merge(name, &patch, &Write::strict())
            .await?
            .accepted()?)
    }

    /// Suspends a TrainJob, and waits until its condition says so.
    pub(crate) async fn suspend(&self, name: &str) -> Result<()> {
        self.patch(name, &json!({"suspend": true})).await?;
        let is_suspended = |job: &Value| is(job, "Suspended", "True");
        let suspended = self.until(name, "it is suspended", is_suspended);
        suspended.await.map(drop)
    }

    pub(crate) async fn until(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        self.api(&self.jobs).until(name, what, holds).await
    }

    pub(crate) async fn job_set(&self, name: &str) -> Result<Value> {
        let there = |object: &Value| object.is_object();
        self.api(&self.job_sets)
            .until(name, "there is a JobSet", there)
            .await
    }

    pub(crate) async fn until_complete(&self, name: &str) -> Result<Value> {
        let is_complete = |job: &Value| is(job, "Complete", "True");
        self.until(name, "it is complete", is_complete).await
    }

    /// Lets all pods succeed but SSH servers of MPI's nodes, which do not exit, and waits until these TrainJobs are complete.
    pub(crate) async fn complete(&self, names: &[&str]) -> Result<()> {
        self.decide_pods(|pod| {
            let is_mpi = ["own-launcher", "launcher-node"].contains(&runtimes::job_set(pod));
            let ends = !is_mpi || runtimes::replicated_job(pod) == "launcher";
            if ends { Fate::Succeed } else { Fate::Hold }
        });
        for name in names {
            self.until_complete(name).await?;
        }
        Ok(())
    }

    /// Waits until this many nodes of the job run.
    pub(crate) async fn until_active(&self, name: &str, nodes: i64) -> Result<Value> {
        self.until(name, "it runs", |job| {
            job["status"]["jobsStatus"].as_array().is_some_and(|jobs| {
                jobs.iter()
                    .any(|one| one["name"] == "node" && one["ready"] == nodes)
            })
        })
        .await
    }

    /// Waits for an Event about the named object whose message contains this text.
    pub(crate) async fn event(&self, name: &str, part: &str) -> Result<Value> {
        let about = |event: &&Value| {
            event["involvedObject"]["name"] == name
                && event["message"]
                    .as_str()
                    .is_some_and(|text| text.contains(part))
        };
        let events = self.api(&self.events);
        let found = events
            .until_all(&format!("an Event of {name} that says {part:?}"), |all| {
                all.iter().find(about).is_some()
            })
            .await?;
        found
            .iter()
            .find(about)
            .cloned()
            .context("the Event was deleted")
    }
}

/// Returns the paths at which two objects differ, without what each write changes.
pub(crate) fn differing(was: &Value, is: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    add_differing(was, is, "", &mut found);
    found
}

fn add_differing(was: &Value, is: &Value, path: &str, found: &mut BTreeSet<String>) {
    let of_each_write = ["managedFields", "resourceVersion", "generation"];
    match (was, is) {
        (Value::Object(was), Value::Object(is)) => {
            let keys: BTreeSet<_> = was.keys().chain(is.keys()).collect();
            for key in keys
                .into_iter()
                .filter(|key| !of_each_write.contains(&key.as_str()))
            {
                let of = |object: &Map<String, Value>| object.get(key).cloned().unwrap_or_default();
                add_differing(&of(was), &of(is), &format!("{path}/{key}"), found);
            }
        }
        (Value::Array(was), Value::Array(is)) if was.len() == is.len() => {
            for (at, (was, is)) in was.iter().zip(is).enumerate() {
                add_differing(was, is, &format!("{path}/{at}"), found);
            }
        }
        _ if was != is => {
            found.insert(path.to_owned());
        }
        _ => {}
    }
}
