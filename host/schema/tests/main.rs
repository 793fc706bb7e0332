//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

mod admitting_what_is_stored_changes_nothing;
mod cel_rules_hold;
mod common;
mod crds_differ_from_the_reference_as_listed;
mod definitions_are_generated;
mod errors_read_as_an_api_servers;
mod kubernetes_types_are_filled_in;
mod merge_keys_are_kubernetes_own;
mod objects_over_the_size_limits_are_refused;
mod unusable_schemas_do_not_compile;
mod values_are_pruned_defaulted_and_checked;
mod what_defaults_set_is_told_from_what_was_written;
