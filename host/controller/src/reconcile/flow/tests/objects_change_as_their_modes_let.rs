//! An object beside a JobSet changes only when its mode lets it, and is created in every mode.

use trainyard_model::object::ApplyMode;

use super::object;
use crate::reconcile::{
    facts::ObjectState,
    flow::{
        maintain::{Need, need},
        write::JobSetStage,
    },
    last_reconcile::AppliedObject,
    object_version::ObjectVersion,
};

#[test]
fn each_mode_changes_when_it_says() {
    let stages = [
        JobSetStage::Fresh,
        JobSetStage::Suspended,
        JobSetStage::Running,
    ];
    for (mode, lets) in [
        (ApplyMode::WithJobSet, [true, false, false]),
        (ApplyMode::Once, [false, false, false]),
        (ApplyMode::WhileSuspended, [true, true, false]),
        (ApplyMode::Live, [true, true, true]),
    ] {
        assert_eq!(stages.map(|stage| stage.lets_change(mode)), lets, "{mode}");
    }
}

fn unknown(mode: ApplyMode) -> AppliedObject {
    AppliedObject {
        object: object("b", mode),
        applied: None,
    }
}

#[test]
fn what_is_missing_is_made_in_every_mode() {
    for mode in ApplyMode::ALL {
        assert_eq!(
            need(&unknown(mode), &ObjectState::Missing, false),
            Need::Create
        );
    }
}

#[test]
fn of_what_is_there_only_live_objects_follow() {
    let version = || ObjectVersion {
        uid: Some("u".into()),
        version: Some("7".into()),
    };
    for mode in ApplyMode::ALL {
        let follows = match mode {
            ApplyMode::Live => Need::Follow(version()),
            _ => Need::Nothing,
        };
        for job_changed in [true, false] {
            let needed = need(&unknown(mode), &ObjectState::Ours(version()), job_changed);
            assert_eq!(needed, follows, "{mode}");
        }
    }
}
