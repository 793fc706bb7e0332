//! What holds of every history of a cluster, whatever fails.
//!
//! A transition of the status is legal if
//!
//! - no condition vanishes, and `Complete` and `Failed` stay true and are never both true;
//! - `Complete` becomes true only after a JobSet of the TrainJob completed, and `Failed` only after one failed, or for a reason of the
//!   TrainJob's own;
//! - `Suspended` becomes true only if the TrainJob is to be suspended and its JobSet is suspended, and false only if it is not;
//! - the counts of Jobs stay, unless the JobSet was recreated.
//!
//! Also, a JobSet is created after its snapshot and the objects beside it; it is suspended after its snapshot is marked; its own mark of
//! its start stays; the keys of a Secret never change; no TrainJob has started JobSets, or created objects, other than when nothing fails.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::job_set::{is, is_suspended, list, owner, text};
use crate::stub::cluster::{Cluster, Id};

const STARTED: &str = "/metadata/annotations/trainyard.dev~1started";

/// Why a TrainJob fails whose JobSet did not.
const OWN_FAILURES: [&str; 3] = [
    "DeadlineExceeded",
    "JobSetGone",
    "TrainingRuntimeNotSupported",
];

/// What a history leads to, and how.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    /// How often each object was created.
    created: BTreeMap<String, usize>,
    /// The objects that existed when each JobSet was created.
    beside: Vec<BTreeSet<String>>,
    /// How many JobSets each TrainJob has started.
    started: BTreeMap<String, usize>,
}

/// Reads a history.
struct Reader {
    objects: BTreeMap<Id, Value>,
    summary: Summary,
    started: BTreeMap<String, BTreeSet<String>>,
    /// How many JobSets each TrainJob had.
    created: BTreeMap<String, usize>,
    /// The TrainJobs of which a JobSet has this condition, or had it.
    ended: BTreeSet<(String, &'static str)>,
    broken: Vec<String>,
}

/// Returns the summary of a cluster's history, or what is illegal in it.
pub(super) fn read(cluster: &Cluster) -> Result<Summary, String> {
    let mut reader = Reader {
        objects: BTreeMap::new(),
        summary: Summary::default(),
        started: BTreeMap::new(),
        created: BTreeMap::new(),
        ended: BTreeSet::new(),
        broken: Vec::new(),
    };
    for (id, event, object) in cluster.history() {
        reader.read(&id, event, &object);
        match event {
            "DELETED" => reader.objects.remove(&id),
            _ => reader.objects.insert(id, object),
        };
    }
    let started = reader.started.into_iter();
    reader.summary.started = started.map(|(job, all)| (job, all.len())).collect();
    match reader.broken.is_empty() {
        true => Ok(reader.summary),
        false => Err(reader.broken.join("; ")),
    }
}

impl Summary {
    /// Returns how another history differs from this one.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        if self.created != other.created {
            let (one, two) = (&self.created, &other.created);
            return Some(format!(
                "objects were created {two:?}, and undisturbed {one:?}"
            ));
        }
        if self.started != other.started {
            let (one, two) = (&self.started, &other.started);
            return Some(format!(
                "JobSets were started {two:?}, and undisturbed {one:?}"
            ));
        }
        let differs = self.beside != other.beside;
        differs.then(|| {
            let (one, two) = (&self.beside, &other.beside);
            format!("JobSets were created beside {two:?}, and undisturbed {one:?}")
        })
    }
}

impl Reader {
    fn read(&mut self, id: &Id, event: &str, object: &Value) {
        let (plural, _, name) = id;
        let uid = text(object, "/metadata/uid");
        let before = self.objects.get(id).cloned().unwrap_or_default();
        let is_same = text(&before, "/metadata/uid") == uid;
        if event == "ADDED" && !["jobs", "events"].contains(&plural.as_str()) {
            let created = self.summary.created.entry(format!("{plural} {name}"));
            *created.or_default() += 1;
        }
        match plural.as_str() {
            "trainjobs" if event == "MODIFIED" && is_same => self.status(&before, object),
            "jobsets" if event != "DELETED" => self.job_set(event, &before, object),
            "secrets" if event == "MODIFIED" && before["data"] != object["data"] => {
                self.broken
                    .push(format!("the keys of Secret {name} changed"));
            }
            _ => {}
        }
    }

    fn breaks(&mut self, breaks: bool, what: &str) {
        if breaks {
            self.broken.push(what.to_owned());
        }
    }

    fn status(&mut self, before: &Value, after: &Value) {
        let has = |job: &Value, kind: &Value| {
            list(job, "/status/conditions").any(|it| it["type"] == *kind)
        };
        let vanished = list(before, "/status/conditions").any(|it| !has(after, &it["type"]));
        self.breaks(vanished, "a condition vanished");
        for end in ["Complete", "Failed"] {
            self.breaks(
                is(before, end) && !is(after, end),
                "what ended has not ended",
            );
        }
        self.breaks(
            is(after, "Complete") && is(after, "Failed"),
            "it completed and failed",
        );
        let uid = text(after, "/metadata/uid");
        let begins = |end| !is(before, end) && is(after, end);
        let has_ended = |how| self.ended.contains(&(uid.to_owned(), how));
        let is_early = begins("Complete") && !has_ended("Completed");
        let is_own = list(after, "/status/conditions").any(|it| {
            it["type"] == "Failed" && OWN_FAILURES.iter().any(|own| it["reason"] == *own)
        });
        let is_unfounded = begins("Failed") && !is_own && !has_ended("Failed");
        self.breaks(is_early, "it completed, but its JobSet did not");
        self.breaks(is_unfounded, "it failed, but its JobSet did not");
        let mut objects = self.objects.iter();
        let its = objects.find(|((plural, ..), it)| plural == "jobsets" && owner(it) == uid);
        let its = its.map(|(_, it)| it.clone()).unwrap_or_default();
        let counts = |job: &Value| list(job, "/status/jobsStatus").count();
        // A recreated JobSet has none at first.
        let is_first = self.created.get(uid).is_none_or(|created| *created <= 1);
        let vanished = counts(before) > 0 && counts(after) == 0 && is_first;
        self.breaks(vanished, "the counts vanished");
        let is_wanted = after["spec"]["suspend"] == true;
        let runs = its["spec"]["suspend"] == false;
        match (is(before, "Suspended"), is(after, "Suspended")) {
            (false, true) => {
                self.breaks(!is_wanted, "Suspended is true, but it is to run");
                self.breaks(runs, "Suspended is true, but its JobSet runs");
            }
            (true, false) => {
                self.breaks(is_wanted, "Suspended is false, but it is to be suspended")
            }
            _ => {}
        }
    }

    fn job_set(&mut self, event: &str, before: &Value, after: &Value) {
        let owner = owner(after);
        for end in ["Completed", "Failed"] {
            if is(after, end) {
                self.ended.insert((owner.to_owned(), end));
            }
        }
        if event == "ADDED" {
            *self.created.entry(owner.to_owned()).or_default() += 1;
            let owned = self.objects.iter();
            let beside = owned.filter(|((plural, ..), it)| {
                plural != "jobs" && super::job_set::owner(it) == owner
            });
            let beside: BTreeSet<_> = beside
                .map(|((plural, _, name), _)| format!("{plural} {name}"))
                .collect();
            self.summary.beside.push(beside);
        } else {
            let lost = before.pointer(STARTED).is_some() && after.pointer(STARTED).is_none();
            self.breaks(lost, "the mark of a start was lost");
        }
        if !is_suspended(after) {
            let uid = text(after, "/metadata/uid").to_owned();
            self.started
                .entry(owner.to_owned())
                .or_default()
                .insert(uid);
        } else if event != "ADDED" && !is_suspended(before) {
            let name = format!("{}-runtime-snapshot", text(after, "/metadata/name"));
            let id = (
                "configmaps".to_owned(),
                text(after, "/metadata/namespace").to_owned(),
                name,
            );
            let is_marked = self
                .objects
                .get(&id)
                .and_then(|it| it.pointer(STARTED))
                .is_some();
            self.breaks(
                !is_marked,
                "it was suspended before its snapshot was marked",
            );
        }
    }
}

/// The fields that differ between runs.
const OF_ITS_RUN: [&str; 5] = [
    "resourceVersion",
    "creationTimestamp",
    "lastTransitionTime",
    "uid",
    "generation",
];

/// Returns all objects, without what differs between runs.
pub(super) fn objects(cluster: &Cluster) -> BTreeMap<String, String> {
    let history = cluster.history();
    let names: BTreeMap<_, _> = history
        .iter()
        .map(|((plural, _, name), _, object)| {
            (text(object, "/metadata/uid"), format!("{plural} {name}"))
        })
        .collect();
    let mut objects = BTreeMap::new();
    for plural in [
        "trainjobs",
        "jobsets",
        "jobs",
        "configmaps",
        "secrets",
        "podgroups",
        "resourceclaimtemplates",
    ] {
        for mut object in cluster.all(plural) {
            let id = format!("{plural} {}", text(&object, "/metadata/name"));
            if plural == "secrets" {
                let data = object["data"].as_object_mut().into_iter().flatten();
                data.for_each(|(_, value)| *value = value.as_str().map(str::len).into());
            }
            for reference in object["metadata"]["ownerReferences"]
                .as_array_mut()
                .into_iter()
                .flatten()
            {
                let name = names.get(text(reference, "/uid")).cloned();
                reference["owner"] = name.into();
            }
            if plural == "configmaps" {
                // It counts until the TrainJob ends, and may be outdated if pods end at once.
                let recreate = object.pointer_mut("/metadata/annotations/trainyard.dev~1recreate");
                recreate.map(Value::take);
            }
            if plural == "jobsets" {
                object["status"]["restarts"].take();
            }
            strip(&mut object);
            objects.insert(id, object.to_string());
        }
    }
    objects
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|key, _| !OF_ITS_RUN.contains(&key.as_str()));
            members.values_mut().for_each(strip);
            members.retain(|_, value| !value.is_null() && *value != json!({}));
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Returns where two texts differ, with what is around.
pub(super) fn text_difference(one: &str, two: &str) -> String {
    let same = one
        .bytes()
        .zip(two.bytes())
        .take_while(|(one, two)| one == two)
        .count();
    let part = |text: &str| {
        let bytes = &text.as_bytes()
            [same.saturating_sub(120).min(text.len())..(same + 240).min(text.len())];
        String::from_utf8_lossy(bytes).into_owned()
    };
    format!(
        "undisturbed\n  ...{}\nand now\n  ...{}",
        part(one),
        part(two)
    )
}

/// Returns what is illegal after a TrainJob with this status and its JobSet existed, and these patches followed.
fn illegal(status: &Value, patches: &[(&str, &str, Value)]) -> String {
    let cluster = Cluster::new();
    cluster.put(json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
        "metadata": {"name": "job", "namespace": "a", "uid": "1"}, "spec": {}, "status": status,
    }));
    let own = |kind: &str, version: &str, name: &str| {
        let owners = json!([{"uid": "1", "controller": true}]);
        json!({
            "apiVersion": version, "kind": kind,
            "metadata": {"name": name, "namespace": "a", "uid": name, "ownerReferences": owners},
        })
    };
    cluster.put(own("ConfigMap", "v1", "job-runtime-snapshot"));
    let mut keys = own("Secret", "v1", "keys");
    keys["data"] = json!({"key": "YQ=="});
    cluster.put(keys);
    let mut job_set = own("JobSet", "jobset.x-k8s.io/v1alpha2", "job");
    job_set["metadata"]["annotations"] = json!({"trainyard.dev/started": "a"});
    job_set["spec"] = json!({"suspend": false});
    cluster.put(job_set);
    assert!(read(&cluster).is_ok(), "before the patches");
    for (plural, name, patch) in patches {
        cluster.merge(plural, "a", name, patch);
    }
    read(&cluster).unwrap_err()
}

#[test]
fn each_illegal_transition_of_a_status_is_found() {
    let with = |types: &[&str]| {
        let conditions = types.iter().map(|it| json!({"type": it, "status": "True"}));
        json!({"conditions": conditions.collect::<Vec<_>>(), "jobsStatus": [{"name": "node"}]})
    };
    let becomes = |status: Value| ("trainjobs", "job", json!({"status": status}));
    let is_false = |of: &str| json!({"conditions": [{"type": of, "status": "False"}]});
    let to_be_suspended = ("trainjobs", "job", json!({"spec": {"suspend": true}}));
    for (before, patches, wanted) in [
        (
            with(&["Failed"]),
            vec![becomes(with(&[]))],
            "a condition vanished",
        ),
        (
            with(&["Complete"]),
            vec![becomes(is_false("Complete"))],
            "what ended has not ended",
        ),
        (
            with(&["Failed"]),
            vec![becomes(is_false("Failed"))],
            "what ended has not ended",
        ),
        (
            with(&[]),
            vec![becomes(with(&["Complete", "Failed"]))],
            "it completed and failed",
        ),
        (
            with(&[]),
            vec![becomes(with(&["Complete"]))],
            "it completed, but its JobSet did not",
        ),
        (
            with(&[]),
            vec![becomes(with(&["Failed"]))],
            "it failed, but its JobSet did not",
        ),
        (
            with(&[]),
            vec![becomes(json!({"jobsStatus": []}))],
            "the counts vanished",
        ),
        (
            with(&[]),
            vec![becomes(with(&["Suspended"]))],
            "Suspended is true, but it is to run",
        ),
        (
            with(&[]),
            vec![to_be_suspended.clone(), becomes(with(&["Suspended"]))],
            "Suspended is true, but its JobSet runs",
        ),
        (
            with(&["Suspended"]),
            vec![to_be_suspended.clone(), becomes(is_false("Suspended"))],
            "Suspended is false, but it is to be suspended",
        ),
    ] {
        let found = illegal(&before, &patches);
        assert!(found.contains(wanted), "{wanted}: {found}");
    }
}

#[test]
fn each_illegal_change_of_an_object_is_found() {
    let suspends = json!({"spec": {"suspend": true}});
    let forgets = json!({"metadata": {"annotations": {"trainyard.dev/started": null}}});
    for (plural, name, patch, wanted) in [
        (
            "secrets",
            "keys",
            json!({"data": {"key": "Yg=="}}),
            "the keys of Secret keys changed",
        ),
        ("jobsets", "job", forgets, "the mark of a start was lost"),
        (
            "jobsets",
            "job",
            suspends,
            "it was suspended before its snapshot was marked",
        ),
    ] {
        let found = illegal(&json!({}), &[(plural, name, patch)]);
        assert_eq!(found, wanted);
    }
}
