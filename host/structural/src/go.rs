//! Values formatted as Go formats them in an API server's messages.

use std::fmt::Write;

use serde_json::{Map, Number, Value};

/// Formats a value as in a field error: strings are quoted, other scalars are plain, the rest is JSON.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Number(number) => plain_number(number),
        other => json(other),
    }
}

/// Formats a string as Go's `%q` does. Characters that are not printable are escaped.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c if prints(c) => out.push(c),
            c => escape(&mut out, c),
        }
    }
    out.push('"');
    out
}

/// Formats a floating-point number as Go's `%v` does.
pub(crate) fn float(value: f64) -> String {
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => format!("{value}"),
    }
}

/// Formats a floating-point number as Go's `encoding/json` does: `3.0` as `3`.
fn json_float(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let scientific = format!("{value:e}");
        return match scientific.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                format!("{digits}e+{exponent}")
            }
            _ => scientific,
        };
    }
    format!("{value}")
}

/// Formats a value as Go's `encoding/json` does: keys are sorted, and `<`, `>` and `&` are escaped.
pub(crate) fn json(value: &Value) -> String {
    let mut out = String::new();
    write_json(&mut out, value);
    out
}

/// Returns a text that is equal for equal values; an integer and a float differ.
pub(crate) fn identity(value: &Value) -> String {
    match value {
        Value::Number(number) if number.as_i64().is_none() => format!("float {number}"),
        other => json(other),
    }
}

fn plain_number(number: &Number) -> String {
    match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => integer.to_string(),
        (None, Some(value)) => float(value),
        (None, None) => number.to_string(),
    }
}

fn prints(c: char) -> bool {
    // Marks are printed after another character. Go prints the hidden ones, too.
    let is_mark = || format!("a{c}").escape_debug().count() == 2 && !trainyard_text::is_hidden(c);
    matches!(c, ' ' | '\'') || (!c.is_whitespace() && (c.escape_debug().count() == 1 || is_mark()))
}

fn escape(out: &mut String, c: char) {
    let code = u32::from(c);
    let _ = match code {
        0..0x80 => write!(out, "\\x{code:02x}"),
        0x80..0x1_0000 => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::Object(map) => write_object(out, map),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_json(out, item);
            }
            out.push(']');
        }
        Value::String(text) => write_string(out, text),
        Value::Number(number) if number.is_f64() => {
            out.push_str(&json_float(number.as_f64().unwrap_or(f64::NAN)));
        }
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

fn write_object(out: &mut String, map: &Map<String, Value>) {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by_key(|(key, _)| *key);
    out.push('{');
    for (at, (key, value)) in entries.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write_string(out, key);
        out.push(':');
        write_json(out, value);
    }
    out.push('}');
}

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
