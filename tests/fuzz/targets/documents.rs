//! Looks for an input for which `documents::check` panics.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    trainyard_fuzz::documents::check(bytes);
});
