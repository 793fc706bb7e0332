//! A TrainJob that resumes after a preemption is placed by its pinned runtime, its current patches and the plugins of its plan. Nothing of
//! an earlier admission remains in its JobSet, Jobs or pods, whatever plugins are loaded.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{Resource, Test, Write, eventually};

use crate::common::{Scenario, editions::Editions, is, runtime};

const DEADLINE: Duration = Duration::from_secs(3600);

/// Returns the placement fields of a pod template.
fn placement(pods: &Value) -> Value {
    let (metadata, spec) = (&pods["metadata"], &pods["spec"]);
    let ours = |texts: &Value| -> Value {
        let texts = texts.as_object().into_iter().flatten();
        let ours = texts.filter(|(key, _)| key.starts_with("example.com/"));
        ours.map(|(key, value)| (key.clone(), value.clone()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    // Kubernetes' own tolerations are for failing nodes.
    let tolerations = spec["tolerations"].as_array().into_iter().flatten();
    let tolerations = tolerations.map(|toleration| &toleration["key"]);
    let tolerations = tolerations.filter(|key| !key.to_string().contains("kubernetes.io"));
    json!({
        "labels": ours(&metadata["labels"]), "annotations": ours(&metadata["annotations"]),
        "nodeSelector": spec["nodeSelector"], "tolerations": tolerations.collect::<Vec<_>>(),
        "schedulingGates": spec["schedulingGates"],
    })
}

/// Returns the runtime patches of a queue's admission, in which all values are named after the admission.
fn admission(name: &str) -> Value {
    let key = format!("example.com/{name}");
    let pods = json!({
        "metadata": {"labels": {key.clone(): "1"}, "annotations": {key.clone(): "1"}},
        "spec": {
            "nodeSelector": {key.clone(): "1"}, "tolerations": [{"key": key, "operator": "Exists"}],
            "schedulingGates": [{"name": key}],
        },
    });
    let job = json!({"name": "node", "template": {"spec": {"template": pods}}});
    json!([{
        "manager": "example.com/queue",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}},
    }])
}

/// Returns the placement of pods that this admission unsuspended, rendered by this edition of the plugin.
fn admitted(name: &str, edition: &str) -> Value {
    let key = format!("example.com/{name}");
    json!({
        "labels": {"example.com/runtime": "1", "example.com/edition": edition, key.clone(): "1"},
        "annotations": {key.clone(): "1"},
        "nodeSelector": {"example.com/runtime": "1", key.clone(): "1"}, "tolerations": [key],
        "schedulingGates": [{"name": key}],
    })
}

struct Admissions<'a> {
    scenario: Scenario<'a>,
    job_sets: Resource,
    jobs: Resource,
}

impl<'a> Admissions<'a> {
    async fn new(shared: &'a Editions) -> Result<Self> {
        let scenario = Scenario::new(&shared.cluster.cluster, DEADLINE).await?;
        let mut own = runtime();
        own["spec"]["plugins"] = json!([{"name": "beside"}]);
        let pods = &mut own["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"];
        pods["metadata"] = json!({"labels": {"example.com/runtime": "1"}});
        pods["spec"]["nodeSelector"] = json!({"example.com/runtime": "1"});
        scenario.create_runtime(own).await?;
        Ok(Self {
            job_sets: Resource::jobsets(),
            jobs: Resource::jobs(),
            scenario,
        })
    }

    async fn create(&self, name: &str, suspend: bool, patches: Value) -> Result<()> {
        let reference = json!({"kind": "TrainingRuntime", "name": "torch"});
        let spec = json!({"runtimeRef": reference, "suspend": suspend, "runtimePatches": patches});
        self.scenario.create(name, &spec).await.map(drop)
    }

    /// Runs a TrainJob and preempts it. Its patches of the admission stay, because a queue need not remove them.
    async fn preempted(&self, name: &str) -> Result<()> {
        self.create(name, false, admission("first")).await?;
        self.until_placed(name, &admitted("first", "first")).await?;
        let counted = |job: &Value| job["status"]["jobsStatus"][0]["active"] == 1;
        self.until(name, "it counts", counted).await?;
        self.scenario.patch(name, &json!({"suspend": true})).await?;
        let waits = |job: &Value| is(job, "Suspended", "True");
        self.until(name, "it waits", waits).await?;
        self.until_no_pods(name).await
    }

    async fn until(&self, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Result<()> {
        let jobs = self.scenario.api(&self.scenario.jobs);
        jobs.until(name, what, holds).await.map(drop)
    }

    async fn admit(&self, name: &str, admission: Value) -> Result<()> {
        let spec = json!({"suspend": false, "runtimePatches": admission});
        self.scenario.patch(name, &spec).await.map(drop)
    }

    async fn pods(&self, name: &str) -> Result<Vec<Value>> {
        let pods = self.scenario.api(&self.scenario.pods).items().await?;
        let of = |pod: &Value| pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] == name;
        Ok(pods.into_iter().filter(of).collect())
    }

    async fn until_no_pods(&self, name: &str) -> Result<()> {
        eventually("its pods are gone", async || {
            Ok(self.pods(name).await?.is_empty().then_some(()))
        })
        .await
    }

    /// Waits until the TrainJob's JobSet, Job and pods have this placement.
    async fn until_placed(&self, name: &str, expected: &Value) -> Result<()> {
        let last = async || {
            let job_set = self
                .scenario
                .api(&self.job_sets)
                .get(name)
                .await?
                .accepted()?;
            let (jobs, job) = (self.scenario.api(&self.jobs), format!("{name}-node-0"));
            let job = jobs.get(&job).await?.accepted()?;
            let pods = self.pods(name).await?;
            let template = &job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"];
            let mut found = vec![placement(template), placement(&job["spec"]["template"])];
            found.extend(pods.iter().map(placement));
            anyhow::Ok(found)
        };
        let placed = async || {
            let found = last().await.unwrap_or_default();
            Ok((found.len() == 3 && found.iter().all(|one| one == expected)).then_some(()))
        };
        let what = format!("{name} is placed as it should be");
        let placed = eventually(&what, placed).await;
        match placed {
            Ok(()) => Ok(()),
            Err(error) => {
                let found = last().await;
                Err(error.context(format!("expected {expected:#}, found {found:#?}")))
            }
        }
    }

    async fn job_set(&self, name: &str) -> Result<Value> {
        Ok(self
            .scenario
            .api(&self.job_sets)
            .get(name)
            .await?
            .accepted()?)
    }
}

/// Plugins change while one TrainJob runs, one waits after a revoked admission, and one is preempted.
async fn upgrade_changes_no_placement(shared: &Editions) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let controller = cluster.controller_with(&shared.first).await?;
    let admissions = Admissions::new(shared).await?;
    admissions.create("runs", false, json!([])).await?;
    admissions.create("waits", true, admission("first")).await?;
    admissions.preempted("preempted").await?;
    let before = admissions.scenario.job_set("runs").await?;
    let env = |job_set: &Value| {
        let pods = &job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"];
        pods["spec"]["containers"][0]["env"].clone()
    };
    let preempted = admissions.job_set("preempted").await?;
    controller.kill()?;

    let controller = cluster.controller_with(&shared.second).await?;
    for name in ["waits", "preempted"] {
        admissions.admit(name, admission("second")).await?;
    }
    // The TrainJob that ran keeps the output of the earlier plugin. The one that waited is rendered by the current plugin.
    let expected = admitted("second", "first");
    admissions.until_placed("preempted", &expected).await?;
    let expected = admitted("second", "second");
    admissions.until_placed("waits", &expected).await?;
    let now = admissions.job_set("preempted").await?;
    ensure!(now["metadata"]["uid"] == preempted["metadata"]["uid"]);
    ensure!(env(&now) == env(&preempted), "{now:#}");
    let annotations = &now["metadata"]["annotations"];
    ensure!(
        annotations.get("trainyard.dev/taken-placement").is_none(),
        "{annotations:#}"
    );
    let after = admissions.job_set("runs").await?;
    for field in ["uid", "generation"] {
        ensure!(
            before["metadata"][field] == after["metadata"][field],
            "{after:#}"
        );
    }
    // Resume again, without patches of an admission.
    admissions
        .scenario
        .patch("preempted", &json!({"suspend": true, "runtimePatches": []}))
        .await?;
    admissions.until_no_pods("preempted").await?;
    admissions.admit("preempted", json!([])).await?;
    let expected = json!({
        "labels": {"example.com/runtime": "1", "example.com/edition": "first"}, "annotations": {},
        "nodeSelector": {"example.com/runtime": "1"}, "tolerations": [], "schedulingGates": null,
    });
    admissions.until_placed("preempted", &expected).await?;
    controller.kill().map(drop)
}

/// For a JobSet of the reference, the snapshot contains only the runtime.
async fn train_jobs_started_by_the_reference_are_placed_the_same_way(
    shared: &Editions,
) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let controller = cluster.controller_with(&shared.first).await?;
    let admissions = Admissions::new(shared).await?;
    admissions.preempted("preempted").await?;
    controller.kill()?;
    let scenario = &admissions.scenario;
    let config_maps = scenario.api(&scenario.config_maps);
    let name = "preempted-runtime-snapshot";
    let mut snapshot = config_maps.get(name).await?.accepted()?;
    config_maps.delete(name).await?.accepted()?;
    let data = snapshot["data"].as_object_mut().context("no data")?;
    data.retain(|key, _| key == "runtime");
    snapshot["immutable"] = json!(false);
    let owners = snapshot["metadata"]["ownerReferences"].take();
    snapshot["metadata"] = json!({"name": name, "ownerReferences": owners});
    let made = config_maps.create(&snapshot, &Write::strict()).await?;
    made.accepted()?;
    let unmarked = json!({"metadata": {"annotations": {"trainyard.dev/started": null}}});
    let job_sets = scenario.api(&admissions.job_sets);
    job_sets
        .merge("preempted", &unmarked, &Write::strict())
        .await?
        .accepted()?;

    let controller = cluster.controller_with(&shared.first).await?;
    admissions.admit("preempted", admission("second")).await?;
    let expected = admitted("second", "first");
    admissions.until_placed("preempted", &expected).await?;
    controller.kill().map(drop)
}

/// A snapshot that another client broke is reported, but the TrainJob still resumes.
async fn unreadable_snapshot_does_not_keep_train_jobs_suspended(shared: &Editions) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let controller = cluster.controller_with(&shared.first).await?;
    let admissions = Admissions::new(shared).await?;
    admissions.preempted("preempted").await?;
    let scenario = &admissions.scenario;
    let config_maps = scenario.api(&scenario.config_maps);
    let name = "preempted-runtime-snapshot";
    let mut snapshot = config_maps.get(name).await?.accepted()?;
    config_maps.delete(name).await?.accepted()?;
    let owners = snapshot["metadata"]["ownerReferences"].take();
    let broken = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": owners}, "data": {"runtime": "kind: ["},
    });
    let broken = config_maps.create(&broken, &Write::strict()).await?;
    let broken = broken.accepted()?;
    admissions.admit("preempted", admission("second")).await?;
    let expected = admitted("second", "first");
    admissions.until_placed("preempted", &expected).await?;
    scenario
        .event(
            "preempted",
            &format!("ConfigMap `{name}`: data: another client changed it"),
        )
        .await?;
    ensure!(config_maps.get(name).await?.accepted()? == broken);
    controller.kill().map(drop)
}

pub(crate) fn tests() -> Vec<Test<Editions>> {
    tests![
        upgrade_changes_no_placement,
        train_jobs_started_by_the_reference_are_placed_the_same_way,
        unreadable_snapshot_does_not_keep_train_jobs_suspended,
    ]
}
