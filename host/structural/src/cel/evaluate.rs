//! Evaluates the rules of an object, with the old values of an update.

use std::collections::HashMap;

use cel::{Context, ExecutionError, Value as CelValue, common::types::CelOptional};
use serde_json::Value;

use trainyard_text::StackPath;

use super::{compile::compiled, environment::environment, values};
use crate::{
    go, lists,
    node::{Child, ListType, Node},
    rules::{Compiled, Rule},
    value_type::ValueType,
    violation::{Violation, ViolationKind},
};

/// The maximum size of the result of a messageExpression, in bytes.
const MESSAGE_LIMIT: usize = 5 * 1024;

/// Adds the violations of the rules of a value and of the values in it. `whole` is set for objects with a kind.
pub(crate) fn check(
    node: &Node,
    value: &Value,
    old: Option<&Value>,
    whole: bool,
    at: &StackPath<'_>,
    out: &mut Vec<Violation>,
) {
    if !node.below.rules || value.is_null() {
        return;
    }
    let old = old.filter(|old| !old.is_null());
    if !node.rules.is_empty() {
        check_here(node, value, old, whole, at, out);
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let old = old.and_then(|old| old.get(key));
                match node.child(key) {
                    Some(Child::Property(property)) => {
                        let node = &property.node;
                        check(node, value, old, node.embedded, &at.field(key), out);
                    }
                    Some(Child::Entry(Some(node))) => {
                        check(node, value, old, node.embedded, &at.key(key), out);
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => check_items(node, items, old, at, out),
        _ => {}
    }
}

fn check_items(
    node: &Node,
    items: &[Value],
    old: Option<&Value>,
    at: &StackPath<'_>,
    out: &mut Vec<Violation>,
) {
    let Some(inner) = &node.items else {
        return;
    };
    // Old items can only be found by their keys.
    let keys = match &node.list {
        ListType::Map(keys) => keys.as_slice(),
        ListType::Atomic | ListType::Set => &[],
    };
    let key = |item: &Value| go::identity(&Value::Object(lists::key_of(item, keys)));
    let before: HashMap<String, &Value> = match old.and_then(Value::as_array) {
        Some(old) if !keys.is_empty() => old.iter().map(|item| (key(item), item)).collect(),
        _ => HashMap::new(),
    };
    for (index, item) in items.iter().enumerate() {
        let old = match before.is_empty() {
            true => None,
            false => before.get(&key(item)).copied(),
        };
        check(inner, item, old, inner.embedded, &at.index(index), out);
    }
}

fn check_here(
    node: &Node,
    value: &Value,
    old: Option<&Value>,
    whole: bool,
    at: &StackPath<'_>,
    out: &mut Vec<Violation>,
) {
    if old.is_none() && node.rules.are_transition_rules() {
        return;
    }
    let Compiled { rules, reads } = match compiled(node, whole, at) {
        Ok(compiled) => compiled,
        // Only for a schema that was compiled lazily.
        Err(problem) => {
            out.push(Violation::new(
                at,
                ViolationKind::Invalid,
                problem.to_string(),
            ));
            return;
        }
    };
    let Ok(environment) = environment() else {
        return;
    };
    let mut context = Context::with_env(environment);
    let notes = values::Notes::default();
    let this = |value| values::this(value, node, whole, reads, &notes);
    context.add_variable_as_val("self", this(value));
    for rule in rules {
        if rule.transition && old.is_none() && !rule.optional_old {
            continue;
        }
        let mut plain = context.new_inner_scope();
        if let Some(old) = old.filter(|_| rule.transition || rule.message_program.is_some()) {
            plain.add_variable_as_val("oldSelf", this(old));
        }
        let mut optional = plain.new_inner_scope();
        if rule.optional_old {
            let old = old.map(this);
            optional.add_variable_as_val("oldSelf", Box::new(CelOptional::from(old)));
        }
        match rule.program.execute(&optional) {
            Ok(CelValue::Bool(true)) => {}
            Ok(CelValue::Bool(false)) => out.push(refused(rule, &plain, node, value, at)),
            Ok(_) => out.push(failed(
                rule,
                node,
                at,
                "no such overload: the rule gave no bool",
            )),
            Err(error) => out.push(failed(rule, node, at, &words(&error, &notes))),
        }
    }
}

fn refused(
    rule: &Rule,
    context: &Context<'_, '_>,
    node: &Node,
    value: &Value,
    at: &StackPath<'_>,
) -> Violation {
    let detail = message(rule, context).unwrap_or_else(|| rule.message.clone());
    let mut violation = Violation::new(at, rule.reason, detail);
    violation.path = violation
        .path
        .segments()
        .iter()
        .chain(&rule.field_path)
        .cloned()
        .collect();
    let compound = matches!(node.kind, ValueType::Object | ValueType::Array);
    match rule.reason {
        ViolationKind::Invalid if !compound => violation.showing(go::shown(value)),
        // A server reports the value of a duplicate, and no message.
        ViolationKind::Duplicate => {
            violation.detail.clear();
            if compound {
                violation
            } else {
                violation.showing(go::shown(value))
            }
        }
        _ => violation,
    }
}

fn failed(rule: &Rule, node: &Node, at: &StackPath<'_>, words: &str) -> Violation {
    let detail = match words.strip_prefix("no such overload") {
        Some(_) => format!(
            "'{words}': call arguments did not match a supported operator, function or macro signature for rule: {}",
            rule.name
        ),
        None => format!("{words} evaluating rule: {}", rule.name),
    };
    let kind = match node.kind {
        ValueType::IntOrString => "",
        kind => kind.name(),
    };
    Violation::new(at, ViolationKind::Invalid, detail).showing(go::quoted(kind))
}

/// Describes an error of an evaluation. Values are omitted, because they can be large or confidential.
fn words(error: &ExecutionError, notes: &values::Notes) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::NoSuchOverload(_)
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnsupportedBinaryOperator(..) => {
            notes.unreadable().unwrap_or("no such overload").to_owned()
        }
        ExecutionError::IndexOutOfBounds(CelValue::Int(index)) => {
            format!("index out of bounds: {index}")
        }
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        other => other.to_string(),
    }
}

fn message(rule: &Rule, context: &Context<'_, '_>) -> Option<String> {
    let program = rule.message_program.as_ref()?;
    let Ok(CelValue::String(message)) = program.execute(context) else {
        return None;
    };
    let message = message.trim();
    let fits = !message.is_empty() && message.len() <= MESSAGE_LIMIT && !message.contains('\n');
    fits.then(|| message.to_owned())
}
