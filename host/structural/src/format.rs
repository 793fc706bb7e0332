//! The formats that an API server checks.
//!
//! Formats that it does not know, such as `int-or-string` and `quantity`, are ignored. A few that it knows are not implemented
//! (`email`, `uri`, `isbn` and similar ones). A schema with one of them is refused, so that no check is skipped silently.

use std::net::{Ipv4Addr, Ipv6Addr};

use chrono::NaiveDate;

use crate::{duration, value_type::ValueType};

/// A format that is checked.
#[derive(Clone, Debug)]
pub(crate) struct Format {
    /// The name of the format in the schema.
    pub(crate) name: String,
    pub(crate) check: Check,
}

/// How the format is checked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Check {
    Int32,
    Int64,
    Float,
    Double,
    Text(TextCheck),
}

/// Returns whether a text has a format.
pub(crate) type TextCheck = fn(&str) -> bool;

/// A format that an API server checks and this crate does not support.
#[derive(Debug)]
pub(crate) struct Unchecked;

impl Format {
    /// Finds the format `name` for values of a type; `None` if an API server ignores it.
    pub(crate) fn find(name: &str, kind: ValueType) -> Result<Option<Self>, Unchecked> {
        let check = match (kind, name) {
            (ValueType::Integer, "int32") => Some(Check::Int32),
            (ValueType::Integer, "int64") => Some(Check::Int64),
            (ValueType::Number, "float") => Some(Check::Float),
            (ValueType::Number, "double") => Some(Check::Double),
            (ValueType::String | ValueType::Any | ValueType::IntOrString, name) => {
                text(name)?.map(Check::Text)
            }
            _ => None,
        };
        Ok(check.map(|check| Self {
            name: name.to_owned(),
            check,
        }))
    }
}

fn text(name: &str) -> Result<Option<TextCheck>, Unchecked> {
    // An API server ignores dashes in the names of formats.
    let check: TextCheck = match name.replace('-', "").as_str() {
        "byte" => is_base64,
        "date" => is_date,
        "datetime" => is_date_time,
        "duration" => |text| duration::parse(text).is_some(),
        "ipv4" => |text| without_leading_zeros(text).parse::<Ipv4Addr>().is_ok(),
        "ipv6" => |text| text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr,
        "mac" => is_mac,
        "uuid" => |text| uuid(text).is_some(),
        "uuid3" => |text| uuid(text).is_some_and(|digits| digits[12] == b'3'),
        "uuid4" => |text| uuid(text).is_some_and(|digits| is_random_uuid(&digits, b'4')),
        "uuid5" => |text| uuid(text).is_some_and(|digits| is_random_uuid(&digits, b'5')),
        "hexcolor" => is_hex_color,
        "password" => |_| true,
        "k8sshortname" => |text| text.len() <= 63 && is_dns_label(text),
        "k8slongname" => |text| text.len() <= 253 && text.split('.').all(is_dns_label),
        "hostname" | "uri" | "email" | "bsonobjectid" | "isbn" | "isbn10" | "isbn13"
        | "creditcard" | "ssn" | "rgbcolor" => return Err(Unchecked),
        _ => return Ok(None),
    };
    Ok(Some(check))
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - digits.len() <= 2
        && !digits.is_empty()
        && digits
            .bytes()
            .all(|c| c.is_ascii_alphanumeric() || c == b'+' || c == b'/')
}

/// A date of RFC 3339, as Go parses `2006-01-02`.
pub(crate) fn is_date(text: &str) -> bool {
    let shape = text.len() == 10
        && text.bytes().enumerate().all(|(at, c)| match at {
            4 | 7 => c == b'-',
            _ => c.is_ascii_digit(),
        });
    shape && NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let Some((date, time)) = lower.split_once('t') else {
        return false;
    };
    let Some((clock, rest)) = time.split_at_checked(8) else {
        return false;
    };
    is_date(date) && is_clock(clock) && is_zone(without_fraction(rest))
}

fn is_clock(text: &str) -> bool {
    let mut parts = text.split(':');
    let mut within = |most: u8| {
        parts.next().is_some_and(|part| {
            part.len() == 2
                && part.bytes().all(|c| c.is_ascii_digit())
                && part.parse::<u8>().is_ok_and(|number| number <= most)
        })
    };
    within(23) && within(59) && within(59) && parts.next().is_none()
}

/// Returns what follows the fraction of a second. The API server accepts any character as its point.
fn without_fraction(text: &str) -> &str {
    let mut chars = text.chars();
    match chars.next() {
        Some(_) if chars.as_str().starts_with(|c: char| c.is_ascii_digit()) && !is_zone(text) => {
            chars
                .as_str()
                .trim_start_matches(|c: char| c.is_ascii_digit())
        }
        _ => text,
    }
}

fn is_zone(text: &str) -> bool {
    text == "z"
        || (text.len() == 6
            && text.bytes().enumerate().all(|(at, c)| match at {
                0 => c == b'+' || c == b'-',
                3 => c == b':',
                _ => c.is_ascii_digit(),
            }))
}

/// An IPv4 address as Go 1.17 and earlier parse it, which API servers still do.
fn without_leading_zeros(text: &str) -> String {
    let parts = text.split('.').map(|part| {
        let digits = part.trim_start_matches('0');
        if digits.is_empty() && !part.is_empty() {
            "0"
        } else {
            digits
        }
    });
    parts.collect::<Vec<_>>().join(".")
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let most = if without_leading_zeros(address).parse::<Ipv4Addr>().is_ok() {
        32
    } else if address.parse::<Ipv6Addr>().is_ok() {
        128
    } else {
        return false;
    };
    !length.is_empty()
        && length.bytes().all(|c| c.is_ascii_digit())
        && length.parse::<u8>().is_ok_and(|length| length <= most)
}

fn is_mac(text: &str) -> bool {
    let grouped = |separator: char, size: usize, groups: &[usize]| {
        let parts: Vec<_> = text.split(separator).collect();
        groups.contains(&parts.len())
            && parts
                .iter()
                .all(|part| part.len() == size && part.bytes().all(|c| c.is_ascii_hexdigit()))
    };
    grouped(':', 2, &[6, 8, 20]) || grouped('-', 2, &[6, 8, 20]) || grouped('.', 4, &[3, 4, 10])
}

/// Returns the 32 digits of a UUID, in which each dash is optional.
fn uuid(text: &str) -> Option<[u8; 32]> {
    let mut rest = text;
    let mut digits = String::with_capacity(32);
    for size in [8, 4, 4, 4, 12] {
        if !digits.is_empty() {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let (group, after) = rest.split_at_checked(size)?;
        digits.push_str(group);
        rest = after;
    }
    let all = digits.bytes().all(|c| c.is_ascii_hexdigit());
    if !rest.is_empty() || !all {
        return None;
    }
    digits.into_bytes().try_into().ok()
}

fn is_random_uuid(digits: &[u8; 32], version: u8) -> bool {
    digits[12] == version && b"89abAB".contains(&digits[16])
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|c| c.is_ascii_hexdigit())
}

/// A lowercase DNS label (RFC 1123) of any length.
pub(crate) fn is_dns_label(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}
