//! TrainJobs in the middle of everything that may happen to them, and all that there is of them in the end.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::indexing_slicing)]

mod seen;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use trainyard_cluster::{
    Api, Cluster, ControlPlane, Fate, Proxy, Resource, Shared, Trainyard, Write, deploy,
};
use trainyard_schema::documents::Kind;

pub use seen::Seen;

/// How long objects stay as they are before they count as settled: far longer than changes of a JobSet are gathered.
const SETTLED: Duration = Duration::from_secs(3);
/// How long they may take.
const WITHIN: Duration = Duration::from_secs(180);

/// A cluster with a proxy before its API server, and one test at a time on it.
pub struct Disturbed {
    pub cluster: Cluster,
    pub proxy: Proxy,
    pub turn: Mutex<()>,
    /// The kubeconfig file of the account that deploy/ gives the controller, and the same by way of the proxy.
    direct: PathBuf,
    by_proxy: PathBuf,
}

impl Shared for Disturbed {
    fn start() -> Result<Self> {
        let cluster = Cluster::start()?;
        let plane = cluster.plane();
        let (proxy, direct) = plane.block_on(async {
            let runtimes = kind(Kind::ClusterTrainingRuntime)?;
            let api = cluster.api(&runtimes, "");
            api.create(&runtime(), &Write::strict()).await?.accepted()?;
            anyhow::Ok((Proxy::start(plane).await?, deploy(plane).await?))
        })?;
        Ok(Self {
            by_proxy: proxy.kubeconfig(&direct)?,
            direct,
            turn: Mutex::default(),
            cluster,
            proxy,
        })
    }

    fn plane(&self) -> &ControlPlane {
        self.cluster.plane()
    }

    fn still_runs(&self) -> Result<()> {
        self.cluster.still_runs()
    }
}

impl Disturbed {
    /// A controller that calls by way of the proxy.
    pub async fn controller(&self) -> Result<Arc<Trainyard>> {
        let arguments = ["--leader-elect=false"];
        Ok(Arc::new(
            Trainyard::start(self.plane(), &self.by_proxy, arguments).await?,
        ))
    }

    /// The same with the plugins of a folder.
    pub async fn controller_with(&self, plugins: &Path) -> Result<Arc<Trainyard>> {
        let arguments = [
            OsStr::new("--leader-elect=false"),
            OsStr::new("--plugin-dir"),
            plugins.as_os_str(),
        ];
        Ok(Arc::new(
            Trainyard::start(self.plane(), &self.by_proxy, arguments).await?,
        ))
    }

    /// One that calls the API server itself.
    pub async fn direct_controller(&self) -> Result<Trainyard> {
        Trainyard::start(self.plane(), &self.direct, ["--leader-elect=false"]).await
    }

    /// The controller that calls by way of the proxy, before it is ready.
    pub fn starting_controller(&self) -> Result<Arc<Trainyard>> {
        let arguments = ["--leader-elect=false"];
        let started = Trainyard::start_unready(self.plane(), &self.by_proxy, arguments)?;
        Ok(Arc::new(started))
    }
}

pub fn kind(kind: Kind) -> Result<Resource> {
    Ok(Resource::defined_by(&kind.crd()?)?)
}

/// The runtime `torch`, of one replicated job.
pub fn runtime() -> Value {
    let container = json!({"name": "node", "image": "example.com/image"});
    let job = json!({
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"backoffLimit": 0, "template": {"spec": {"containers": [container]}}},
        },
    });
    json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "torch"},
        "spec": {"mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": [job]}}},
    })
}

/// A TrainJob, and what happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// It is created.
    Created,
    /// It is suspended while it runs.
    Suspended,
    /// It ran, was suspended, and is resumed.
    Resumed,
    /// It was created suspended; its patches are changed, and it is let go.
    Queued,
    /// It runs for longer than it may.
    Overdue,
    /// It ends.
    Completes,
}

impl Case {
    pub const ALL: [Self; 6] = [
        Self::Created,
        Self::Suspended,
        Self::Resumed,
        Self::Queued,
        Self::Overdue,
        Self::Completes,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Suspended => "suspended",
            Self::Resumed => "resumed",
            Self::Queued => "queued",
            Self::Overdue => "overdue",
            Self::Completes => "completes",
        }
    }

    /// Brings it to where something happens to it.
    pub async fn prepare(self, place: &Place<'_>) -> Result<()> {
        match self {
            Self::Created => Ok(()),
            Self::Suspended | Self::Overdue | Self::Completes => self.run(place).await,
            Self::Resumed => {
                self.run(place).await?;
                self.patch(place, &json!({"suspend": true})).await?;
                place.until(self, "it is suspended", is_suspended).await
            }
            Self::Queued => {
                self.create(place, &json!({"suspend": true})).await?;
                place.until(self, "it is suspended", is_suspended).await
            }
        }
    }

    /// What happens to it.
    pub async fn happen(self, place: &Place<'_>) -> Result<()> {
        match self {
            Self::Created => self.create(place, &json!({})).await,
            Self::Suspended => self.patch(place, &json!({"suspend": true})).await,
            Self::Resumed => self.patch(place, &json!({"suspend": false})).await,
            Self::Queued => {
                let tolerations = json!({"tolerations": [{"operator": "Exists"}]});
                let job = json!({"name": "node", "template": {"spec": {"template": {"spec": tolerations}}}});
                let patch = json!({
                    "manager": "example.com/queue",
                    "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}},
                });
                let spec = json!({"suspend": false, "runtimePatches": [patch]});
                self.patch(place, &spec).await
            }
            // Time alone makes it happen.
            Self::Overdue => Ok(()),
            Self::Completes => {
                place.let_complete();
                Ok(())
            }
        }
    }

    /// Whether it came to where it should.
    fn is_over(self, job: &Value) -> bool {
        match self {
            Self::Created => is_running(job),
            Self::Resumed => is_running(job) && is(job, "Suspended", "False"),
            Self::Queued => is_running(job) && is(job, "Suspended", "False"),
            Self::Suspended => is_suspended(job),
            Self::Overdue => is(job, "Failed", "True"),
            Self::Completes => is(job, "Complete", "True"),
        }
    }

    async fn run(self, place: &Place<'_>) -> Result<()> {
        let deadline = place.deadline.as_secs();
        let spec = match self {
            Self::Overdue => json!({"activeDeadlineSeconds": deadline}),
            _ => json!({}),
        };
        self.create(place, &spec).await?;
        place.until(self, "it runs", is_running).await
    }

    async fn create(self, place: &Place<'_>, spec: &Value) -> Result<()> {
        let mut job = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": self.name()}, "spec": spec,
        });
        job["spec"]["runtimeRef"] = json!({"name": "torch"});
        let api = place.api(&place.jobs);
        api.create(&job, &Write::strict()).await?.accepted()?;
        Ok(())
    }

    async fn patch(self, place: &Place<'_>, spec: &Value) -> Result<()> {
        let patch = json!({"spec": spec});
        let api = place.api(&place.jobs);
        api.merge(self.name(), &patch, &Write::strict())
            .await?
            .accepted()?;
        Ok(())
    }
}

/// Where the TrainJobs of one round are, one of each case.
pub struct Place<'a> {
    pub namespace: String,
    pub seen: Seen,
    pub deadline: Duration,
    cluster: &'a Cluster,
    completes: Arc<AtomicBool>,
    pub jobs: Resource,
}

impl<'a> Place<'a> {
    /// A fresh one, in which a TrainJob with a deadline has so much time.
    pub async fn new(cluster: &'a Cluster, deadline: Duration) -> Result<Self> {
        let namespace = cluster.new_namespace().await?;
        let place = Self {
            seen: Seen::start(cluster.plane(), &namespace).await?,
            jobs: kind(Kind::TrainJob)?,
            completes: Arc::default(),
            namespace,
            deadline,
            cluster,
        };
        place.decide();
        Ok(place)
    }

    pub fn api(&'a self, resource: &'a Resource) -> Api<'a> {
        self.cluster.api(resource, &self.namespace)
    }

    fn decide(&self) {
        let completes = Arc::clone(&self.completes);
        let decision = move |pod: &Pod| {
            let job_set = pod.labels().get("jobset.sigs.k8s.io/jobset-name");
            let ends = job_set.is_some_and(|name| name == Case::Completes.name());
            if ends && completes.load(Ordering::Relaxed) {
                Fate::Succeed
            } else {
                Fate::Hold
            }
        };
        self.cluster.kubelet().decide(&self.namespace, decision);
    }

    fn let_complete(&self) {
        self.completes.store(true, Ordering::Relaxed);
        self.decide();
    }

    pub async fn until(
        &self,
        case: Case,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Result<()> {
        let api = self.api(&self.jobs);
        api.until(case.name(), what, holds).await.map(drop)
    }

    /// Waits until all is over of these, and nothing changes any more: all that there is then.
    pub async fn settled(&self, cases: &[Case]) -> Result<Value> {
        for case in cases {
            let holds = |job: &Value| case.is_over(job);
            self.until(*case, "it is over", holds).await?;
        }
        self.unchanged_for(SETTLED).await
    }

    /// Waits until nothing has changed for so long: all that there is then.
    pub async fn unchanged_for(&self, pause: Duration) -> Result<Value> {
        let mut last = (Instant::now(), self.objects().await?);
        loop {
            tokio::time::sleep(pause / 10).await;
            let now = self.objects().await?;
            if now != last.1 {
                last = (Instant::now(), now);
            } else if last.0.elapsed() > pause {
                return Ok(last.1);
            }
        }
    }

    /// Whether there is this and nothing else.
    pub async fn is(&self, expected: &Value) -> Result<bool> {
        Ok(self.objects().await? == *expected)
    }

    /// Waits until there is this and nothing else.
    pub async fn until_it_is(&self, expected: &Value) -> Result<()> {
        let deadline = Instant::now() + WITHIN;
        loop {
            let found = self.objects().await?;
            if found == *expected {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("not as undisturbed: {}", differences(expected, &found));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// All objects of all kinds that a TrainJob leads to, without what differs from run to run.
    pub async fn objects(&self) -> Result<Value> {
        let config_maps = Resource::namespaced("/api/v1", "configmaps");
        let services = Resource::namespaced("/api/v1", "services");
        let secrets = Resource::namespaced("/api/v1", "secrets");
        let (job_sets, jobs, pods) = (Resource::jobsets(), Resource::jobs(), Resource::pods());
        let kinds = [
            ("TrainJob", &self.jobs),
            ("JobSet", &job_sets),
            ("Job", &jobs),
            ("Pod", &pods),
            ("ConfigMap", &config_maps),
            ("Secret", &secrets),
            ("Service", &services),
        ];
        let mut all = Vec::new();
        for (kind, resource) in kinds {
            let items = self.api(resource).items().await?;
            all.extend(items.into_iter().map(|item| (kind, item)));
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = |object: &Value| text(&object["metadata"]["name"]);
        let label = |object: &Value, label| text(&object["metadata"]["labels"][label]);
        let uids: BTreeMap<_, _> = all
            .iter()
            .map(|(kind, object)| (object["metadata"]["uid"].to_string(), (*kind, name(object))))
            .collect();
        let mut found = BTreeMap::<_, Vec<Value>>::new();
        for (kind, object) in &all {
            let name = match *kind {
                "ConfigMap" if name(object) == "kube-root-ca.crt" => continue,
                // Its own name ends by chance.
                "Pod" => label(object, "batch.kubernetes.io/job-name"),
                _ => name(object),
            };
            let seen = seen_of(kind, object, &uids);
            found
                .entry(format!("{kind} {name}"))
                .or_default()
                .push(seen);
        }
        Ok(json!(found))
    }
}

/// What counts of an object, with its owners by name in place of UIDs.
fn seen_of(kind: &str, object: &Value, uids: &BTreeMap<String, (&str, String)>) -> Value {
    let metadata = &object["metadata"];
    let owners = metadata["ownerReferences"].as_array();
    let owner = |owner: &Value| {
        let found = uids.get(&owner["uid"].to_string());
        let found = found.map(|(kind, name)| format!("{kind} {name}"));
        json!({"is": found.unwrap_or_else(|| "gone".to_owned()), "controller": owner["controller"]})
    };
    let owners: Vec<Value> = owners.into_iter().flatten().map(owner).collect();
    let (spec, status) = (&object["spec"], &object["status"]);
    let content = match kind {
        "TrainJob" => {
            json!({"spec": spec, "conditions": conditions(object), "jobs": counts(object)})
        }
        "JobSet" => {
            json!({"spec": spec, "labels": metadata["labels"], "annotations": metadata["annotations"]})
        }
        "Job" => json!([spec["suspend"], spec["parallelism"], spec["completions"]]),
        "Pod" => json!([spec["tolerations"], status["phase"]]),
        _ => json!({
            "data": object["data"], "immutable": object["immutable"], "annotations": metadata["annotations"],
        }),
    };
    let deleting = metadata.get("deletionTimestamp").is_some();
    json!({"owners": owners, "content": content, "deleting": deleting})
}

/// Type, status and reason of each condition.
fn conditions(job: &Value) -> Vec<[String; 3]> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = job["status"]["conditions"].as_array();
    let conditions = conditions.into_iter().flatten();
    conditions
        .map(|c| [text(&c["type"]), text(&c["status"]), text(&c["reason"])])
        .collect()
}

pub fn is(job: &Value, kind: &str, status: &str) -> bool {
    conditions(job)
        .iter()
        .any(|c| c[0] == kind && c[1] == status)
}

/// The counts of each replicated job, by name.
fn counts(job: &Value) -> BTreeMap<String, &Value> {
    let jobs = job["status"]["jobsStatus"].as_array();
    let jobs = jobs.into_iter().flatten();
    jobs.map(|job| (job["name"].to_string(), job)).collect()
}

pub fn is_running(job: &Value) -> bool {
    counts(job).values().all(|job| job["ready"] == 1) && !counts(job).is_empty()
}

fn is_suspended(job: &Value) -> bool {
    let suspended = |job: &&Value| job["suspended"] == 1 && job["active"] == 0;
    let counts = counts(job);
    is(job, "Suspended", "True") && counts.values().all(suspended) && !counts.is_empty()
}

/// What is there on one side only, or is not the same on both.
fn differences(expected: &Value, found: &Value) -> String {
    let keys = |value: &Value| -> Vec<String> {
        let fields = value.as_object();
        fields
            .into_iter()
            .flatten()
            .map(|(key, _)| key.clone())
            .collect()
    };
    let mut all = [keys(expected), keys(found)].concat();
    all.sort();
    all.dedup();
    let mut text = String::new();
    for key in all {
        let (one, other) = (expected.get(&key), found.get(&key));
        if one != other {
            text += &format!("\n{key}: expected {one:#?}, found {other:#?}");
        }
    }
    text
}
