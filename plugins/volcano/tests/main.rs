//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

// Tests may panic.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

mod common;
mod mistakes_are_reported_at_their_field;
mod pods_are_scheduled_together;
