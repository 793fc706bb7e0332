//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

// Tests may panic.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

mod elastic_groups_follow_the_runtime;
mod environment_follows_the_job;
mod environment_is_injected_where_the_runtime_says;
mod nodes_that_cannot_train_are_warned_of;
mod torchtune_gets_its_recipe;
