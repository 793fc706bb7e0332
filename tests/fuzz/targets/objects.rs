//! Looks for an input for which `objects::check` panics.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    trainyard_fuzz::objects::check(bytes);
});
