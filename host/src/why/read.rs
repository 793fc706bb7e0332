//! What is read of a TrainJob and of the objects around it.

use kube::api::ApiResource;
use serde_json::Value;
use trainyard_api::names::QUEUE_LABEL;
use trainyard_controller::reconcile::Snapshot;

use super::plugins;
use crate::live_objects::{
    CONFIG_MAP, EVENT, JOB_SET, LiveObjects, PLUGIN_REVISION, POD, Selection, TRAIN_JOB, text,
};

/// A TrainJob and the objects around it.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) train_job: Value,
    pub(super) job_set: Option<Value>,
    /// The pods of the JobSet, and whether there are more.
    pub(super) pods: (Vec<Value>, bool),
    /// The Events of the TrainJob and of its JobSet.
    pub(super) events: Vec<Value>,
    /// What Kueue keeps of the TrainJob; `None` if no queue is named.
    pub(super) workloads: Option<Vec<Value>>,
    /// The snapshot, if the JobSet notes its plugins and it can be read.
    pub(super) snapshot: Option<Value>,
    /// The PluginRevision that the JobSet was rendered with, if it can be read.
    pub(super) revision: Option<Value>,
    /// What could not be read, and why.
    pub(super) unread: Vec<String>,
}

impl Facts {
    /// Reads a TrainJob and the objects around it. Of those, each may be missing, because the user may not have permission to read it.
    ///
    /// # Errors
    /// The TrainJob does not exist, or cannot be read.
    pub(super) async fn read(objects: &LiveObjects, name: &str) -> Result<Self, String> {
        let namespace = &objects.namespace;
        let train_job = objects.get(TRAIN_JOB, name).await?.ok_or_else(|| {
            format!(
                "there is no TrainJob `{name}` in namespace `{namespace}`; use -n for another namespace"
            )
        })?;
        let mut facts = Self {
            train_job,
            ..Self::default()
        };
        let job_set = objects.get(JOB_SET, name).await;
        let uid = text(&facts.train_job, "/metadata/uid")
            .unwrap_or_default()
            .to_owned();
        let job_set = facts.or_unread(job_set).flatten();
        // Another JobSet of that name is the error that the annotation reports.
        facts.job_set = job_set.filter(|job_set| is_owned(job_set, &uid));
        if facts.job_set.is_some() {
            let labels = format!("jobset.sigs.k8s.io/jobset-name={name}");
            let selection = Selection {
                labels: Some(&labels),
                ..Selection::default()
            };
            let pods = objects.list(POD, selection).await;
            facts.pods = facts.or_unread(pods).unwrap_or_default();
        }
        if facts.job_set.as_ref().is_some_and(plugins::are_noted) {
            let of_cluster = LiveObjects {
                client: objects.client.clone(),
                namespace: String::new(),
            };
            let snapshot = objects.get(CONFIG_MAP, &Snapshot::name(name)).await;
            facts.snapshot = snapshot.ok().flatten();
            // It only adds to what the JobSet notes, and few users may read it.
            if let Some(name) = facts.job_set.as_ref().and_then(plugins::revision_of) {
                let revision = of_cluster.get(PLUGIN_REVISION, name).await;
                facts.revision = revision.ok().flatten();
            }
        }
        facts.events = facts.read_events(objects, name, &uid).await;
        let labels = facts.train_job.pointer("/metadata/labels");
        if labels.is_some_and(|labels| labels.get(QUEUE_LABEL).is_some()) {
            let workloads = workloads(objects, &uid).await;
            facts.workloads = facts.or_unread(workloads);
        }
        Ok(facts)
    }

    /// Returns the Events of the TrainJob and of its JobSet, which has the same name.
    async fn read_events(&mut self, objects: &LiveObjects, name: &str, uid: &str) -> Vec<Value> {
        let fields = format!("involvedObject.name={name}");
        let selection = Selection {
            fields: Some(&fields),
            ..Selection::default()
        };
        let events = objects.list(EVENT, selection).await;
        let (mut events, _) = self.or_unread(events).unwrap_or_default();
        let job_set = self.job_set.as_ref();
        let job_set = job_set.and_then(|job_set| text(job_set, "/metadata/uid"));
        events.retain(|event| {
            let about = text(event, "/involvedObject/uid");
            about.is_some() && (about == Some(uid) || about == job_set)
        });
        events
    }

    /// Returns what was read, or notes why it was not.
    fn or_unread<T>(&mut self, read: Result<T, String>) -> Option<T> {
        read.map_err(|why| self.unread.push(why)).ok()
    }
}

/// Returns the Workloads of a TrainJob. Versions of Kueue serve different versions of the kind.
async fn workloads(objects: &LiveObjects, uid: &str) -> Result<Vec<Value>, String> {
    let served = kube::discovery::group(&objects.client, "kueue.x-k8s.io").await;
    let served = served.map_err(|error| format!("Kueue cannot be asked: {error}"))?;
    let Some((resource, _)) = served.recommended_kind("Workload") else {
        return Ok(Vec::new());
    };
    let resource: ApiResource = resource;
    let labels = format!("kueue.x-k8s.io/job-uid={uid}");
    let selection = Selection {
        labels: Some(&labels),
        ..Selection::default()
    };
    let listed = objects.list_resource(&resource, selection).await;
    listed.map(|(workloads, _)| workloads)
}

/// Whether an object of that UID controls an object.
fn is_owned(object: &Value, uid: &str) -> bool {
    let mut owners = crate::live_objects::items(object, "/metadata/ownerReferences");
    owners.any(|owner| text(owner, "/uid") == Some(uid))
}
