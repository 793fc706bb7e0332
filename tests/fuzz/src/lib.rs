//! What holds for any input of the readers, the sandbox and the contract's methods.
//!
//! Each module has a function `check`, which panics if its guarantee does not hold for an input. `targets` has a fuzzer for each of them,
//! which looks for such an input (`make fuzz`). `tests` runs them over `corpus`, the inputs that were found to differ, without a fuzzer.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

pub mod bundles;
pub mod calls;
#[path = "../../../host/structural/tests/common/mod.rs"]
mod cases;
pub mod components;
pub mod documents;
mod generator;
pub mod merge;
pub mod objects;
mod reference;
pub mod schemas;
pub mod wire;
pub mod yaml;

/// A check of one input. It returns whether the input was accepted by what reads it first, so that a test can tell that some are.
pub type Check = fn(&[u8]) -> bool;

/// The checks, by the names of their fuzzers.
pub const CHECKS: &[(&str, Check)] = &[
    ("bundles", bundles::check),
    ("calls", calls::check),
    ("components", components::check),
    ("documents", documents::check),
    ("merge", merge::check),
    ("objects", objects::check),
    ("schemas", schemas::check),
    ("wire", wire::check),
    ("yaml", yaml::check),
];

/// The longest text of an error, in characters.
const LONGEST_ERROR: usize = 4000;

/// Checks the text of an error about untrusted bytes.
fn check_text(text: &str) {
    let is_obeyed = |c: char| c != '\n' && (c.is_control() || trainyard_text::is_hidden(c));
    assert!(!text.chars().any(is_obeyed), "{text:?}");
    assert!(text.chars().count() < LONGEST_ERROR, "{text}");
}
