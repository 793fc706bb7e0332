//! The checks of the fuzzers over the inputs in `corpus`, without a fuzzer.

mod inputs_of_the_corpus_hold;
