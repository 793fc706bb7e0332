//! What is wrong with a value by its JSON Schema, in words for the one who wrote the value.

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::Value;

/// The most of a value that is repeated.
const MOST: usize = 60;

/// What is wrong, without the field: what stands there, and what may.
#[must_use]
pub fn problem(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            unknown_keys(unexpected)
        }
        Kind::Required { property } => format!("{} is missing", quoted(property)),
        Kind::Minimum { limit } => must(error, &format!("at least {limit}")),
        Kind::Maximum { limit } => must(error, &format!("at most {limit}")),
        Kind::MinLength { limit: 1 } => "must not be empty".to_owned(),
        Kind::MaxLength { limit } => must(error, &format!("no longer than {limit} characters")),
        _ => match allowed(error) {
            Some(allowed) => must(error, &allowed.in_words()),
            None => error.to_string(),
        },
    }
}

/// What stands there, and what has to be.
#[must_use]
pub fn must(error: &ValidationError<'_>, be: &str) -> String {
    format!("is {}; it must be {be}", short(error.instance()))
}

/// What may stand at a place: values, or anything of some types.
#[derive(Default)]
struct Allowed {
    values: Vec<String>,
    types: Vec<&'static str>,
}

impl Allowed {
    fn in_words(&self) -> String {
        let types = self.types.iter().map(|name| (*name).to_owned());
        let all: Vec<String> = self.values.iter().cloned().chain(types).collect();
        match all.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => "left out".to_owned(),
        }
    }
}

/// What may stand where the error is; none where that can't be told in a list. Nothing is a value that is left out, so nobody is
/// told to write null.
fn allowed(error: &ValidationError<'_>) -> Option<Allowed> {
    match error.kind() {
        Kind::Constant { expected_value } => Some(Allowed {
            values: vec![quoted(expected_value)],
            ..Allowed::default()
        }),
        Kind::Enum { options } => {
            let options = options.as_array()?.iter();
            let values = options.filter(|option| !option.is_null() && **option != "");
            Some(Allowed {
                values: values.map(quoted).collect(),
                ..Allowed::default()
            })
        }
        Kind::Type { kind } => Some(Allowed {
            types: types(kind),
            ..Allowed::default()
        }),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            let mut all = Allowed::default();
            for branch in context {
                let one = of_branch(error, branch)?;
                all.values.extend(one.values);
                all.types.extend(one.types);
            }
            Some(all)
        }
        _ => None,
    }
}

/// What one branch allows: its values, where it says which, or else its types.
fn of_branch(whole: &ValidationError<'_>, branch: &[ValidationError<'_>]) -> Option<Allowed> {
    let here = |error: &&ValidationError<'_>| error.instance_path() == whole.instance_path();
    if !branch.iter().all(|error| here(&error)) {
        return None;
    }
    let branch: Option<Vec<_>> = branch.iter().map(allowed).collect();
    let branch = branch?;
    let with_values = branch.iter().position(|one| !one.values.is_empty());
    branch.into_iter().nth(with_values.unwrap_or(0))
}

fn types(kind: &TypeKind) -> Vec<&'static str> {
    let words = |name| match name {
        "boolean" => Some("true or false"),
        "string" => Some("a text"),
        "integer" => Some("a whole number"),
        "number" => Some("a number"),
        "object" => Some("a map"),
        "array" => Some("a list"),
        _ => None,
    };
    match kind {
        TypeKind::Single(one) => words(one.as_str()).into_iter().collect(),
        TypeKind::Multiple(several) => several
            .iter()
            .filter_map(|one| words(one.as_str()))
            .collect(),
    }
}

fn unknown_keys(keys: &[String]) -> String {
    let named: Vec<_> = keys.iter().map(|key| format!("`{key}`")).collect();
    let key = if keys.len() == 1 { "key" } else { "keys" };
    format!("has the unknown {key} {}", named.join(", "))
}

fn quoted(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        other => other.to_string(),
    }
}

/// What stands there: a large value by what it is.
fn short(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a map".to_owned(),
        Value::String(text) if text.chars().count() > MOST => {
            format!("`{}…`", text.chars().take(MOST).collect::<String>())
        }
        other => quoted(other),
    }
}
