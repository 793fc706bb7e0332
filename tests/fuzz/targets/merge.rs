//! Looks for an input for which `merge::check` panics.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    trainyard_fuzz::merge::check(bytes);
});
