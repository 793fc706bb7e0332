//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

// Tests may panic.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod common;
mod each_mpi_implementation_gets_its_own_settings;
mod mistakes_are_reported_at_their_field;
mod pods_mount_the_ssh_keys;
mod slots_match_processes;
