//! Value validations, with an API server's messages.
//!
//! All violations are reported, in this order: type, `anyOf` and similar keywords, strings, numbers, items, enum, fields.

mod branches;
mod scalar;

use serde_json::{Map, Value};

use trainyard_text::StackPath;

use crate::{
    go,
    node::{Additional, Node},
    value_type::ValueType,
    violation::{Violation, ViolationKind},
};

/// Adds all violations of a value.
pub(crate) fn validate(node: &Node, value: &Value, at: &StackPath<'_>, out: &mut Vec<Violation>) {
    let mut report = Report::default();
    check(node, value, at, &mut report);
    out.append(&mut report.violations);
}

/// The violations of a value, and the number of checks that it passed. If no branch of an `anyOf` matches, the branch with the most
/// passed checks is assumed to be the intended one.
#[derive(Default)]
struct Report {
    violations: Vec<Violation>,
    matches: u32,
}

impl Report {
    fn merge(&mut self, other: Self) {
        for violation in other.violations {
            if !self.violations.contains(&violation) {
                self.violations.push(violation);
            }
        }
        self.matches += other.matches;
    }
}

fn check(node: &Node, value: &Value, at: &StackPath<'_>, report: &mut Report) {
    if value.is_null() {
        check_null(node, at, report);
        return;
    }
    if node.kind != ValueType::Any || node.checks.format.is_some() {
        scalar::check_type(node, value, at, report);
        report.matches += 1;
    }
    branches::check(&node.checks, value, at, report);
    report.matches += 2;
    match value {
        Value::String(text) => scalar::check_text(&node.checks, text, at, report),
        Value::Number(number) => scalar::check_number(node, number, at, report),
        Value::Array(items) => check_items(node, items, at, report),
        _ => {}
    }
    check_choices(node, value, at, report);
    report.matches += 1;
    if let Value::Object(map) = value {
        check_fields(node, map, at, report);
        report.matches += 1;
    }
    report.matches += 1;
}

fn check_null(node: &Node, at: &StackPath<'_>, report: &mut Report) {
    if node.kind != ValueType::Any && !node.nullable {
        let detail = format!(
            "{} in body must be of type {}: \"null\"",
            at.path(),
            node.kind.name()
        );
        let violation = Violation::new(at, ViolationKind::WrongType, detail);
        report
            .violations
            .push(violation.showing("\"null\"".to_owned()));
    } else {
        report.matches += 1;
    }
    check_choices(node, &Value::Null, at, report);
}

fn check_choices(node: &Node, value: &Value, at: &StackPath<'_>, report: &mut Report) {
    let choices = &node.checks.choices;
    if choices.is_empty() || choices.iter().any(|choice| equal(choice, value)) {
        return;
    }
    let names: Vec<_> = choices
        .iter()
        .map(|choice| match choice {
            Value::String(text) => go::quoted(text),
            other => go::quoted(&go::json(other)),
        })
        .collect();
    let detail = format!("supported values: {}", names.join(", "));
    let violation = Violation::new(at, ViolationKind::NotSupported, detail);
    report.violations.push(violation.showing(go::shown(value)));
}

fn equal(choice: &Value, value: &Value) -> bool {
    match (choice, value) {
        (Value::Number(choice), Value::Number(value)) => scalar::is_choice(choice, value),
        _ => choice == value,
    }
}

fn check_items(node: &Node, items: &[Value], at: &StackPath<'_>, report: &mut Report) {
    if let Some(node) = &node.items {
        for (index, item) in items.iter().enumerate() {
            check(node, item, &at.index(index), report);
        }
    }
    let size = items.len();
    if let Some(min) = node.checks.min_items.filter(|min| below(size, *min)) {
        let detail = format!("{} in body should have at least {min} items", at.path());
        report
            .violations
            .push(Violation::invalid(at, &size.into(), detail));
    }
    if let Some(max) = node.checks.max_items.filter(|max| above(size, *max)) {
        report.violations.push(too_many(at, size, max));
    }
    report.matches += 2;
}

fn check_fields(node: &Node, map: &Map<String, Value>, at: &StackPath<'_>, report: &mut Report) {
    let size = map.len();
    if let Some(min) = node.checks.min_properties.filter(|min| below(size, *min)) {
        let detail = format!(
            "{} in body should have at least {min} properties",
            at.path()
        );
        report
            .violations
            .push(Violation::invalid(at, &size.into(), detail));
    }
    if let Some(max) = node.checks.max_properties.filter(|max| above(size, *max)) {
        report.violations.push(too_many(at, size, max));
    }
    if let Some(Additional::Nothing) = node.additional {
        for key in map.keys() {
            let detail = format!("{}.{key} in body is a forbidden property", at.path());
            let key = Value::from(key.as_str());
            report.violations.push(Violation::invalid(at, &key, detail));
        }
    }
    for (key, value) in map {
        if let Some(child) = node.child(key).and_then(|child| child.node()) {
            check(child, value, &at.field(key), report);
        }
    }
    for name in &node.checks.required {
        if !map.contains_key(name) {
            report
                .violations
                .push(Violation::required(&at.field(name), ""));
        }
    }
}

fn too_many(at: &StackPath<'_>, size: usize, max: u64) -> Violation {
    let noun = if max == 1 { "item" } else { "items" };
    let detail = format!("must have at most {max} {noun}");
    Violation::new(at, ViolationKind::TooMany, detail).showing(size.to_string())
}

fn below(size: usize, min: u64) -> bool {
    u64::try_from(size).is_ok_and(|size| size < min)
}

fn above(size: usize, max: u64) -> bool {
    u64::try_from(size).map_or(true, |size| size > max)
}
