//! What the reference made of TrainJobs: the objects that they own.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use trainyard_api::{names, yaml};
use trainyard_controller::reconcile::Snapshot;
use trainyard_model::plan::Plan;

use super::keys::{Key, id, reference_of};

/// The kinds that are compared, each with its `apiVersion`.
pub(super) const KINDS: [(&str, &str); 4] = [
    (names::JOB_SET_API_VERSION, names::JOB_SET),
    ("v1", "ConfigMap"),
    ("scheduling.x-k8s.io/v1alpha1", "PodGroup"),
    ("scheduling.volcano.sh/v1beta1", "PodGroup"),
];

/// The namespace and the name of a TrainJob.
pub(super) type JobKey = (String, String);

/// The objects of all TrainJobs.
#[derive(Default)]
pub(super) struct OwnedObjects {
    by_job: BTreeMap<JobKey, Vec<Value>>,
    /// The kinds that were read. Objects of other kinds are not compared.
    read: BTreeSet<(String, String)>,
}

/// What the reference made of one TrainJob.
pub(super) struct LiveJob<'a> {
    /// Its objects, without the snapshot.
    pub(super) objects: Vec<&'a Value>,
    /// The runtime in its snapshot, or why it cannot be used. `None` if there is no snapshot.
    pub(super) runtime: Option<Result<Value, String>>,
    pub(super) maker: Maker,
}

/// Who made the objects of a TrainJob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Maker {
    Reference,
    /// The snapshot has a plan.
    Trainyard,
    /// The plan in the snapshot cannot be read, for this reason.
    Unknown(String),
}

impl OwnedObjects {
    /// Notes that objects of this kind were read, if there are any.
    pub(super) fn reads(&mut self, api_version: &str, kind: &str) {
        self.read.insert((api_version.to_owned(), kind.to_owned()));
    }

    /// Whether objects of this kind were read.
    pub(super) fn has_read(&self, api_version: &str, kind: &str) -> bool {
        let kind = (api_version.to_owned(), kind.to_owned());
        self.read.contains(&kind)
    }

    /// Keeps an object that a TrainJob controls, and returns any other one.
    pub(super) fn add(&mut self, object: Value) -> Option<Value> {
        let Some(key) = owner(&object) else {
            return Some(object);
        };
        self.by_job.entry(key).or_default().push(object);
        None
    }

    /// Returns the objects of a TrainJob that has a JobSet. Those of an earlier TrainJob of its name are ignored.
    pub(super) fn of(&self, job: &Value) -> Option<LiveJob<'_>> {
        let text = |field: &str| job.pointer(&format!("/metadata/{field}"))?.as_str();
        let key = (text("namespace")?.to_owned(), text("name")?.to_owned());
        let uid = text("uid");
        let objects = self.by_job.get(&key)?.iter();
        let is_its = |object: &&Value| uid.is_none() || owner_uid(object) == uid;
        let snapshot = Snapshot::name(&key.1);
        let is_snapshot =
            |object: &&Value| is_kind(object, "ConfigMap") && name(object) == Some(&snapshot);
        let (snapshots, objects): (Vec<_>, Vec<_>) = objects.filter(is_its).partition(is_snapshot);
        let has_job_set = objects.iter().any(|object| is_kind(object, names::JOB_SET));
        let data = |key: &str| {
            snapshots
                .first()?
                .pointer(&format!("/data/{key}"))?
                .as_str()
        };
        let maker = match data("plan").map(serde_json::from_str::<Plan>) {
            None => Maker::Reference,
            Some(Ok(_)) => Maker::Trainyard,
            Some(Err(problem)) => Maker::Unknown(format!(
                "ConfigMap {}/{snapshot}: data.plan: is not a plan: {problem}; remove it if the Kubeflow Trainer made the JobSet",
                key.0
            )),
        };
        let runtime = data("runtime").map(|text| kept_runtime(text, &reference_of(job, &key.0)));
        has_job_set.then_some(LiveJob {
            objects,
            runtime,
            maker,
        })
    }
}

/// Reads the runtime of a snapshot, which must be the one that the TrainJob references.
fn kept_runtime(text: &str, reference: &Key) -> Result<Value, String> {
    let document = yaml::read(text).into_iter().next();
    let document = document.ok_or("it is empty")?;
    let runtime = document.map_err(|error| error.kind.to_string())?.value;
    let text = |pointer: &str| runtime.pointer(pointer).and_then(Value::as_str);
    let namespace = reference.1.as_deref();
    let is_referenced = text("/kind") == Some(&reference.0)
        && text("/metadata/name") == Some(&reference.2)
        // Without a namespace, it is that of the TrainJob. A cluster-scoped runtime has none, and API servers ignore any that is written.
        && (namespace.is_none() || text("/metadata/namespace").is_none_or(|own| Some(own) == namespace));
    match is_referenced {
        true => Ok(runtime),
        false => Err(format!(
            "it is not {}, which the TrainJob references",
            id(reference)
        )),
    }
}

fn is_kind(object: &Value, kind: &str) -> bool {
    object.get("kind").is_some_and(|it| it == kind)
}

fn name(object: &Value) -> Option<&str> {
    object.pointer("/metadata/name")?.as_str()
}

/// Returns the TrainJob that controls an object. Other owners only keep it from being deleted.
fn controller(object: &Value) -> Option<&Value> {
    let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
    let is_job = |owner: &&Value| {
        let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
        let group = text("apiVersion").split('/').next();
        text("kind") == names::TRAIN_JOB && group == Some(names::TRAINER_GROUP)
    };
    let is_controller = |owner: &&Value| owner.get("controller") == Some(&Value::Bool(true));
    owners.iter().find(is_controller).filter(is_job)
}

fn owner(object: &Value) -> Option<JobKey> {
    let namespace = object.pointer("/metadata/namespace")?.as_str()?;
    let name = controller(object)?.get("name")?.as_str()?;
    Some((namespace.to_owned(), name.to_owned()))
}

fn owner_uid(object: &Value) -> Option<&str> {
    controller(object)?.get("uid")?.as_str()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    /// An owner that is not the controller can be set by anyone who may write the object.
    #[test]
    fn only_what_a_train_job_controls_is_its_own() {
        let owned = |controller: bool| {
            json!({
                "apiVersion": names::JOB_SET_API_VERSION, "kind": names::JOB_SET,
                "metadata": {"name": "bert", "namespace": "ml", "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": "bert", "uid": "other", "controller": !controller},
                    {
                        "apiVersion": names::TRAINER_API_VERSION, "kind": names::TRAIN_JOB, "name": "bert", "uid": "bert",
                        "controller": controller,
                    },
                ]},
            })
        };
        let job = json!({"metadata": {"name": "bert", "namespace": "ml", "uid": "bert"}});
        let mut objects = OwnedObjects::default();
        assert!(objects.add(owned(false)).is_some());
        assert!(objects.of(&job).is_none());
        assert!(objects.add(owned(true)).is_none());
        assert_eq!(objects.of(&job).unwrap().objects, [&owned(true)]);
    }
}
