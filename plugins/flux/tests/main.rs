//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

mod common;
mod instances_follow_the_job;
mod mistakes_are_told_where_they_are;
mod pods_bring_flux;
mod runs_that_fail_end_the_job;
mod scripts_join_the_instance;
