//! The tests of this crate, as one program.

// Tests may panic.
#![allow(clippy::panic, clippy::unwrap_used)]

mod generated_files_match_wit;
