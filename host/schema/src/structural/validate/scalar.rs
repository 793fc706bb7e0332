//! Types, texts and numbers.

use super::super::at::At;
use super::super::format::Check;
use super::super::go;
use super::super::node::{Checks, Kind, Node};
use super::super::violation::{Violation, ViolationKind};
use super::Report;
use serde_json::{Number, Value};
use std::cmp::Ordering;

/// Checks the type of a value that is not null, format of a number included.
pub(super) fn check_type(node: &Node, value: &Value, at: &At<'_>, report: &mut Report) {
    let (found, precision) = type_of(value);
    let fits = node.kind.has(found)
        || whole_number_for_integer(value, node.kind)
        || (found == "integer" && node.kind == Kind::Number);
    let textual = value.is_string() || value.is_array();
    let numeric = matches!(node.kind, Kind::Integer | Kind::Number | Kind::IntOrString);
    let (expected, named) = match &node.checks.format {
        Some(format) if !textual && !fits && format.name != precision => {
            (format.name.as_str(), precision)
        }
        // An API server lets a list pass for a string that has a format; other checks than this one may stop it.
        Some(_) if textual && !numeric => ("", ""),
        _ if !fits => (node.kind.name(), found),
        _ => ("", ""),
    };
    if expected.is_empty() && named.is_empty() {
        report.matches += 1;
        return;
    }
    let detail = format!(
        "{} in body must be of type {expected}: {named:?}",
        at.path()
    );
    let violation = Violation::new(at, ViolationKind::WrongType, detail);
    report
        .violations
        .push(violation.showing(format!("{named:?}")));
}

/// Checks length, pattern and format of a text. Of length and pattern only the first that does not hold is reported.
pub(super) fn check_text(checks: &Checks, text: &str, at: &At<'_>, report: &mut Report) {
    if let Some(violation) = length_or_pattern(checks, text, at) {
        report.violations.push(violation);
    }
    report.matches += 1;
    let Some(format) = &checks.format else {
        return;
    };
    if let Check::Text(holds) = format.check {
        if !holds(text) {
            let shown = go::quoted(text);
            let detail = format!(
                "{} in body must be of type {}: {shown}",
                at.path(),
                format.name
            );
            let violation = Violation::new(at, ViolationKind::WrongType, detail);
            report.violations.push(violation.showing(shown));
        }
        report.matches += 1;
    }
}

fn length_or_pattern(checks: &Checks, text: &str, at: &At<'_>) -> Option<Violation> {
    let length = match (checks.max_length, checks.min_length) {
        (None, None) => 0,
        // In characters, though the server's sentence says bytes.
        _ => u64::try_from(text.chars().count()).unwrap_or(u64::MAX),
    };
    if let Some(max) = checks.max_length.filter(|max| length > *max) {
        let unit = if max == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {max} {unit}");
        return Some(Violation::new(at, ViolationKind::TooLong, detail));
    }
    let invalid = |detail: String| {
        Violation::new(at, ViolationKind::Invalid, detail).showing(go::quoted(text))
    };
    if let Some(min) = checks.min_length.filter(|min| length < *min) {
        let detail = format!("{} in body should be at least {min} chars long", at.path());
        return Some(invalid(detail));
    }
    let pattern = checks.pattern.as_ref()?;
    (!pattern.regex.is_match(text)).then(|| {
        invalid(format!(
            "{} in body should match '{}'",
            at.path(),
            pattern.written
        ))
    })
}

/// Checks the range of the format, and the limits, of a number.
pub(super) fn check_number(node: &Node, number: &Number, at: &At<'_>, report: &mut Report) {
    report.matches += 2;
    if let Some(problem) = out_of_range(node, number, at) {
        report.violations.push(Violation::pathless(at, problem));
    }
    let number = Numeric::of(number);
    let invalid = |problem: String| {
        let detail = format!("{} in body should be {problem}", at.path());
        Violation::new(at, ViolationKind::Invalid, detail).showing(number.shown())
    };
    if let Some(factor) = node.checks.multiple_of
        && !number.is_multiple_of(factor)
    {
        report
            .violations
            .push(invalid(format!("a multiple of {}", number.limit(factor))));
    }
    if let Some(min) = node.checks.minimum {
        let (broken, words) = if min.exclusive {
            (number.compare(min.limit).is_le(), "greater than")
        } else {
            (
                number.compare(min.limit).is_lt(),
                "greater than or equal to",
            )
        };
        if broken {
            report
                .violations
                .push(invalid(format!("{words} {}", number.limit(min.limit))));
        }
    }
    if let Some(max) = node.checks.maximum {
        let (broken, words) = if max.exclusive {
            (number.compare(max.limit).is_ge(), "less than")
        } else {
            (number.compare(max.limit).is_gt(), "less than or equal to")
        };
        if broken {
            report
                .violations
                .push(invalid(format!("{words} {}", number.limit(max.limit))));
        }
    }
}

fn out_of_range(node: &Node, number: &Number, at: &At<'_>) -> Option<String> {
    let check = node.checks.format.as_ref().map(|format| format.check);
    let whole = whole(number);
    let fits = match (node.kind, check) {
        (Kind::Integer, Some(Check::Int32)) => {
            whole.is_some_and(|number| i32::try_from(number).is_ok())
        }
        (Kind::Integer, _) => whole.is_some(),
        (Kind::Number, Some(Check::Float)) => number
            .as_f64()
            .is_some_and(|number| number.abs() <= f64::from(f32::MAX)),
        _ => true,
    };
    if fits {
        return None;
    }
    let kind = node.kind.name();
    let name = node.checks.format.as_ref().map(|format| &format.name);
    Some(match name {
        Some(format) => format!(
            "Checked value must be of type {kind} with format {format} in {}",
            at.path()
        ),
        None => format!(
            "Checked value must be of type {kind} (default format) in {}",
            at.path()
        ),
    })
}

/// A number as Go holds it: an integer, or else a float.
#[derive(Clone, Copy)]
enum Numeric {
    Integer(i64),
    Float(f64),
}

impl Numeric {
    fn of(number: &Number) -> Self {
        match number.as_i64() {
            Some(integer) => Self::Integer(integer),
            None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
        }
    }

    fn shown(self) -> String {
        match self {
            Self::Integer(integer) => integer.to_string(),
            Self::Float(float) => go::float(float),
        }
    }

    /// A limit as it is compared with this number: as an integer with an integer.
    fn limit(self, limit: f64) -> String {
        match self {
            Self::Integer(_) => truncated(limit).to_string(),
            Self::Float(_) => go::float(limit),
        }
    }

    fn compare(self, limit: f64) -> Ordering {
        match self {
            Self::Integer(integer) => integer.cmp(&truncated(limit)),
            Self::Float(float) => float.partial_cmp(&limit).unwrap_or(Ordering::Equal),
        }
    }

    fn is_multiple_of(self, factor: f64) -> bool {
        match self {
            Self::Integer(integer) => {
                let factor = truncated(factor);
                factor > 0 && integer.checked_rem(factor) == Some(0)
            }
            Self::Float(float) => factor > 0.0 && (float / factor).fract() == 0.0,
        }
    }
}

/// The JSON type of a value, and the format that Go would give it.
fn type_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.as_i64().is_some() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

fn whole_number_for_integer(value: &Value, kind: Kind) -> bool {
    const SAFE: f64 = 9_007_199_254_740_991.0;
    match value {
        Value::Number(number) if number.as_i64().is_none() && kind.has("integer") => number
            .as_f64()
            .is_some_and(|number| number.abs() <= SAFE && number.fract() == 0.0),
        _ => false,
    }
}

fn whole(number: &Number) -> Option<i64> {
    number.as_i64().or_else(|| {
        let float = number.as_f64()?;
        let fits = float.fract() == 0.0 && (-9.3e18..=9.3e18).contains(&float);
        // Above 2^63 the decimal digits of the float decide, as they do for the server.
        if fits {
            format!("{float:.0}").parse().ok()
        } else {
            None
        }
    })
}

/// A float as Go converts it to an integer.
#[allow(clippy::cast_possible_truncation)]
fn truncated(limit: f64) -> i64 {
    limit as i64
}
