//! Looks for an input for which `components::check` panics.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    trainyard_fuzz::components::check(bytes);
});
