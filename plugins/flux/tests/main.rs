//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

// Tests may panic.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub
)]

mod common;
mod failed_runs_fail_the_job;
mod flux_configuration_follows_the_train_job;
mod mistakes_are_reported_at_their_field;
mod pods_install_flux;
mod scripts_start_the_flux_instance;
