//! Ownership by UID, which distinguishes objects of an earlier TrainJob of the same name.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use serde_json::{Value, json};
use trainyard_api::{TrainJob, names};
use trainyard_model::text::clean_to;

use super::error::ReconcileError;

/// The most characters of a name in an error, which is the longest possible name.
const LONGEST_NAME: usize = 253;
/// The most characters of a kind or UID in an error, which is the longest possible kind.
const LONGEST_KIND: usize = 63;

/// Returns the owner reference of the objects of the TrainJob with that name and UID.
pub(crate) fn reference(name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: names::TRAINER_API_VERSION.to_owned(),
        kind: names::TRAIN_JOB.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Sets the TrainJob with that name and UID as the owner of an object.
pub(crate) fn set(object: &mut Value, name: &str, uid: &str) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("ownerReferences".to_owned(), json!([reference(name, uid)]));
    }
}

/// Whether the TrainJob is the object's controller.
pub(crate) fn owns(job: &TrainJob, object: &ObjectMeta) -> bool {
    controller(object).is_some_and(|owner| {
        is_train_job(owner)
            && Some(&owner.uid) == job.metadata.uid.as_ref()
            && owner.name == job.metadata.name
    })
}

/// Whether the TrainJob of that UID is the object's controller.
pub(crate) fn is_of(uid: &str, object: &ObjectMeta) -> bool {
    controller(object).is_some_and(|owner| is_train_job(owner) && owner.uid == uid)
}

/// Returns the TrainJob that is the object's controller.
pub(crate) fn train_job(object: &ObjectMeta) -> Option<&OwnerReference> {
    controller(object).filter(|owner| is_train_job(owner))
}

/// Whether the object of that UID, of whatever kind, is the object's controller.
pub(crate) fn is_controlled_by(uid: &str, object: &ObjectMeta) -> bool {
    controller(object).is_some_and(|owner| owner.uid == uid)
}

/// Whether the owner is a TrainJob, of any version. A reference to another kind with a TrainJob's UID is forged, and the policy in
/// `deploy/` does not look at it.
fn is_train_job(owner: &OwnerReference) -> bool {
    let group = owner.api_version.split_once('/').map(|(group, _)| group);
    owner.kind == names::TRAIN_JOB && group == Some(names::TRAINER_GROUP)
}

/// Describes the owner of an object.
pub(crate) fn describe(object: &ObjectMeta) -> String {
    match controller(object) {
        // The API server does not bound their length.
        Some(owner) => {
            let [kind, uid] = [&owner.kind, &owner.uid].map(|text| clean_to(text, LONGEST_KIND));
            let name = clean_to(&owner.name, LONGEST_NAME);
            format!("owned by {kind} {name} ({uid})")
        }
        None => "owned by no controller".to_owned(),
    }
}

fn controller(object: &ObjectMeta) -> Option<&OwnerReference> {
    let mut owners = object.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true))
}

/// Returns the error for an object that the TrainJob does not own. An object of an earlier TrainJob of the same name will be
/// garbage-collected.
pub(crate) fn foreign(job: &str, kind: &str, name: &str, object: &ObjectMeta) -> ReconcileError {
    match controller(object) {
        Some(owner) if is_train_job(owner) && owner.name == job => ReconcileError::Stale {
            kind: kind.to_owned(),
            name: name.to_owned(),
        },
        _ => ReconcileError::Foreign {
            kind: kind.to_owned(),
            name: name.to_owned(),
            owner: describe(object),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_a_train_job_of_its_group_and_uid() {
        let owned = |api_version: &str, kind: &str, uid: &str| ObjectMeta {
            owner_references: Some(vec![OwnerReference {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                name: "job".to_owned(),
                uid: uid.to_owned(),
                controller: Some(true),
                block_owner_deletion: None,
            }]),
            ..ObjectMeta::default()
        };
        for (api_version, kind, uid, is_its) in [
            (names::TRAINER_API_VERSION, names::TRAIN_JOB, "uid", true),
            ("trainer.kubeflow.org/v2", names::TRAIN_JOB, "uid", true),
            (names::TRAINER_API_VERSION, names::TRAIN_JOB, "other", false),
            ("nosuch.dev/v1", names::TRAIN_JOB, "uid", false),
            ("v1", names::TRAIN_JOB, "uid", false),
            (names::TRAINER_API_VERSION, "Thing", "uid", false),
        ] {
            let owned = owned(api_version, kind, uid);
            assert_eq!(is_of("uid", &owned), is_its, "{api_version} {kind} {uid}");
            assert_eq!(is_controlled_by("uid", &owned), uid == "uid");
        }
    }

    #[test]
    fn the_description_of_an_owner_is_short() {
        let long = "x".repeat(1_000_000);
        let object = ObjectMeta {
            owner_references: Some(vec![OwnerReference {
                api_version: "nosuch.dev/v1".to_owned(),
                kind: long.clone(),
                name: long.clone(),
                uid: long,
                controller: Some(true),
                block_owner_deletion: None,
            }]),
            ..ObjectMeta::default()
        };
        let error = foreign("job", "JobSet", "job", &object).to_string();
        assert!(error.len() < 1_000, "{} bytes", error.len());
    }
}
