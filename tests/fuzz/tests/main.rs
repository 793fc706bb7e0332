//! The checks of the fuzzers over the inputs in `corpus`, without a fuzzer.

mod checks_can_fail;
mod inputs_of_the_corpus_hold;
