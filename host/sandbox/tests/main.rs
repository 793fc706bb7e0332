//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

// Tests may panic.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub
)]

mod bad_files_are_refused;
mod built_in_plugins_load_when_first_called;
mod common;
mod compilation_is_bounded;
mod compiled_plugins_need_no_compiler;
mod errors_say_what_to_do;
mod every_method_links;
mod hostile_calls_are_contained;
mod instantiation_is_contained;
mod only_the_contract_can_be_imported;
mod tampered_cache_entries_are_recompiled;
