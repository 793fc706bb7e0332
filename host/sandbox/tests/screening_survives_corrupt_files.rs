//! Screening a corrupt component ends with a result, and never crashes the host.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

use trainyard_sandbox::{LoadLimits, screen::screen_here};

use crate::common::good;

/// A sequence of numbers that is the same on every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

#[test]
fn corrupt_bytes_never_crash_screening() {
    let whole = good();
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let limits = LoadLimits::default();
    let mut refused = 0;
    for _ in 0..6000 {
        let mut bytes = whole.clone();
        for _ in 0..=numbers.next(3) {
            let at = numbers.next(bytes.len());
            bytes[at] = numbers.next(256) as u8;
        }
        refused += u32::from(screen_here(bytes, &limits).is_err());
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn truncated_files_are_refused() {
    let whole = good();
    let limits = LoadLimits::default();
    for length in 0..whole.len() {
        assert!(screen_here(whole[..length].to_vec(), &limits).is_err());
    }
}
