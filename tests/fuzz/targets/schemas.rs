//! Looks for an input for which `schemas::check` panics.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    trainyard_fuzz::schemas::check(bytes);
});
