//! TrainJobs of each policy in each state, in a namespace of their own.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use trainyard_cluster::{Fate, PodGroups, Resource, Write, eventually};

use super::Said;
use crate::common::{
    Handover, Namespace, OVERDUE, Objects, counts, described_conditions, devices, differing, is,
    is_running, is_suspended, runtimes,
};

/// The policies with their runtimes. Their names begin the names of the TrainJobs.
pub(super) const POLICIES: [(&str, &str); 11] = [
    ("plain", "plain"),
    ("torch", "torch-distributed"),
    ("torchtune", "torchtune-llama3.2-1b"),
    ("jax", "jax-distributed"),
    ("xgboost", "xgboost-distributed"),
    ("own-launcher", "own-launcher"),
    ("launcher-node", "launcher-node"),
    ("flux", "flux"),
    ("coscheduling", "coscheduling"),
    ("volcano", "volcano"),
    ("dra", devices::RUNTIME),
];

/// How long a TrainJob with a deadline may run.
const DEADLINE_SECONDS: u64 = 5;

/// What a TrainJob does when the controllers are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Running,
    /// Suspended, as by Kueue, and has never run.
    Queued,
    /// Suspended after it ran.
    Preempted,
    Failed,
    /// Failed because of its deadline.
    Overdue,
    /// Failed, and its JobSet is gone, as after `ttlSecondsAfterFinished`.
    Collected,
}

impl State {
    pub(super) const ALL: [Self; 6] = [
        Self::Running,
        Self::Queued,
        Self::Preempted,
        Self::Failed,
        Self::Overdue,
        Self::Collected,
    ];
    /// Returns the name of the TrainJob of a policy in this state.
    pub(super) fn of(self, policy: &str) -> String {
        format!("{policy}-{}", format!("{self:?}").to_lowercase())
    }

    pub(super) fn is_suspended(self) -> bool {
        matches!(self, Self::Queued | Self::Preempted)
    }

    fn starts(self) -> bool {
        self != Self::Queued
    }

    fn fails(self) -> bool {
        matches!(self, Self::Failed | Self::Collected)
    }
}

/// A policy and a state.
type Cell = (&'static str, State);

/// Returns all policies in all states.
pub(super) fn all() -> impl Iterator<Item = Cell> {
    let of = |state: State| POLICIES.map(|(policy, _)| (policy, state));
    State::ALL.into_iter().flat_map(of)
}

/// Returns those that the reference supports: it has no DRA, runs a failed TrainJob again whose JobSet is gone, and cannot write to a JobSet with
/// `volumeClaimPolicies`, as that of torchtune, to suspend or resume it.
pub(super) fn of_the_reference() -> impl Iterator<Item = Cell> {
    let is_supported = |(policy, state): &Cell| {
        let is_known = *policy != "dra" && *state != State::Collected;
        is_known && !(state.is_suspended() && *policy == "torchtune")
    };
    all().filter(is_supported)
}

/// Returns those that move back to the reference: others of DRA than running ones have to end before, because it does not know their claims.
pub(super) fn back_to_the_reference() -> impl Iterator<Item = Cell> {
    all().filter(|(policy, state)| !(state.is_suspended() && *policy == "dra"))
}

/// TrainJobs, each of a policy and in a state.
pub(super) struct Crowd<'a> {
    pub(super) namespace: Namespace<'a>,
    cells: Vec<Cell>,
    /// Whether objects of TrainJobs that have never run are compared.
    compares_queued: bool,
}

impl<'a> Crowd<'a> {
    /// Creates the TrainJobs, and waits until each is in its state.
    pub(super) async fn new(
        shared: &'a Handover,
        cells: impl Iterator<Item = Cell>,
    ) -> Result<Self> {
        let namespace = Namespace::new(&shared.cluster).await?;
        namespace.decide_pods(|pod| fate(pod, Fate::Hold));
        let crowd = Self {
            namespace,
            cells: cells.collect(),
            compares_queued: true,
        };
        crowd.create_volumes(shared).await?;
        for (policy, state) in crowd.all() {
            let spec = spec(policy, state);
            crowd.namespace.create(&state.of(policy), &spec).await?;
        }
        for (policy, state) in crowd.all() {
            crowd
                .reach(&state.of(policy), state)
                .await
                .with_context(|| state.of(policy))?;
        }
        Ok(crowd)
    }

    /// Compares none that has never run: it follows the plugins of each release.
    pub(super) fn without_queued(self) -> Self {
        Self {
            compares_queued: false,
            ..self
        }
    }

    /// Creates a volume for each TrainJob of torchtune, and one for that which is recreated: no pod starts before its claim is bound.
    async fn create_volumes(&self, shared: &Handover) -> Result<()> {
        let volumes = Resource::cluster_wide("/api/v1", "persistentvolumes");
        let volumes = shared.cluster.api(&volumes, "");
        for at in 0..2 * State::ALL.len() {
            let volume = json!({
                "apiVersion": "v1", "kind": "PersistentVolume",
                "metadata": {"name": format!("{}-{at}", self.namespace.name)},
                "spec": {
                    "capacity": {"storage": "20Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/var/empty"},
                },
            });
            let created = volumes.create(&volume, &Write::strict()).await?;
            created.accepted()?;
        }
        Ok(())
    }

    fn all(&self) -> impl Iterator<Item = Cell> + use<'_> {
        self.cells.iter().copied()
    }

    pub(super) fn count(&self) -> usize {
        self.all().count()
    }

    /// Waits until a TrainJob is in its state.
    async fn reach(&self, name: &str, state: State) -> Result<()> {
        let namespace = &self.namespace;
        let is_failed = |job: &Value| is(job, "Failed", "True");
        match state {
            State::Running => namespace.until(name, "it runs", is_running).await?,
            State::Queued => {
                // A launcher that depends on the nodes has no Job yet.
                let waits = |job: &Value| is(job, "Suspended", "True") && !counts(job).is_empty();
                namespace.until(name, "it waits", waits).await?
            }
            State::Preempted => {
                namespace.until(name, "it runs", is_running).await?;
                namespace.patch(name, &json!({"suspend": true})).await?;
                namespace.until(name, "it waits", is_suspended).await?
            }
            State::Failed => namespace.until(name, "it has failed", is_failed).await?,
            State::Overdue => {
                let is_overdue = |job: &Value| described_conditions(job).contains(&overdue());
                namespace.until(name, "it is overdue", is_overdue).await?
            }
            State::Collected => {
                let failed = namespace.until(name, "it has failed", is_failed).await?;
                let job_sets = namespace.api(&namespace.job_sets);
                job_sets.delete(name).await?.accepted()?;
                failed
            }
        };
        Ok(())
    }

    /// Waits until the objects are settled, and returns them with the PodGroups.
    pub(super) async fn objects(&self) -> Result<Objects> {
        let mut objects = self.namespace.settled().await?;
        for kind in PodGroups::ALL {
            let resource = kind.resource();
            for group in self.namespace.api(&resource).items().await? {
                let name = group["metadata"]["name"].as_str().unwrap_or_default();
                objects.insert(format!("PodGroup {name}"), group);
            }
        }
        if !self.compares_queued {
            let queued = format!("{}-", State::Queued.of(""));
            objects.retain(|key, _| !format!("{key}-").contains(&queued));
        }
        Ok(objects)
    }

    /// Checks that all objects are the same as before, byte for byte.
    pub(super) async fn are_unchanged(&self, before: &Objects) -> Result<()> {
        same(before, &self.objects().await?)
    }

    /// Changes an irrelevant annotation of each TrainJob, which triggers a reconcile.
    pub(super) async fn touch(&self) -> Result<()> {
        let patch = json!({"metadata": {"annotations": {TOUCHED: "yes"}}});
        let jobs = self.namespace.api(&self.namespace.jobs);
        for (policy, state) in self.all() {
            let name = state.of(policy);
            let touched = jobs.merge(&name, &patch, &Write::strict()).await?;
            touched.accepted()?;
        }
        Ok(())
    }

    /// Checks that all objects are the same as before, byte for byte, apart from that annotation.
    pub(super) async fn are_only_touched(&self, before: &Objects) -> Result<()> {
        let untouched = |mut objects: Objects| {
            for (_, job) in objects
                .iter_mut()
                .filter(|(key, _)| key.starts_with("TrainJob "))
            {
                let mut metadata = job["metadata"].as_object_mut();
                for field in OF_TOUCH {
                    metadata.as_mut().map(|metadata| metadata.remove(field));
                }
            }
            objects
        };
        same(
            &untouched(before.clone()),
            &untouched(self.objects().await?),
        )
    }

    /// Checks that TrainJobs that have never run still wait, with a suspended JobSet.
    pub(super) async fn queued_wait(&self) -> Result<()> {
        for (policy, state) in self.all().filter(|(_, state)| *state == State::Queued) {
            let name = state.of(policy);
            let job = self.namespace.api(&self.namespace.jobs).get(&name).await?;
            let job_set = self.namespace.job_set(&name).await?;
            let job = job.accepted()?;
            // Jobs that depend on others do not exist yet.
            let has_no_pods = counts(&job).values().all(|it| it["active"] == 0);
            let waits = is(&job, "Suspended", "True") && has_no_pods;
            let waits = waits && job_set["spec"]["suspend"] == true;
            ensure!(waits, "{name} does not wait: {job_set:#}");
        }
        Ok(())
    }

    /// Does what the rehearsal says, resumes what is suspended, and lets everything end that has not.
    pub(super) async fn go_on(&self, said: &Said) -> Result<()> {
        let namespace = &self.namespace;
        for (policy, state) in self.all().filter(|(_, state)| state.is_suspended()) {
            let name = state.of(policy);
            let is_said = |action: &str| said.contains(&(name.clone(), action.to_owned()));
            if is_said("deleteJobSet") {
                namespace.recreate_job_set(&name).await?;
            }
            if is_said("recreate") {
                self.recreate(&name, policy, state).await?;
            } else {
                namespace.patch(&name, &json!({"suspend": false})).await?;
            }
        }
        for (policy, state) in self.all().filter(|(_, state)| state.is_suspended()) {
            let name = state.of(policy);
            namespace.until(&name, "it runs", is_running).await?;
            if said.contains(&(name.clone(), "deleteJobSet".to_owned())) {
                let job_set = namespace.job_set(&name).await?;
                let annotations = job_set["metadata"]["annotations"].to_string();
                ensure!(!annotations.contains("trainyard.dev"), "{annotations}");
            }
        }
        namespace.decide_pods(|pod| fate(pod, Fate::Succeed));
        for (policy, state) in self.all() {
            let name = state.of(policy);
            if state == State::Collected {
                let runs_again = said.contains(&(name.clone(), "delete".to_owned()));
                if runs_again {
                    namespace.job_set(&name).await?;
                } else {
                    self.has_no_job_set(&name).await?;
                }
            }
            if state.fails() {
                let is_failed = |job: &Value| is(job, "Failed", "True");
                namespace.until(&name, "it has failed", is_failed).await?;
            } else if state == State::Overdue {
                self.is_over(&name).await?;
            } else {
                namespace.until_complete(&name).await?;
            }
        }
        Ok(())
    }

    /// Creates a TrainJob again, which is not suspended: the reference could not resume it.
    async fn recreate(&self, name: &str, policy: &str, state: State) -> Result<()> {
        let jobs = self.namespace.api(&self.namespace.jobs);
        jobs.delete(name).await?.accepted()?;
        eventually("it is deleted", async || {
            let answer = jobs.get(name).await?;
            Ok((answer.status == 404).then_some(()))
        })
        .await?;
        let mut spec = spec(policy, state);
        spec["suspend"] = false.into();
        self.namespace.create(name, &spec).await.map(drop)
    }

    /// Checks that a TrainJob that was overdue is, and has no JobSet.
    async fn is_over(&self, name: &str) -> Result<()> {
        let job = self.namespace.api(&self.namespace.jobs).get(name).await?;
        let job = job.accepted()?;
        ensure!(described_conditions(&job).contains(&overdue()), "{job:#}");
        self.has_no_job_set(name).await
    }

    async fn has_no_job_set(&self, name: &str) -> Result<()> {
        let job_set = self
            .namespace
            .api(&self.namespace.job_sets)
            .get(name)
            .await?;
        ensure!(job_set.status == 404, "{job_set:?}");
        Ok(())
    }
}

const TOUCHED: &str = "example.com/touched";
/// The metadata that its change changes.
const OF_TOUCH: [&str; 3] = ["annotations", "managedFields", "resourceVersion"];

/// Whether this field, by its JSON pointer, is changed by the irrelevant annotation.
pub(super) fn is_of_touch(field: &str) -> bool {
    let name = field.strip_prefix("/metadata/");
    let name = name.and_then(|rest| rest.split('/').next());
    name.is_some_and(|name| OF_TOUCH.contains(&name))
}

fn overdue() -> [String; 4] {
    OVERDUE.map(str::to_owned)
}

fn spec(policy: &str, state: State) -> Value {
    let runtime = POLICIES.iter().find(|(name, _)| *name == policy);
    let runtime = runtime.map(|(_, runtime)| runtime);
    let trainer = match policy {
        "torchtune" => json!({"numNodes": 1, "command": ["tune", "run"]}),
        _ => json!({"numNodes": 2, "command": ["mpirun", "lmp"]}),
    };
    let mut spec = json!({
        "runtimeRef": {"name": runtime}, "trainer": trainer, "suspend": !state.starts(),
    });
    if state == State::Overdue {
        spec["activeDeadlineSeconds"] = DEADLINE_SECONDS.into();
    }
    spec
}

/// Lets initializers succeed, and nodes fail if their TrainJob does. The SSH servers of MPI's nodes do not exit.
fn fate(pod: &Pod, others: Fate) -> Fate {
    let (name, job) = (runtimes::job_set(pod), runtimes::replicated_job(pod));
    let fails = State::ALL.iter().any(|state| {
        let end = state.of("");
        state.fails() && name.ends_with(&end)
    });
    let is_mpi = ["own-launcher", "launcher-node"]
        .iter()
        .any(|policy| name.starts_with(policy));
    match job {
        _ if job.ends_with("initializer") => Fate::Succeed,
        _ if fails => Fate::Fail(1),
        "node" if is_mpi => Fate::Hold,
        _ => others,
    }
}

/// Checks that objects are the same. Trainyard marks the snapshot of a suspended TrainJob whose initializers have succeeded, because it has run.
fn same(before: &Objects, now: &Objects) -> Result<()> {
    let marked = PodGroups::ALL.map(|kind| {
        let name = State::Preempted.of(kind.policy());
        format!("ConfigMap {name}-runtime-snapshot")
    });
    let compared = |key: &String, objects: &Objects| {
        let object = objects.get(key).cloned().unwrap_or_default();
        match marked.contains(key) {
            true => json!({"uid": object["metadata"]["uid"], "data": object["data"]}),
            false => object,
        }
    };
    let mut changed = Vec::new();
    let keys: BTreeSet<_> = before.keys().chain(now.keys()).collect();
    for key in keys {
        let (was, is) = (compared(key, before), compared(key, now));
        if was != is {
            changed.push(format!("{key}: {:?}", differing(&was, &is)));
        }
    }
    ensure!(changed.is_empty(), "{}", changed.join("\n"));
    Ok(())
}
