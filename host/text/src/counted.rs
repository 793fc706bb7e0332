//! Numbers of things.

use std::fmt::Display;

/// Returns a number with a noun, such as `1 TrainJob` and `2 TrainJobs`.
#[must_use]
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let s = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{s}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_thing_is_singular() {
        for (count, text) in [
            (0_u32, "0 TrainJobs"),
            (1, "1 TrainJob"),
            (11, "11 TrainJobs"),
        ] {
            assert_eq!(counted(count, "TrainJob"), text);
        }
    }
}
