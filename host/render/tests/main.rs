//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

// Tests may panic.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub
)]

mod additions_have_a_defined_order;
mod common;
mod emitted_objects_have_valid_metadata;
mod errors_for_missing_runtimes_stay_small;
mod events_name_the_runtime_of_a_field;
mod every_field_of_a_job_set_is_explained;
mod every_legal_order_gives_the_same_bytes;
mod gang_requests_match_pod_requests;
mod interacting_plugins_have_one_outcome;
mod job_sets_are_refused_as_by_jobset;
mod key_material_is_a_placeholder_until_applied;
mod lookups_come_before_refusals;
mod marks_of_the_controller_are_ignored;
mod no_plugin_overwrites_another;
mod overrides_reach_their_containers;
mod patched_fields_name_their_manager;
mod plugins_are_disabled_only_where_the_operator_allows_it;
mod pod_sets_show_when_they_run;
mod pod_spec_edits_are_exact;
mod refused_fields_are_located_in_bounded_numbers;
mod removed_and_added_fields_are_explained;
mod rendering_stops_at_its_deadline;
mod reports_name_the_object_that_set_the_field;
mod skipped_plugins_fail_only_train_jobs_that_need_them;
mod train_jobs_set_only_listed_parameters;
