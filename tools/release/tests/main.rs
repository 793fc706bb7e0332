//! The tests of this crate, as one program.

mod charts_are_packaged_as_by_helm;
mod files_of_a_release_are_described;
mod images_are_reproducible;
