//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

// Tests may panic.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::type_complexity,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub
)]

mod arguments_are_checked;
mod claims_are_enforced;
mod claims_of_objects_are_compared_by_their_parts;
mod common;
mod configuration_schemas_are_bounded;
mod conflicts_are_refused;
mod contract_is_documented;
mod cycles_are_refused;
mod designed_policies_have_one_order;
mod devices_and_processes_are_counted;
mod errors_say_what_to_do;
mod gangs_are_counted_as_by_the_scheduler;
mod grants_are_enforced;
mod limits_end_a_call;
mod manifests_are_checked;
mod methods_answer_what_is_there;
mod order_is_declared_and_checked;
mod overlap_agrees_with_brute_force;
mod plans_have_a_digest;
mod raw_access_is_limited_to_fields_without_a_method;
mod rollback_leaves_no_trace;
mod secrets_are_referenced_and_never_read;
mod used_claims_are_recorded;
mod values_of_templates_round_trip;
mod what_a_call_depends_on_is_recorded;
