//! What a scalar means, by the rules of go-yaml v2, which Kubernetes' tools read with.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value};

use super::ErrorKind;

/// The prefix of the tags that YAML itself defines, written `!!` in a document.
const CORE_TAG: &str = "tag:yaml.org,2002:";

/// A scalar with its meaning.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Null,
    Boolean(bool),
    Integer(i64),
    /// An integer above those of `i64`.
    Unsigned(u64),
    Float(f64),
    Text(String),
}

/// Resolves a scalar: `plain` is one without quotes, `tag` its full tag, if it has one.
pub(super) fn resolve(text: &str, plain: bool, tag: Option<&str>) -> Result<Scalar, ErrorKind> {
    let Some(tag) = tag else {
        return Ok(if plain { resolve_plain(text) } else { Scalar::Text(text.to_owned()) });
    };
    let wrong = || ErrorKind::Tag { tag: short(tag).unwrap_or(tag).to_owned(), text: text.to_owned() };
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
    /// The JSON value. `text` is the scalar as written, for the error.
    pub(super) fn into_value(self, text: &str) -> Result<Value, ErrorKind> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Boolean(value) => Value::Bool(value),
            Self::Integer(value) => Value::from(value),
            Self::Unsigned(value) => Value::from(value),
            Self::Float(value) => Value::Number(float(value).ok_or_else(|| ErrorKind::NotFinite(text.to_owned()))?),
            Self::Text(value) => Value::String(value),
        })
    }

    /// The scalar as the key of a JSON object.
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

/// A finite float as Kubernetes' JSON has it: one without a fraction is an integer there. None if it is not finite.
pub(super) fn float(value: f64) -> Option<Number> {
    let shortest = if value == 0.0 { "0".to_owned() } else { format!("{value}") };
    let integer = shortest.parse::<i64>().map(Number::from).or_else(|_| shortest.parse::<u64>().map(Number::from));
    integer.ok().or_else(|| Number::from_f64(value))
}

/// A float as a key: the shortest digits of its 32-bit neighbor, as `sigs.k8s.io/yaml` does it.
fn float_key(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "the reference rounds keys to 32 bits")]
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
    let digits = mantissa.chars().filter(char::is_ascii_digit).count();
    // Go's %g: 6 digits of exponent room, or as many as there are digits, up to 21.
    if exponent < -4 || exponent >= i32::try_from(digits).unwrap_or(i32::MAX).max(21).min(21).max(6).min(GO_EXPONENT) {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{mantissa}e{sign}{:02}", exponent.abs())
    } else {
        format!("{value}")
    }
}
