//! The tests of this crate, as one program.

mod generated_files_match_wit;
