//! Checks that plugins together produced valid pods and objects. Each write may be within its plugin's claims and still conflict with others.

mod host_port;
mod pod;

use trainyard_model::{
    pipeline::{self, Clash},
    plan::Generation,
    record::{Change, Field, Record},
    session::{MissingObject, Session},
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

/// Returns the places that two plugins changed without a declared order.
pub(crate) fn write_conflicts(session: &Session, generation: &Generation) -> Vec<Problem> {
    let clashes = pipeline::clashing_writes(session, generation);
    clashes.into_iter().map(problem_of).collect()
}

/// Checks that each object is emitted by one plugin.
///
/// # Errors
/// Each pair of plugins that emitted the same object.
pub(crate) fn check_emitted_once(session: &Session) -> Result<(), Vec<Problem>> {
    let clashes = pipeline::clashing_objects(session);
    none_of(clashes.into_iter().map(problem_of))
}

fn problem_of(Clash { place, message }: Clash) -> Problem {
    Problem::Invariant { place, message }
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
