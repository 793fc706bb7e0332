//! Resolution of scalars, by the rules of go-yaml v2, which Kubernetes' tools use.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Number, Value};

use super::ErrorKind;

/// The prefix of the tags that YAML itself defines, written `!!` in a document.
const CORE_TAG: &str = "tag:yaml.org,2002:";

/// A resolved scalar.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Null,
    Boolean(bool),
    Integer(i64),
    /// An integer that is too large for `i64`.
    Unsigned(u64),
    Float(f64),
    Text(String),
}

/// Resolves a scalar. `plain` is set for a scalar without quotes, `tag` is its full tag.
pub(super) fn resolve(text: &str, plain: bool, tag: Option<&str>) -> Result<Scalar, ErrorKind> {
    let Some(tag) = tag else {
        return Ok(if plain {
            resolve_plain(text)
        } else {
            Scalar::Text(text.to_owned())
        });
    };
    let wrong = || ErrorKind::Tag {
        tag: short(tag).unwrap_or(tag).to_owned(),
        text: text.to_owned(),
    };
    let scalar = match short(tag) {
        Some("binary") => return decode_binary(text).map(Scalar::Text).ok_or_else(wrong),
        Some("null" | "bool" | "int" | "float" | "timestamp") => resolve_plain(text),
        _ => return Ok(Scalar::Text(text.to_owned())),
    };
    match (short(tag), scalar) {
        (Some("null"), scalar @ Scalar::Null)
        | (Some("bool"), scalar @ Scalar::Boolean(_))
        | (Some("int"), scalar @ (Scalar::Integer(_) | Scalar::Unsigned(_)))
        | (Some("float"), scalar @ (Scalar::Integer(_) | Scalar::Unsigned(_) | Scalar::Float(_)))
        | (Some("timestamp"), scalar @ Scalar::Text(_)) => Ok(scalar),
        _ => Err(wrong()),
    }
}

/// The name of a tag that YAML itself defines.
pub(super) fn short(tag: &str) -> Option<&str> {
    tag.strip_prefix(CORE_TAG)
}

impl Scalar {
    /// Returns the JSON value. `text` is the scalar as written, for the error.
    pub(super) fn into_value(self, text: &str) -> Result<Value, ErrorKind> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Boolean(value) => Value::Bool(value),
            Self::Integer(value) => Value::from(value),
            Self::Unsigned(value) => {
                Value::Number(unsigned(value).ok_or_else(|| ErrorKind::Rounded(text.to_owned()))?)
            }
            Self::Float(value) => {
                Value::Number(float(value).ok_or_else(|| ErrorKind::NotFinite(text.to_owned()))?)
            }
            Self::Text(value) => Value::String(value),
        })
    }

    /// Returns the scalar as the key of a JSON object.
    pub(super) fn into_key(self) -> Result<String, ErrorKind> {
        Ok(match self {
            Self::Null => return Err(ErrorKind::Key("null")),
            Self::Unsigned(_) => return Err(ErrorKind::Key("a number above 9223372036854775807")),
            Self::Boolean(value) => value.to_string(),
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => float_key(value),
            Self::Text(value) => value,
        })
    }
}

/// Returns a float as Kubernetes encodes it in JSON, where a float without a fraction is an integer. `None` if it is not finite.
pub(super) fn float(value: f64) -> Option<Number> {
    let shortest = if value == 0.0 {
        "0".to_owned()
    } else {
        format!("{value}")
    };
    let integer = shortest
        .parse::<i64>()
        .map(Number::from)
        .or_else(|_| shortest.parse::<u64>().map(Number::from));
    integer.ok().or_else(|| Number::from_f64(value))
}

/// Returns an integer as an API server stores it; `None` if that changes it, because integers above the range of `i64` become floats.
pub(super) fn unsigned(value: u64) -> Option<Number> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "the result is compared with the integer"
    )]
    let stored = float(value as f64);
    let number = Number::from(value);
    (number.is_i64() || stored.as_ref() == Some(&number)).then_some(number)
}

/// Formats a float as a key, with the digits of the nearest 32-bit float as `sigs.k8s.io/yaml` does.
fn float_key(value: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the reference rounds keys to 32 bits"
    )]
    let value = value as f32;
    if value.is_nan() {
        return ".nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    format!("{value}")
}

fn decode_binary(text: &str) -> Option<String> {
    let joined: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    String::from_utf8(STANDARD.decode(joined).ok()?).ok()
}

/// Whether a key with this text can only have been a string.
pub(super) fn is_text(key: &str) -> bool {
    matches!(resolve_plain(key), Scalar::Text(_))
}

/// Resolves a scalar without quotes and without a tag.
fn resolve_plain(text: &str) -> Scalar {
    if let Some(scalar) = resolve_word(text) {
        return scalar;
    }
    let number = match text.as_bytes().first() {
        Some(b'.') => separators_stand_between_digits(text)
            .then(|| parse_float(&text.replace('_', "")))
            .flatten(),
        Some(b'+' | b'-' | b'0'..=b'9') => parse_number(&text.replace('_', "")),
        _ => None,
    };
    number.unwrap_or_else(|| Scalar::Text(text.to_owned()))
}

/// Go's rule for `_` in a number, which applies to numbers that start with a point.
fn separators_stand_between_digits(text: &str) -> bool {
    let mut parts = text.split('_').peekable();
    while let Some(part) = parts.next() {
        let digit = |c: char| c.is_ascii_digit();
        if parts
            .peek()
            .is_some_and(|next| !part.ends_with(digit) || !next.starts_with(digit))
        {
            return false;
        }
    }
    true
}

fn resolve_word(text: &str) -> Option<Scalar> {
    Some(match text {
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Scalar::Boolean(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Scalar::Boolean(false)
        }
        ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
        _ => return None,
    })
}

fn parse_number(text: &str) -> Option<Scalar> {
    parse_integer(text)
        .or_else(|| parse_float(text))
        .or_else(|| {
            // go-yaml accepts a sign after 0b, although YAML does not.
            i64::from_str_radix(text.strip_prefix("0b")?, 2)
                .ok()
                .map(Scalar::Integer)
        })
}

/// An integer with Go's prefixes: `0x`, `0o`, `0b`, and `0` for octal.
fn parse_integer(text: &str) -> Option<Scalar> {
    let (sign, unsigned) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.get(..1), rest),
        None => (None, text),
    };
    let (radix, digits) = radix(unsigned);
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let magnitude = match digits {
        "" if unsigned == "0" => 0,
        digits => u64::from_str_radix(digits, radix).ok()?,
    };
    match sign {
        Some("-") => 0_i64.checked_sub_unsigned(magnitude).map(Scalar::Integer),
        _ => match i64::try_from(magnitude) {
            Ok(value) => Some(Scalar::Integer(value)),
            Err(_) if sign.is_none() => Some(Scalar::Unsigned(magnitude)),
            Err(_) => None,
        },
    }
}

fn radix(text: &str) -> (u32, &str) {
    let Some(rest) = text.strip_prefix('0') else {
        return (10, text);
    };
    for (letters, radix) in [(['x', 'X'], 16), (['o', 'O'], 8), (['b', 'B'], 2)] {
        match rest.strip_prefix(letters) {
            Some(digits) if !digits.is_empty() => return (radix, digits),
            _ => {}
        }
    }
    (8, rest)
}

/// Parses a decimal float; `None` if it has another form or is too large.
fn parse_float(text: &str) -> Option<Scalar> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let whole = match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && digits(fraction),
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => !mantissa.is_empty() && digits(mantissa),
    };
    let exponent = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    if !whole || !exponent {
        return None;
    }
    text.parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
        .map(Scalar::Float)
}
