//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

mod crates_become_components;
mod same_sources_same_bytes;
