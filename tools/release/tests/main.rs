//! The tests of this crate, as one program.

// Tests may panic.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod charts_are_packaged_as_by_helm;
mod common;
mod files_of_a_release_are_described;
mod images_are_listed;
mod images_are_reproducible;
mod tested_versions_are_documented;
mod version_is_the_same_everywhere;
