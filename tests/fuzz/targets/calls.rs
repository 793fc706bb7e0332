//! Looks for an input for which `calls::check` panics.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    trainyard_fuzz::calls::check(bytes);
});
