//! Describes how a value violates its JSON Schema.

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::Value;

/// The maximum length of a value in a message, in characters.
const MAX_CHARACTERS: usize = 60;

/// Describes an error without its field, by the value found and the values allowed.
pub(crate) fn problem(error: &ValidationError<'_>) -> String {
    match error.kind() {
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

/// Describes the value found and the requirement.
pub(crate) fn must(error: &ValidationError<'_>, be: &str) -> String {
    format!("must be {be}; found {}", short(error.instance()))
}

/// The values, and the types of values, that are allowed.
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
            None => "omitted".to_owned(),
        }
    }
}

/// Returns the values and types that the schema allows at the error; `None` if it does not enumerate them. Null and the empty string,
/// which mean that the field is omitted, are not listed.
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

/// Returns the values that one branch allows, or its types if it does not list values.
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
        "string" => Some("a string"),
        "integer" => Some("an integer"),
        "number" => Some("a number"),
        "object" => Some("a mapping"),
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

fn quoted(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        other => other.to_string(),
    }
}

/// Formats a value for a message. A long string is truncated; a list or mapping is only named as such.
fn short(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
        Value::String(text) if text.chars().count() > MAX_CHARACTERS => {
            format!(
                "`{}…`",
                text.chars().take(MAX_CHARACTERS).collect::<String>()
            )
        }
        other => quoted(other),
    }
}
