//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

// Tests may panic.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub
)]

mod conversion_of_old_forms_is_bounded;
mod counterexamples_are_kept;
mod errors_name_file_document_object_and_field;
mod field_paths_are_parsed_as_users_type_them;
mod inputs_read_files_folders_and_standard_input;
mod merge_inputs;
mod merges_are_stable_and_fixes_keep_order;
mod old_dialects_are_read;
mod overrides_for_plugins_are_read_strictly;
mod runtime_patches_are_kept_as_written;
mod strategic_merge_agrees_with_kubernetes;
mod strategic_merge_agrees_with_the_reference;
mod typed_headers_lose_nothing;
mod yaml_errors_are_located_and_bounded;
mod yaml_is_parsed_as_in_kubernetes;
mod yaml_round_trips;
