//! Looks for an input for which `bundles::check` panics.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    trainyard_fuzz::bundles::check(bytes);
});
