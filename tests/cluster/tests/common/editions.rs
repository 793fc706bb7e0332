//! Two editions of a plugin that emits an object of each mode, and a TrainJob that uses it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Result;
use serde_json::{Value, json};
use trainyard_cluster::{ControlPlane, Resource, Shared, Write, build_plugin, eventually};

use super::{Disturbed, Scenario, is_running, runtime};

const DEADLINE: Duration = Duration::from_secs(3600);
pub(crate) const MODES: [&str; 4] = ["with-jobset", "once", "while-suspended", "live"];
pub(crate) const JOB: &str = "job";
pub(crate) const SNAPSHOT: &str = "job-runtime-snapshot";

/// A cluster, and two editions of a plugin that emits an object of each mode.
pub(crate) struct Editions {
    pub(crate) cluster: Disturbed,
    pub(crate) first: PathBuf,
    pub(crate) second: PathBuf,
}

impl Shared for Editions {
    fn start() -> Result<Self> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/beside");
        let edition = |name: &str| {
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("beside-{name}"));
            std::fs::create_dir_all(&folder)?;
            let component = folder.join("beside.wasm");
            build_plugin(&sources, &component, &[("TRAINYARD_TEST_EDITION", name)])?;
            anyhow::Ok(folder)
        };
        Ok(Self {
            first: edition("first")?,
            second: edition("second")?,
            cluster: Disturbed::start()?,
        })
    }

    fn plane(&self) -> &ControlPlane {
        self.cluster.plane()
    }

    fn still_runs(&self) -> Result<()> {
        self.cluster.still_runs()
    }
}

/// A TrainJob named `job`, with its objects.
pub(crate) struct TestJob<'a> {
    pub(crate) scenario: Scenario<'a>,
    pub(crate) job_sets: Resource,
    pub(crate) config_maps: Resource,
    events: Resource,
}

impl<'a> TestJob<'a> {
    /// Creates a TrainJob with these plugins, and waits until it runs.
    pub(crate) async fn running(shared: &'a Editions, plugins: &Value) -> Result<Self> {
        let test_job = Self::created(shared, plugins).await?;
        let jobs = test_job.scenario.api(&test_job.scenario.jobs);
        jobs.until(JOB, "it runs", is_running).await?;
        Ok(test_job)
    }

    pub(crate) async fn created(shared: &'a Editions, plugins: &Value) -> Result<Self> {
        let test_job = Self {
            scenario: Scenario::new(&shared.cluster.cluster, DEADLINE).await?,
            job_sets: Resource::jobsets(),
            config_maps: Resource::namespaced("/api/v1", "configmaps"),
            events: Resource::namespaced("/api/v1", "events"),
        };
        let scenario = &test_job.scenario;
        let mut own = runtime();
        own["spec"]["plugins"] = plugins.clone();
        scenario.create_runtime(own).await?;
        let job = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": JOB, "annotations": {"example.com/note": "at first"}},
            "spec": {"runtimeRef": {"kind": "TrainingRuntime", "name": "torch"}},
        });
        let jobs = scenario.api(&scenario.jobs);
        jobs.create(&job, &Write::strict()).await?.accepted()?;
        Ok(test_job)
    }

    /// Sets the note of the TrainJob and these fields of its spec.
    pub(crate) async fn note(&self, note: &str, spec: &Value) -> Result<()> {
        let patch = json!({"metadata": {"annotations": {"example.com/note": note}}, "spec": spec});
        let jobs = self.scenario.api(&self.scenario.jobs);
        jobs.merge(JOB, &patch, &Write::strict())
            .await?
            .accepted()?;
        Ok(())
    }

    pub(crate) async fn job_set(&self) -> Result<Value> {
        let job_sets = self.scenario.api(&self.job_sets);
        Ok(job_sets.get(JOB).await?.accepted()?)
    }

    /// Changes an irrelevant annotation of the JobSet.
    pub(crate) async fn touch(&self, text: &str) -> Result<()> {
        let patch = json!({"metadata": {"annotations": {"example.com/touched": text}}});
        let job_sets = self.scenario.api(&self.job_sets);
        job_sets
            .merge(JOB, &patch, &Write::strict())
            .await?
            .accepted()?;
        Ok(())
    }

    /// Changes an irrelevant annotation of the JobSet until the condition holds.
    pub(crate) async fn touch_until<T>(
        &self,
        what: &str,
        mut came: impl AsyncFnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let mut count = 0;
        eventually(what, async || {
            count += 1;
            self.touch(&count.to_string()).await?;
            came().await
        })
        .await
    }

    /// Returns the objects of the plugin, by mode.
    pub(crate) async fn objects(&self) -> Result<BTreeMap<&'static str, Value>> {
        let items = self.scenario.api(&self.config_maps).items().await?;
        let found = |mode: &&'static str| {
            let name = format!("{JOB}-{mode}");
            let mut items = items.iter();
            let found = items.find(|item| item["metadata"]["name"] == *name)?;
            Some((*mode, found.clone()))
        };
        Ok(MODES.iter().filter_map(found).collect())
    }

    /// Returns the edition and note of each object, by mode.
    pub(crate) async fn notes(&self) -> Result<BTreeMap<&'static str, String>> {
        let objects = self.objects().await?.into_iter();
        let text = |object: &Value, key: &str| {
            let text = object["data"][key].as_str();
            text.unwrap_or_default().to_owned()
        };
        let note =
            |object: &Value| format!("{}: {}", text(object, "edition"), text(object, "note"));
        Ok(objects
            .map(|(mode, object)| (mode, note(&object)))
            .collect())
    }

    pub(crate) async fn until_noted(
        &self,
        mode: &str,
        note: &str,
    ) -> Result<BTreeMap<&'static str, String>> {
        eventually(&format!("{mode} says {note:?}"), async || {
            let notes = self.notes().await?;
            let printed = notes.get(mode).is_some_and(|printed| printed == note);
            Ok(printed.then_some(notes))
        })
        .await
    }

    pub(crate) async fn delete(&self, mode: &str) -> Result<()> {
        let config_maps = self.scenario.api(&self.config_maps);
        let name = format!("{JOB}-{mode}");
        config_maps.delete(&name).await?.accepted()?;
        Ok(())
    }

    /// Returns whether an Event of the TrainJob contains this text.
    pub(crate) async fn has_event(&self, part: &str) -> Result<bool> {
        let events = self.scenario.api(&self.events).items().await?;
        Ok(events.iter().any(|event| {
            let text = event["message"].as_str().unwrap_or_default();
            event["involvedObject"]["name"] == JOB && text.contains(part)
        }))
    }
}

pub(crate) fn emitting() -> Value {
    json!([{"name": "beside"}])
}

/// Returns the pod templates of a JobSet.
pub(crate) fn pods_of(job_set: &Value) -> Value {
    job_set["spec"]["replicatedJobs"].clone()
}
