//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

mod admission_is_idempotent;
mod cel_rules_are_evaluated;
mod common;
mod crd_differences_from_the_reference_are_listed;
mod defaulted_fields_are_distinguished_from_written_ones;
mod definitions_are_generated;
mod errors_match_the_api_server;
mod kubernetes_types_are_expanded;
mod merge_keys_match_kubernetes;
mod oversized_objects_are_refused;
mod unusable_schemas_do_not_compile;
mod values_are_pruned_defaulted_and_validated;
