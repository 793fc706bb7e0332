//! Looks for an input for which `wire::check` panics.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    trainyard_fuzz::wire::check(bytes);
});
