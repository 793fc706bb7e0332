//! Looks for an input for which `yaml::check` panics.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    trainyard_fuzz::yaml::check(bytes);
});
