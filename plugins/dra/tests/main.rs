//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

// Tests may panic.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub
)]

mod claims_reach_their_containers;
mod common;
mod devices_are_counted;
mod mistakes_are_reported_at_their_field;
