//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

// Tests may panic.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod crd_differences_from_the_reference_are_listed;
mod definitions_are_generated;
mod document_errors_name_the_document;
mod kubernetes_types_are_expanded;
mod merge_keys_match_kubernetes;
mod oversized_objects_are_refused;
