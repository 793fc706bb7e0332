//! The annotations that only the controller writes. Rendering ignores those of a JobSet, so their names are in [`names`].

use trainyard_api::names;

/// On a JobSet that was unsuspended, and on the snapshot of a JobSet that has run. Such a snapshot is pinned.
pub(crate) const STARTED: &str = names::STARTED_ANNOTATION;

/// On a snapshot whose JobSet was deleted before it ended, until the JobSet is recreated.
pub(crate) const RECREATE: &str = "trainyard.dev/recreate";

/// On a JobSet that was recreated. Its snapshot may still have the annotation `recreate`.
pub(crate) const RECREATED: &str = names::RECREATED_ANNOTATION;

/// On a suspended JobSet that has never run: the digest of its inputs.
pub(crate) const INPUTS: &str = names::INPUTS_ANNOTATION;

/// On a suspended JobSet whose Jobs may still have entries that were removed from the placement of its pods.
pub(crate) const REMOVED_PLACEMENT: &str = names::REMOVED_PLACEMENT_ANNOTATION;

/// On a JobSet: the digests of the snapshot that it was applied with. An account that can edit it can run any pods, so it vouches for the
/// snapshot.
pub(crate) const SNAPSHOT: &str = names::SNAPSHOT_ANNOTATION;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rendering_ignores_the_same_annotations_of_a_job_set() {
        let marks = [STARTED, RECREATED, INPUTS, REMOVED_PLACEMENT, SNAPSHOT];
        assert!(marks.iter().all(|mark| names::is_mark(mark)));
        assert!(!names::is_mark(RECREATE));
    }
}
