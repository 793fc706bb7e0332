//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

// Tests may panic.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod crds_are_generated_from_the_types;
mod errors_have_lines_and_suggestions;
mod files_are_read_strictly;
mod plugin_revisions_are_checked_by_their_hash;
mod policy_plugins_are_checked_with_field_paths;
