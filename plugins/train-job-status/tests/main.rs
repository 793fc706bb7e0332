//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

// Tests may panic.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

mod pods_of_the_trainer_can_report;
