//! The rules of an API server as tables, and the walk that applies them.
//!
//! A table has a row for each member with rules. The walk follows what the pod has, so rules for absent members cost nothing. It skips
//! unknown members, nulls and values of other types, which are the schema's.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use trainyard_api::StackPath;

use super::FieldProblems;
use crate::json::{get, text};

/// A check that needs code: the problems, the path, the value, and the object that has it.
pub(super) type Code = fn(&mut FieldProblems, &StackPath<'_>, &Value, &Map<String, Value>);

/// The rules for an object.
pub(super) struct Shape {
    /// The rules for each member.
    pub(super) members: &'static [(&'static str, &'static [Rule])],
    /// The members that must not be absent or empty.
    pub(super) needs: &'static [&'static str],
    /// The check of several members.
    pub(super) whole: Option<fn(&mut FieldProblems, &StackPath<'_>, &Value)>,
}

/// A shape without rules, for the fields that a table leaves out.
pub(super) const ANY: Shape = Shape {
    members: &[],
    needs: &[],
    whole: None,
};

/// A number without an upper limit that must not be negative.
pub(super) const NOT_NEGATIVE: Rule = Rule::Range(0, i64::MAX);

/// The greatest number of a field with 32 bits.
pub(super) const INT_MAX: i64 = 2_147_483_647;

/// The number of a port.
pub(super) const PORT: Rule = Rule::Range(1, 65_535);

/// The id of a user or a group.
pub(super) const ID: Rule = Rule::Range(0, INT_MAX);

/// A rule for the value of a member.
pub(super) enum Rule {
    /// The value has this shape.
    Object(&'static Shape),
    /// The items have this shape.
    Items(&'static Shape),
    /// The items follow this rule.
    Each(&'static Rule),
    /// No two items have the same text as this member. The texts are the problem and what to do, before and after the text.
    Unique(&'static str, &'static str, &'static str),
    /// The list has at most this many items.
    Most(usize),
    /// The value is one of these words, or empty.
    Word(&'static [&'static str]),
    /// The value is one of these words.
    NonEmptyWord(&'static [&'static str]),
    /// The number is in this range.
    Range(i64, i64),
    /// The text has a form, or is empty.
    Text(fn(&mut FieldProblems, &StackPath<'_>, &str)),
    /// The text has a form, and is not empty.
    NonEmptyText(fn(&mut FieldProblems, &StackPath<'_>, &str)),
    /// The value is empty, for this reason.
    Never(&'static str),
    /// The object does not have this member too.
    Without(&'static str),
    /// The code finds no problem.
    Check(Code),
}

/// Checks an object.
pub(super) fn check(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    shape: &Shape,
    value: &Value,
) {
    let Value::Object(members) = value else {
        return;
    };
    for (name, value) in members {
        let mut rows = shape.members.iter();
        if let Some((_, rules)) = rows.find(|(row, _)| row == name)
            && !value.is_null()
        {
            let at = at.field(name);
            for rule in *rules {
                rule.check(problems, &at, value, members);
            }
        }
    }
    for name in shape.needs {
        if is_empty(members.get(*name)) {
            problems.add(&at.field(name), "is empty; set it");
        }
    }
    if let Some(whole) = shape.whole {
        whole(problems, at, value);
    }
}

/// Whether a member is absent or empty.
fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    }
}

impl Rule {
    pub(super) fn check(
        &self,
        problems: &mut FieldProblems,
        at: &StackPath<'_>,
        value: &Value,
        of: &Map<String, Value>,
    ) {
        match (self, value) {
            (Self::Object(shape), _) => check(problems, at, shape, value),
            (Self::Items(shape), Value::Array(items)) => {
                for (position, item) in items.iter().enumerate() {
                    check(problems, &at.index(position), shape, item);
                }
            }
            (Self::Each(rule), Value::Array(items)) => {
                for (position, item) in items.iter().enumerate() {
                    rule.check(problems, &at.index(position), item, of);
                }
            }
            (Self::Unique(member, problem, what_to_do), Value::Array(items)) if items.len() > 1 => {
                let mut known = BTreeSet::new();
                for (position, item) in items.iter().enumerate() {
                    let word = text(item, member);
                    if !word.is_empty() && !known.insert(word) {
                        let at = at.index(position);
                        let message = format!("{problem} `{word}`; {what_to_do}");
                        problems.add(&at.field(member), message);
                    }
                }
            }
            (Self::Most(most), Value::Array(items)) if items.len() > *most => {
                let count = items.len();
                problems.add(
                    at,
                    format!("has {count} items, but at most {most} are allowed; remove some"),
                );
            }
            (Self::Word(_), Value::String(word)) if word.is_empty() => {}
            (Self::Word(words) | Self::NonEmptyWord(words), Value::String(word))
                if !words.contains(&word.as_str()) =>
            {
                let words = words.join(", ");
                let found = match &**word {
                    "" => "is empty".to_owned(),
                    word => format!("is `{word}`"),
                };
                problems.add(at, format!("{found}, but must be one of {words}"));
            }
            (Self::Range(least, most), Value::Number(number)) => {
                let wanted = match *most {
                    i64::MAX => format_args!("at least {least}"),
                    _ => format_args!("{least} to {most}"),
                };
                if number.as_i64().is_some_and(|n| n < *least || n > *most) {
                    problems.add(at, format!("is {number}, but must be {wanted}"));
                }
            }
            (Self::Text(_), Value::String(text)) if text.is_empty() => {}
            (Self::Text(form) | Self::NonEmptyText(form), Value::String(text)) => {
                form(problems, at, text);
            }
            (Self::Never(message), _) if !is_empty(Some(value)) => problems.add(at, *message),
            (Self::Without(other), _) if !is_empty(Some(value)) && !is_empty(of.get(*other)) => {
                let message = format!("cannot be set together with `{other}`; remove one");
                problems.add(at, message);
            }
            (Self::Check(code), _) => code(problems, at, value, of),
            _ => {}
        }
    }
}

/// Adds a problem if the object does not have exactly one of these members.
pub(super) fn one_of(
    problems: &mut FieldProblems,
    at: &StackPath<'_>,
    of: &Value,
    members: &[&str],
    what: &str,
) {
    let set = |member: &&&str| get(of, member).is_some_and(|value| !value.is_null());
    let found: Vec<&str> = members.iter().filter(set).copied().collect();
    match found.as_slice() {
        [] => {
            let (last, others) = members.split_last().unwrap_or((&"", &[]));
            let others = others.join(", ");
            problems.add(at, format!("has no {what}; set one of {others} and {last}"));
        }
        [_] => {}
        several => more_than_one(problems, at, several, what),
    }
}

/// Adds a problem if more than one member is an object.
pub(super) fn one_source(problems: &mut FieldProblems, at: &StackPath<'_>, of: &Value) {
    let members = of.as_object().into_iter().flatten();
    let sources: Vec<&str> = members
        .filter(|(_, value)| value.is_object())
        .map(|(member, _)| member.as_str())
        .collect();
    if sources.len() > 1 {
        more_than_one(problems, at, &sources, "source");
    }
}

fn more_than_one(problems: &mut FieldProblems, at: &StackPath<'_>, several: &[&str], what: &str) {
    let several = several.join(", ");
    problems.add(at, format!("has more than one {what}: {several}; keep one"));
}
