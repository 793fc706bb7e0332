//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

mod environment_follows_the_job;
mod environment_is_injected_where_the_runtime_says;
mod torchtune_gets_its_recipe;
