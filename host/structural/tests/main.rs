//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

// Tests may panic.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod admission_is_idempotent;
mod cel_rules_are_evaluated;
mod common;
mod defaulted_fields_are_distinguished_from_written_ones;
mod errors_match_the_api_server;
mod unusable_schemas_do_not_compile;
mod values_are_pruned_defaulted_and_validated;
