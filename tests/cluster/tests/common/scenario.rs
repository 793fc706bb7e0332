//! TrainJobs in a namespace, and their final objects.

use std::{
    collections::BTreeMap,
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use trainyard_cluster::{Cluster, Fate, Trainyard};

use super::{Case, Creations, Namespace, conditions, counts};

/// How long objects must be unchanged to count as settled, which is far longer than the batching of a JobSet's changes.
const SETTLED: Duration = Duration::from_secs(3);
/// The timeout of each wait.
const WITHIN: Duration = Duration::from_secs(180);

/// A fresh namespace, with at most one TrainJob of each case.
pub(crate) struct Scenario<'a> {
    namespace: Namespace<'a>,
    pub(crate) creations: Creations,
    pub(crate) deadline: Duration,
    completes: Arc<AtomicBool>,
}

impl<'a> Deref for Scenario<'a> {
    type Target = Namespace<'a>;

    fn deref(&self) -> &Self::Target {
        &self.namespace
    }
}

impl<'a> Scenario<'a> {
    /// Creates a scenario with this deadline for [`Case::Overdue`].
    pub(crate) async fn new(cluster: &'a Cluster, deadline: Duration) -> Result<Self> {
        let namespace = Namespace::new(cluster).await?;
        let scenario = Self {
            creations: Creations::start(cluster.plane(), &namespace.name).await?,
            completes: Arc::default(),
            namespace,
            deadline,
        };
        scenario.decide();
        Ok(scenario)
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
        self.decide_pods(decision);
    }

    pub(super) fn let_complete(&self) {
        self.completes.store(true, Ordering::Relaxed);
        self.decide();
    }

    pub(crate) async fn until(
        &self,
        case: Case,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Result<()> {
        let namespace = &self.namespace;
        namespace.until(case.name(), what, holds).await.map(drop)
    }

    /// Waits until these cases have reached their final state and nothing changes any longer. Returns all objects.
    pub(crate) async fn settled(&self, cases: &[Case]) -> Result<Value> {
        for case in cases {
            let holds = |job: &Value| case.is_over(job);
            self.until(*case, "it is over", holds).await?;
        }
        self.unchanged_for(SETTLED).await
    }

    /// Waits until nothing has changed for this long. Returns all objects.
    pub(crate) async fn unchanged_for(&self, pause: Duration) -> Result<Value> {
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

    /// Returns whether exactly these objects exist.
    pub(crate) async fn is(&self, expected: &Value) -> Result<bool> {
        Ok(self.objects().await? == *expected)
    }

    /// Waits until exactly these objects exist.
    pub(crate) async fn until_it_is(&self, expected: &Value) -> Result<()> {
        let deadline = Instant::now() + WITHIN;
        loop {
            let found = self.objects().await?;
            if found == *expected {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!(
                    "the objects are not as expected: {}",
                    differences(expected, &found)
                );
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until the controller is idle, and checks that exactly these objects still exist and that none of them was created more than
    /// once. This detects late changes.
    pub(crate) async fn stays(&self, expected: &Value, controller: &Trainyard) -> Result<()> {
        controller.until_idle().await?;
        self.has_stayed(expected).await
    }

    /// Checks that exactly these objects exist, and that none of them was created more than once.
    pub(crate) async fn has_stayed(&self, expected: &Value) -> Result<()> {
        let found = self.objects().await?;
        ensure!(
            found == *expected,
            "the objects have changed: {}",
            differences(expected, &found)
        );
        self.creations.assert_created_once().await
    }

    /// Returns all objects that a TrainJob leads to, without the parts that differ between runs.
    pub(crate) async fn objects(&self) -> Result<Value> {
        let all = self.everything().await?;
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
                // The name of a pod has a random suffix.
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

/// Returns the compared part of an object, with the names of its owners instead of UIDs.
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

/// Describes the objects that differ or that only one side has.
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
        let (one, other) = (&expected[&key], &found[&key]);
        if one != other {
            // One line each, because what reports a failure may keep only its last lines.
            text += &format!("\n{key}: expected {one}, found {other}");
        }
    }
    text
}
