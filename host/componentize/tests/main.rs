//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

// Tests may panic.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod builds_are_reproducible;
mod crates_are_built_into_components;
