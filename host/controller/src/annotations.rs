//! The annotations that only the controller writes.

/// On a JobSet that was unsuspended, and on the snapshot of a JobSet that has run. Such a snapshot is pinned.
pub(crate) const STARTED: &str = "trainyard.dev/started";

/// On a snapshot whose JobSet was deleted before it ended, until the JobSet is recreated.
pub(crate) const RECREATE: &str = "trainyard.dev/recreate";

/// On a JobSet that was recreated. Its snapshot may still have the annotation `recreate`.
pub(crate) const RECREATED: &str = "trainyard.dev/recreated";

/// On a suspended JobSet that has never run: the digest of its inputs.
pub(crate) const INPUTS: &str = "trainyard.dev/inputs";

/// On a suspended JobSet whose Jobs may still have entries that were removed from the placement of its pods.
pub(crate) const REMOVED_PLACEMENT: &str = "trainyard.dev/taken-placement";

/// On a JobSet: the digests of the snapshot that it was applied with. An account that can edit it can run any pods, so it vouches for the
/// snapshot.
pub(crate) const SNAPSHOT: &str = "trainyard.dev/snapshot";

#[cfg(test)]
mod tests {
    use trainyard_api::names::MARKS;

    use super::*;

    #[test]
    fn rendering_ignores_the_same_annotations_of_a_job_set() {
        let marks = [STARTED, RECREATED, INPUTS, REMOVED_PLACEMENT, SNAPSHOT];
        assert_eq!(MARKS, marks);
    }
}
