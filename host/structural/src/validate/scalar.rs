//! Types, strings and numbers.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use trainyard_text::StackPath;

use super::Report;
use crate::{
    format::Check,
    go,
    node::{Checks, Node},
    value_type::ValueType,
    violation::{Violation, ViolationKind},
};

/// Checks the type of a value that is not null, and the format of a number.
pub(super) fn check_type(node: &Node, value: &Value, at: &StackPath<'_>, report: &mut Report) {
    let (found, precision) = type_of(value);
    let fits = node.kind.has(found)
        || whole_number_for_integer(value, node.kind)
        || (found == "integer" && node.kind == ValueType::Number);
    let textual = value.is_string() || value.is_array();
    let numeric = matches!(
        node.kind,
        ValueType::Integer | ValueType::Number | ValueType::IntOrString
    );
    let (expected, named) = match &node.checks.format {
        Some(format) if !textual && !fits && format.name != precision => {
            (format.name.as_str(), precision)
        }
        // An API server accepts a list as a string with a format; other checks may still refuse it.
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

/// Checks the length, pattern and format of a string. A violated length hides a violated pattern.
pub(super) fn check_text(checks: &Checks, text: &str, at: &StackPath<'_>, report: &mut Report) {
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

fn length_or_pattern(checks: &Checks, text: &str, at: &StackPath<'_>) -> Option<Violation> {
    let length = match (checks.max_length, checks.min_length) {
        (None, None) => 0,
        // The unit is characters, although the server's message says bytes.
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
    (!pattern.matches(text)).then(|| {
        invalid(format!(
            "{} in body should match '{}'",
            at.path(),
            pattern.written
        ))
    })
}

/// Checks the range of the format, and the limits, of a number.
pub(super) fn check_number(node: &Node, number: &Number, at: &StackPath<'_>, report: &mut Report) {
    report.matches += 2;
    if let Some(problem) = out_of_range(node, number, at) {
        report.violations.push(Violation::pathless(at, problem));
    }
    let number = Numeric::of(number);
    if let Some(factor) = node.checks.multiple_of {
        report.violations.extend(no_multiple(number, factor, at));
    }
    let limits = [
        (node.checks.minimum, Ordering::Less, "greater than"),
        (node.checks.maximum, Ordering::Greater, "less than"),
    ];
    for (bound, beyond, words) in limits {
        let Some(bound) = bound else {
            continue;
        };
        let found = number.compare(bound.limit);
        if found == beyond || (bound.exclusive && found == Ordering::Equal) {
            let equal = if bound.exclusive { "" } else { " or equal to" };
            let limit = number.limit(bound.limit);
            let detail = format!("{} in body should be {words}{equal} {limit}", at.path());
            report.violations.push(number.invalid(at, detail));
        }
    }
}

fn no_multiple(number: Numeric, factor: f64, at: &StackPath<'_>) -> Option<Violation> {
    let shown = number.limit(factor);
    if number.is_truncated_away(factor) {
        // A server converts the factor to an integer first, so it cannot divide by a factor below 1.
        let detail = format!(
            "factor MultipleOf declared for {} must be positive: {shown}",
            at.path()
        );
        return Some(Violation::new(at, ViolationKind::Invalid, detail).showing(shown));
    }
    (!number.is_multiple_of(factor)).then(|| {
        let detail = format!("{} in body should be a multiple of {shown}", at.path());
        number.invalid(at, detail)
    })
}

fn out_of_range(node: &Node, number: &Number, at: &StackPath<'_>) -> Option<String> {
    let check = node.checks.format.as_ref().map(|format| format.check);
    let whole = whole(number);
    let fits = match (node.kind, check) {
        (ValueType::Integer, Some(Check::Int32)) => {
            whole.is_some_and(|number| i32::try_from(number).is_ok())
        }
        (ValueType::Integer, _) => whole.is_some(),
        (ValueType::Number, Some(Check::Float)) => number
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

/// Returns whether a number is in an enum. It is converted to the type of the enum's value, as by a server.
pub(super) fn is_choice(choice: &Number, value: &Number) -> bool {
    match choice.as_i64() {
        Some(choice) => Numeric::of(value).truncated() == choice,
        None => choice.as_f64() == value.as_f64(),
    }
}

/// A number as Go decodes it: an integer, or else a float.
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

    fn invalid(self, at: &StackPath<'_>, detail: String) -> Violation {
        Violation::new(at, ViolationKind::Invalid, detail).showing(self.shown())
    }

    fn shown(self) -> String {
        match self {
            Self::Integer(integer) => integer.to_string(),
            Self::Float(float) => go::float(float),
        }
    }

    /// Converts a limit to the type of this number, for the comparison.
    fn limit(self, limit: f64) -> String {
        match self {
            Self::Integer(_) => truncated(limit).to_string(),
            Self::Float(_) => go::float(limit),
        }
    }

    fn truncated(self) -> i64 {
        match self {
            Self::Integer(integer) => integer,
            Self::Float(float) => truncated(float),
        }
    }

    fn compare(self, limit: f64) -> Ordering {
        match self {
            Self::Integer(integer) => integer.cmp(&truncated(limit)),
            Self::Float(float) => float.partial_cmp(&limit).unwrap_or(Ordering::Equal),
        }
    }

    fn is_truncated_away(self, factor: f64) -> bool {
        match self {
            Self::Integer(_) => truncated(factor) <= 0,
            Self::Float(_) => factor <= 0.0,
        }
    }

    fn is_multiple_of(self, factor: f64) -> bool {
        match self {
            Self::Integer(integer) => integer.checked_rem(truncated(factor)) == Some(0),
            Self::Float(float) => is_whole(float / factor),
        }
    }
}

/// Returns the JSON type of a value, and the format that Go assigns to it.
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

/// Returns whether a server takes a float for an integer: if it is one in the range in which floats represent each integer exactly, or
/// if its fraction is a negligible part of it, which a server decides only for positive floats.
fn is_whole(float: f64) -> bool {
    const SAFE: f64 = 9_007_199_254_740_991.0;
    const NEGLIGIBLE: f64 = 1e-9;
    let whole = float.trunc();
    let is_near = || whole > 0.0 && (float - whole) / (float + whole) < NEGLIGIBLE;
    float.abs() <= SAFE && (float == whole || is_near())
}

fn whole_number_for_integer(value: &Value, kind: ValueType) -> bool {
    match value {
        Value::Number(number) if number.as_i64().is_none() && kind.has("integer") => {
            number.as_f64().is_some_and(is_whole)
        }
        _ => false,
    }
}

fn whole(number: &Number) -> Option<i64> {
    number.as_i64().or_else(|| {
        let float = number.as_f64()?;
        let fits = float.fract() == 0.0 && (-9.3e18..=9.3e18).contains(&float);
        // Above 2^63 the decimal digits of the float decide, as in a server.
        if fits {
            format!("{float:.0}").parse().ok()
        } else {
            None
        }
    })
}

/// Converts a float to an integer, as Go does.
#[allow(clippy::cast_possible_truncation)]
fn truncated(limit: f64) -> i64 {
    limit as i64
}
