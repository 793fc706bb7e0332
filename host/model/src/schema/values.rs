//! The size and equality of JSON values.

use std::cmp::Ordering;

use serde_json::Value;

use super::{
    limits::{Budget, Exhausted, of_text},
    number,
};

/// The size of a value in memory: 64 bytes for each value in it, and the bytes of its strings and keys.
pub(super) fn size(value: &Value) -> u64 {
    let below = match value {
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(object) => object
            .iter()
            .map(|(key, value)| key.len() as u64 + size(value))
            .sum(),
        _ => 0,
    };
    64 + below
}

/// Whether a value is nested deeper than that. The recursion is limited to that depth.
pub(super) fn is_deeper_than(value: &Value, levels: usize) -> bool {
    let deeper = |value: &Value| match levels.checked_sub(1) {
        Some(levels) => is_deeper_than(value, levels),
        None => true,
    };
    match value {
        Value::Array(items) => items.iter().any(deeper),
        Value::Object(object) => object.values().any(deeper),
        _ => false,
    }
}

/// Whether two values are equal: numbers by value, objects independent of the order of keys.
pub(super) fn equal(one: &Value, other: &Value, budget: &mut Budget) -> Result<bool, Exhausted> {
    budget.steps(1)?;
    Ok(match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            number::compare(one, other) == Ordering::Equal
        }
        (Value::String(one), Value::String(other)) => {
            budget.steps(of_text(one))?;
            one == other
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (one, other) in one.iter().zip(other) {
                if !equal(one, other, budget)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Object(one), Value::Object(other)) if one.len() == other.len() => {
            for (key, one) in one {
                budget.steps(1 + of_text(key))?;
                match other.get(key) {
                    Some(other) if equal(one, other, budget)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        (Value::Array(_) | Value::Object(_), _) => false,
        (one, other) => one == other,
    })
}

/// A text that is the same for two values if and only if they are equal, so that many values can be compared by sorting.
pub(super) fn identity(value: &Value, budget: &mut Budget) -> Result<String, Exhausted> {
    let mut out = String::new();
    write_identity(value, &mut out, budget)?;
    Ok(out)
}

fn write_identity(value: &Value, out: &mut String, budget: &mut Budget) -> Result<(), Exhausted> {
    budget.steps(1)?;
    match value {
        Value::Number(number) => out.push_str(&number::identity(number)),
        Value::String(text) => write_text(text, out, budget)?,
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_identity(item, out, budget)?;
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(object) => {
            let mut members: Vec<_> = object.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (key, value) in members {
                write_text(key, out, budget)?;
                write_identity(value, out, budget)?;
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
    Ok(())
}

/// Writes a string after its length, so the result is unambiguous.
fn write_text(text: &str, out: &mut String, budget: &mut Budget) -> Result<(), Exhausted> {
    budget.steps(1 + of_text(text))?;
    out.push_str(&format!("\"{}:", text.len()));
    out.push_str(text);
    Ok(())
}
