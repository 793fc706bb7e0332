//! The checks of the fuzzers over the inputs in `corpus`, without a fuzzer.

// Tests may panic.
#![allow(clippy::panic, clippy::unwrap_used)]

mod checks_can_fail;
mod inputs_of_the_corpus_hold;
