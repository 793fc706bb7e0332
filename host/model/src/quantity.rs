//! Kubernetes quantities (`100m`, `1.5`, `800Gi`, `1e3`). They are exact, because `f64` rounds large amounts of memory.
//!
//! The grammar is that of `k8s.io/apimachinery/pkg/api/resource`. The crates that implement it depend on
//! k8s-openapi, which this crate and the tests of every plugin would then have to build.

use std::{cmp::Ordering, fmt};

use serde_json::Value;

/// Billionths in a unit.
const NANOS: i128 = 1_000_000_000;

/// The largest amount that the API server reads with a binary suffix, and that sums are written up to.
const MOST: i128 = i64::MAX as i128 * NANOS;

/// An exact amount, in billionths of a unit. Kubernetes rounds finer amounts away from zero.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    form: Form,
}

/// The suffixes of an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Powers of 1000: `m`, `k`, `G`.
    Decimal,
    /// Powers of 1024: `Ki`, `Gi`.
    Binary,
}

impl Quantity {
    /// Zero.
    pub const ZERO: Self = Self {
        nanos: 0,
        form: Form::Decimal,
    };

    /// Reads a quantity, which can be a number. `None` if the value is not a quantity.
    #[must_use]
    pub fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text),
            Value::Number(number) => Self::parse(&number.to_string()),
            _ => None,
        }
    }

    /// Parses a quantity. `None` if the text is not a quantity, or has more digits than fit into 128 bits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let number_end = text
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-')))
            .unwrap_or(text.len());
        let (number, suffix) = text.split_at_checked(number_end)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let unsigned = whole.strip_prefix(['+', '-']).unwrap_or(whole);
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if !digits(unsigned) || !digits(fraction) || (unsigned.is_empty() && fraction.is_empty()) {
            return None;
        }
        // Trailing zeros do not change the amount, but could exceed 128 bits.
        let fraction = fraction.trim_end_matches('0');
        let mut all = unsigned.bytes().chain(fraction.bytes());
        let mantissa = all.try_fold(0i128, |number, digit| {
            number.checked_mul(10)?.checked_add((digit - b'0').into())
        })?;
        let (tens, twos) = scale(suffix)?;
        let tens = tens.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        let nanos = in_nanos(mantissa, tens, twos);
        // Like the API server, which does not limit decimal amounts when it reads them.
        let (nanos, form) = match twos {
            0 => (nanos, Form::Decimal),
            _ => (nanos.min(MOST), Form::Binary),
        };
        Some(Self {
            nanos: if whole.starts_with('-') {
                -nanos
            } else {
                nanos
            },
            form,
        })
    }

    /// The amount in whole units, rounded up. `None` if that is out of range.
    #[must_use]
    pub fn ceil(self) -> Option<i64> {
        i64::try_from(div_ceil(self.nanos, NANOS)).ok()
    }

    /// The amount in thousandths, rounded up. `None` if that is out of range.
    #[must_use]
    pub fn milli(self) -> Option<i64> {
        i64::try_from(div_ceil(self.nanos, NANOS / 1000)).ok()
    }

    /// Compares two amounts, independent of their spelling.
    #[must_use]
    pub fn compare(self, other: Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }

    /// The larger of the two.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        if other.compare(self).is_gt() {
            other
        } else {
            self
        }
    }

    /// The sum, with the suffixes of the first amount unless that is zero. Saturates at the bounds.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_add(other.nanos),
            form: if self.nanos == 0 {
                other.form
            } else {
                self.form
            },
        }
    }

    /// The product. Saturates at the bounds.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        Self {
            nanos: self.nanos.saturating_mul(times.into()),
            ..self
        }
    }
}

/// The canonical form of the API server: exact, without a fraction, with the largest suffix that allows it. Amounts with binary suffixes
/// are written with decimal ones if they are below 1024, or not whole.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.nanos.clamp(-MOST, MOST);
        let is_binary =
            self.form == Form::Binary && nanos.abs() >= 1024 * NANOS && nanos % NANOS == 0;
        let (mut amount, step, suffixes): (_, _, &[_]) = if is_binary {
            let suffixes = &["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
            (nanos / NANOS, 1024, suffixes)
        } else {
            let suffixes = &["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
            (nanos, 1000, suffixes)
        };
        if amount == 0 {
            return f.write_str("0");
        }
        let mut last = "";
        for suffix in suffixes {
            last = suffix;
            if amount % step != 0 {
                break;
            }
            amount /= step;
        }
        write!(f, "{amount}{last}")
    }
}

/// `mantissa`, which is not negative, times 10^`tens` times 2^`twos`, in billionths, rounded up. Saturates at the bound.
fn in_nanos(mantissa: i128, tens: i32, twos: u32) -> i128 {
    let power = 1i128.checked_shl(twos).unwrap_or(i128::MAX);
    let scaled = mantissa.saturating_mul(power);
    let tens = tens.saturating_add(9);
    match 10i128.checked_pow(tens.unsigned_abs()) {
        Some(power) if tens >= 0 => scaled.saturating_mul(power),
        Some(power) => div_ceil(scaled, power),
        None if tens >= 0 => scaled.saturating_mul(i128::MAX),
        None => i128::from(scaled > 0),
    }
}

/// Rounds up, including negative numbers.
const fn div_ceil(amount: i128, by: i128) -> i128 {
    amount.div_euclid(by) + (amount.rem_euclid(by) != 0) as i128
}

/// The powers of ten and two that a suffix means.
fn scale(suffix: &str) -> Option<(i32, u32)> {
    Some(match suffix {
        "" => (0, 0),
        "n" => (-9, 0),
        "u" => (-6, 0),
        "m" => (-3, 0),
        "k" => (3, 0),
        "M" => (6, 0),
        "G" => (9, 0),
        "T" => (12, 0),
        "P" => (15, 0),
        "E" => (18, 0),
        "Ki" => (0, 10),
        "Mi" => (0, 20),
        "Gi" => (0, 30),
        "Ti" => (0, 40),
        "Pi" => (0, 50),
        "Ei" => (0, 60),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            (-30..=30).contains(&exponent).then_some((exponent, 0))?
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    /// Values as `Value()` and `MilliValue()` of k8s.io/apimachinery give them; none where those saturate.
    #[test]
    fn rounds_as_kubernetes_does() {
        let table: &[(&str, Option<i64>, Option<i64>)] = &[
            ("0", Some(0), Some(0)),
            ("1", Some(1), Some(1000)),
            ("100m", Some(1), Some(100)),
            ("1.5", Some(2), Some(1500)),
            (".5", Some(1), Some(500)),
            ("5.", Some(5), Some(5000)),
            ("-1.5", Some(-1), Some(-1500)),
            ("1n", Some(1), Some(1)),
            ("800Gi", Some(858_993_459_200), Some(858_993_459_200_000)),
            ("1e3", Some(1000), Some(1_000_000)),
            ("1E3", Some(1000), Some(1_000_000)),
            ("1E", Some(1_000_000_000_000_000_000), None),
            ("7Ei", Some(8_070_450_532_247_928_832), None),
            ("0.5Ki", Some(512), Some(512_000)),
        ];
        for (text, units, thousandths) in table {
            let quantity = Quantity::parse(text).unwrap();
            assert_eq!(quantity.ceil(), *units, "{text}");
            assert_eq!(quantity.milli(), *thousandths, "{text}");
        }
        for text in [
            "",
            "banana",
            "1ki",
            "1 Gi",
            "1.2.3",
            "--1",
            "Gi",
            ".",
            "+",
            "1e",
            "0x10",
            "1e-2147483648",
            "1e2147483647",
            "1E31",
            "1e-31",
            "1e99999999999999999999",
        ] {
            assert!(Quantity::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn compares_across_suffixes() {
        let compare = |a, b| {
            Quantity::parse(a)
                .unwrap()
                .compare(Quantity::parse(b).unwrap())
        };
        assert_eq!(compare("2048Gi", "2Ti"), Ordering::Equal);
        assert_eq!(compare("1000m", "1"), Ordering::Equal);
        assert_eq!(compare("1G", "1Gi"), Ordering::Less);
        assert_eq!(compare("96", "95999m"), Ordering::Greater);
    }

    /// As `String()` of k8s.io/apimachinery writes what `Add` and `Mul` made.
    #[test]
    fn is_written_as_kubernetes_writes_it() {
        let read = |text: &str| Quantity::parse(text).unwrap();
        for (text, written) in [
            ("0", "0"),
            ("0Gi", "0"),
            ("1.5", "1500m"),
            ("2000m", "2"),
            ("2000", "2k"),
            ("1024", "1024"),
            ("1e3", "1k"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("-2Ki", "-2Ki"),
            ("1024.5Mi", "1049088Ki"),
            ("141.6Ki", "144998400m"),
            ("1.000000000000000000000000000000Ei", "1Ei"),
            ("0.1n", "1n"),
            ("-0.1n", "-1n"),
            ("1E", "1E"),
            ("1e30", "9223372036854775807"),
            ("9Ei", "9223372036854775807"),
        ] {
            assert_eq!(read(text).to_string(), written, "{text}");
        }
        for (sum, written) in [
            (read("1Gi").plus(read("1000")), "1073742824"),
            (read("1000").plus(read("1Gi")), "1073742824"),
            (Quantity::ZERO.plus(read("1Gi")), "1Gi"),
            (read("0").plus(read("1Gi")).times(3), "3Gi"),
            (read("100m").times(10), "1"),
            (read("1G").max(read("1Gi")), "1Gi"),
            (read("7Ei").times(u32::MAX), "9223372036854775807"),
            (read("1e30").plus(read("-1e30")), "0"),
            (read("16Ei").plus(read("-8Ei")), "0"),
            (read("16Ei").plus(read("-7Ei")), "1152921504606846975"),
        ] {
            assert_eq!(sum.to_string(), written);
        }
    }

    fn quantity() -> impl Strategy<Value = String> {
        let digits = "[0-9]{0,45}";
        let exponent = prop_oneof![
            any::<i32>().prop_map(|e| format!("e{e}")),
            any::<i64>().prop_map(|e| format!("E{e}")),
            (-40..40_i32).prop_map(|e| format!("e{e:+}")),
        ];
        let suffixes = [
            "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
            "e", "i",
        ];
        let suffix = prop_oneof![
            prop::sample::select(suffixes.to_vec()).prop_map(str::to_owned),
            exponent
        ];
        ("[+-]?", digits, "[.]?", digits, suffix).prop_map(|(sign, whole, dot, rest, suffix)| {
            format!("{sign}{whole}{dot}{rest}{suffix}")
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        /// Every string is parsed as an amount or refused, and the operations on an amount agree with each other. An overflow would panic.
        #[test]
        fn any_text_is_an_amount_or_none(one in prop_oneof![quantity(), any::<String>()], other in quantity()) {
            let Some(one) = Quantity::parse(&one) else {
                return Ok(());
            };
            if let (Some(units), Some(thousandths)) = (one.ceil(), one.milli()) {
                let rounded = thousandths.div_euclid(1000) + i64::from(thousandths.rem_euclid(1000) != 0);
                prop_assert_eq!(units, rounded);
            }
            prop_assert_eq!(one.compare(one), Ordering::Equal);
            // What is written is read as the same whole units. `141.6Ki` is written `145000`, and that is read as a decimal amount,
            // written `145k`: as the API server has it.
            let read = Quantity::parse(&one.to_string()).unwrap();
            if one.ceil().is_some_and(|units| units.unsigned_abs() < i64::MAX.unsigned_abs()) {
                prop_assert_eq!(read.ceil(), one.ceil());
            }
            let again = Quantity::parse(&read.to_string()).unwrap();
            prop_assert_eq!(again.compare(read), Ordering::Equal);
            if let Some(other) = Quantity::parse(&other) {
                prop_assert_eq!(one.compare(other), other.compare(one).reverse());
                prop_assert_eq!(one.max(other).compare(other.max(one)), Ordering::Equal);
                prop_assert_eq!(one.plus(other).compare(other.plus(one)), Ordering::Equal);
                prop_assert_eq!(one.times(2).compare(one.plus(one)), Ordering::Equal);
            }
        }
    }
}
