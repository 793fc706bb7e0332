//! Comparison of numbers by value: `1` and `1.0` are equal.

use std::cmp::Ordering;

use serde_json::Number;

/// Whether the number has no fraction.
pub(super) fn is_whole(number: &Number) -> bool {
    integer(number).is_some() || float(number).fract() == 0.0
}

/// Whether the number is a whole multiple of the factor.
pub(super) fn is_multiple(number: &Number, factor: u64) -> bool {
    match integer(number) {
        Some(integer) => integer.checked_rem(i128::from(factor)) == Some(0),
        #[allow(clippy::cast_precision_loss)]
        None => float(number) % factor as f64 == 0.0,
    }
}

pub(super) fn compare(one: &Number, other: &Number) -> Ordering {
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        // One has a fraction, or is larger than any integer that JSON holds exactly.
        (Some(one), None) => compare_mixed(one, float(other)),
        (None, Some(other)) => compare_mixed(other, float(one)).reverse(),
        (None, None) => float(one).total_cmp(&float(other)),
    }
}

/// Compares an integer with a float that is not one.
fn compare_mixed(integer: i128, float: f64) -> Ordering {
    if float.abs() >= LARGE {
        return 0.0_f64.total_cmp(&float);
    }
    #[allow(clippy::cast_possible_truncation)]
    let floor = float.floor() as i128;
    match integer.cmp(&floor) {
        Ordering::Equal => Ordering::Less,
        unequal => unequal,
    }
}

/// Larger floats are not converted to integers.
const LARGE: f64 = 1e38;

/// The number as an integer, including floats without a fraction.
fn integer(number: &Number) -> Option<i128> {
    let whole = number.as_i64().map(i128::from);
    let whole = whole.or_else(|| number.as_u64().map(i128::from));
    whole.or_else(|| {
        let float = float(number);
        #[allow(clippy::cast_possible_truncation)]
        (float.fract() == 0.0 && float.abs() < LARGE).then_some(float as i128)
    })
}

/// A text that is the same for two numbers if and only if they are equal.
pub(super) fn identity(number: &Number) -> String {
    match integer(number) {
        Some(integer) => integer.to_string(),
        None => number.to_string(),
    }
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn number(text: &str) -> Number {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn numbers_are_ordered_by_value() {
        let ordered = [
            "-1e300",
            "-9223372036854775808",
            "-1.5",
            "-1",
            "-0.5",
            "0",
            "0.5",
            "1",
            "9007199254740993",
            "18446744073709551615",
            "1e300",
        ];
        for (at, one) in ordered.iter().enumerate() {
            for (other_at, other) in ordered.iter().enumerate() {
                let found = compare(&number(one), &number(other));
                assert_eq!(found, at.cmp(&other_at), "{one} {other}");
            }
        }
        assert_eq!(compare(&number("1"), &number("1.0")), Ordering::Equal);
        assert_eq!(compare(&number("0"), &number("-0.0")), Ordering::Equal);
    }

    #[test]
    fn a_float_without_a_fraction_is_whole() {
        for (text, whole) in [("1.0", true), ("1e300", true), ("1.5", false), ("7", true)] {
            assert_eq!(is_whole(&number(text)), whole, "{text}");
        }
        assert!(is_multiple(&number("6.0"), 3) && !is_multiple(&number("6.5"), 3));
    }
}
