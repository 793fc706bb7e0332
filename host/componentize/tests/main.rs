//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

mod builds_are_reproducible;
mod crates_are_built_into_components;
