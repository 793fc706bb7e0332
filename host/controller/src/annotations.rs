//! The annotations that only the controller writes.

/// Of a JobSet that was unsuspended, and of a snapshot whose JobSet has run: from then on the snapshot is pinned whole.
pub(crate) const STARTED: &str = "trainyard.dev/started";

/// Of a snapshot whose JobSet was seen to be deleted before it ended, until there is another.
pub(crate) const RECREATE: &str = "trainyard.dev/recreate";

/// Of a JobSet in the place of one that was deleted: its snapshot may still say that there is none.
pub(crate) const RECREATED: &str = "trainyard.dev/recreated";

/// Of a suspended JobSet that has never run: the digest of what it was rendered from.
pub(crate) const INPUTS: &str = "trainyard.dev/inputs";

/// Of a suspended JobSet whose Jobs may still have entries that were removed from the placement of its pods.
pub(crate) const REMOVED_PLACEMENT: &str = "trainyard.dev/taken-placement";
