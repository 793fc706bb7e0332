//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

mod counterexamples_are_kept;
mod errors_name_file_document_object_and_field;
mod inputs_read_files_folders_and_standard_input;
mod merge_inputs;
mod merges_are_stable_and_fixes_keep_order;
mod old_dialects_are_read;
mod old_forms_are_bounded;
mod paths_are_read_as_people_type_them;
mod runtime_patches_keep_what_was_written;
mod strategic_merge_agrees_with_kubernetes;
mod strategic_merge_agrees_with_the_reference;
mod typed_headers_lose_nothing;
mod yaml_errors_have_a_place_and_bounds_hold;
mod yaml_reads_as_kubernetes_does;
mod yaml_round_trips;
