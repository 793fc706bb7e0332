//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

mod arguments_are_checked;
mod claims_are_enforced;
mod common;
mod configuration_schemas_are_bounded;
mod conflicts_are_refused;
mod contract_is_documented;
mod cycles_are_refused;
mod gangs_are_counted_as_the_scheduler_does;
mod grants_are_enforced;
mod limits_end_a_call;
mod manifests_are_checked;
mod order_is_declared_and_checked;
mod overlap_agrees_with_brute_force;
mod plans_have_a_digest;
mod policies_of_the_design_have_one_order;
mod raw_members_have_no_method;
mod rollback_leaves_no_trace;
mod secrets_are_placed_and_never_read;
