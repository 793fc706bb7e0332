//! Checks that plugins together produced valid pods and objects. Each write may be within its plugin's claims and still conflict with others.

mod host_port;
mod pod;

use trainyard_model::{
    plan::Generation,
    record::{Change, Field, Record},
    session::{DuplicateObject, MissingObject, Session, WriteConflict},
};

use self::pod::{OwnerName, PatchedMounts, PodCheck, RemovedVolumes};
use crate::{journal::Journal, problem::Problem};

/// Checks the pods of the final record. Conflicts within the runtime are left to the API server.
pub(crate) fn check<'c>(
    record: &Record,
    changes: impl Iterator<Item = &'c Change>,
    journal: &Journal,
    who: OwnerName<'_>,
) -> Vec<Problem> {
    let removed: RemovedVolumes = changes
        .filter(|change| change.entry.field == Field::Volumes && change.new.is_none())
        .map(|change| ((change.entry.scope, change.entry.key.clone()), change.owner))
        .collect();
    let patched: PatchedMounts<'_> = journal
        .by_patches()
        .filter(|(change, _)| change.entry.field == Field::Mounts)
        .map(|(change, field)| (&change.entry, field))
        .collect();
    let mut problems = Vec::new();
    for (set, position) in record.pod_sets.iter().zip(0u32..) {
        let mut check = PodCheck {
            record,
            removed: &removed,
            patched: &patched,
            place: format!("pod-sets[{}]", set.name),
            who,
            problems: &mut problems,
        };
        check.pod(position);
    }
    problems
}

/// Returns the places that two plugins changed without a declared order, because the result would depend on the order of the plan.
pub(crate) fn write_conflicts(session: &Session, generation: &Generation) -> Vec<Problem> {
    let problem = |conflict: WriteConflict| {
        let WriteConflict {
            first,
            second,
            place,
            more,
        } = conflict;
        let more = match more {
            0 => String::new(),
            1 => ", and one more place".to_owned(),
            more => format!(", and {more} more places"),
        };
        Problem::Invariant {
            place: place.to_string(),
            message: format!(
                "the plugins {first} and {second} both change it{more}, but have no declared order; {}",
                generation
                    .ways_out(&first.name, &second.name)
                    .of_author_or_operator()
            ),
        }
    };
    session
        .find_write_conflicts(|a, b| generation.is_declared(&a.name, &b.name))
        .into_iter()
        .map(problem)
        .collect()
}

/// Checks that each object is emitted by one plugin.
///
/// # Errors
/// Each pair of plugins that emitted the same object.
pub(crate) fn check_emitted_once(session: &Session) -> Result<(), Vec<Problem>> {
    let problem = |twice: DuplicateObject| Problem::Invariant {
        place: format!("{} {}", twice.kind, twice.name),
        message: format!(
            "the plugins {} and {} both emit it; use another suffix in one of them, or exclude one",
            twice.first, twice.second
        ),
    };
    none_of(session.find_duplicate_objects().into_iter().map(problem))
}

/// Checks that plugins emitted the ConfigMaps and Secrets that their own volumes and env vars reference.
///
/// # Errors
/// Each volume and env var whose object its plugin did not emit.
pub(crate) fn check_own_data(session: &Session) -> Result<(), Vec<Problem>> {
    let problem = |missing: MissingObject| Problem::Invariant {
        place: missing.place.to_string(),
        message: missing.to_string(),
    };
    none_of(session.find_missing_objects().into_iter().map(problem))
}

/// Returns an error with all problems if there are any.
fn none_of(problems: impl Iterator<Item = Problem>) -> Result<(), Vec<Problem>> {
    let problems: Vec<_> = problems.collect();
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}
