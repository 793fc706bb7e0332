//! Kubernetes quantities (`100m`, `1.5`, `800Gi`, `1e3`): exact, since `f64` loses bytes of large memory amounts.
//!
//! The grammar is that of `k8s.io/apimachinery/pkg/api/resource`. The crates that do this arithmetic pull in the whole
//! of k8s-openapi, which this crate and every plugin author's tests would then build.

use std::cmp::Ordering;

/// An exact amount: `mantissa` times 10^`tens` times 2^`twos`.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    mantissa: i128,
    tens: i32,
    twos: u32,
}

impl Quantity {
    /// Reads a quantity; none where the text is none, or holds more digits than 128 bits do.
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
        let mut mantissa: i128 = format!("0{unsigned}{fraction}").parse().ok()?;
        if whole.starts_with('-') {
            mantissa = mantissa.checked_neg()?;
        }
        let (tens, twos) = scale(suffix)?;
        Some(Self {
            mantissa,
            tens: tens.checked_sub(i32::try_from(fraction.len()).ok()?)?,
            twos,
        })
    }

    /// In whole units, rounded up; none where that is out of range.
    #[must_use]
    pub fn ceil(self) -> Option<i64> {
        self.ceil_at(0)
    }

    /// In thousandths, rounded up; none where that is out of range.
    #[must_use]
    pub fn milli(self) -> Option<i64> {
        self.ceil_at(3)
    }

    fn ceil_at(self, more_tens: i32) -> Option<i64> {
        let scaled = self.mantissa.checked_mul(1i128.checked_shl(self.twos)?)?;
        let tens = self.tens.checked_add(more_tens)?;
        let power = 10i128.checked_pow(tens.unsigned_abs());
        let value = if tens >= 0 {
            scaled.checked_mul(power?)?
        } else {
            match power {
                Some(power) => scaled.div_euclid(power) + i128::from(scaled.rem_euclid(power) != 0),
                None => i128::from(scaled > 0),
            }
        };
        i64::try_from(value).ok()
    }

    /// The order of two amounts, whatever their spelling; none where they differ by more than 128 bits can hold.
    #[must_use]
    pub fn compare(self, other: Self) -> Option<Ordering> {
        let tens = self.tens.min(other.tens);
        let common = |q: Self| {
            let above = u32::try_from(q.tens.checked_sub(tens)?).ok()?;
            let power = 10i128.checked_pow(above)?;
            q.mantissa
                .checked_mul(1i128.checked_shl(q.twos)?)?
                .checked_mul(power)
        };
        Some(common(self)?.cmp(&common(other)?))
    }
}

/// The powers of ten and two of a suffix.
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
                .unwrap()
        };
        assert_eq!(compare("2048Gi", "2Ti"), Ordering::Equal);
        assert_eq!(compare("1000m", "1"), Ordering::Equal);
        assert_eq!(compare("1G", "1Gi"), Ordering::Less);
        assert_eq!(compare("96", "95999m"), Ordering::Greater);
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

        /// Whatever the text, it is an amount or none, and what is made of it agrees with itself. Overflow would panic here.
        #[test]
        fn any_text_is_an_amount_or_none(one in prop_oneof![quantity(), any::<String>()], other in quantity()) {
            let Some(one) = Quantity::parse(&one) else {
                return Ok(());
            };
            if let (Some(units), Some(thousandths)) = (one.ceil(), one.milli()) {
                let rounded = thousandths.div_euclid(1000) + i64::from(thousandths.rem_euclid(1000) != 0);
                prop_assert_eq!(units, rounded);
            }
            if let Some(order) = one.compare(one) {
                prop_assert_eq!(order, Ordering::Equal);
            }
            if let Some(other) = Quantity::parse(&other) {
                prop_assert_eq!(one.compare(other), other.compare(one).map(Ordering::reverse));
            }
        }
    }
}
