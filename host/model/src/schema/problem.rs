//! Problems of a configuration or a file, and their messages for its author.

use std::mem;

use serde_json::{Number, Value};
use trainyard_text::FieldPath;

use super::{
    ConfigError,
    node::{ObjectRules, Type},
};
use crate::text::{clean, counted, nearest};

/// The maximum length of an unknown key for which a similar one is searched, in bytes.
const MAX_MISSPELLED: usize = 64;

/// The most characters of a value in a message.
const MOST: usize = 60;

/// The most values in a message.
const MOST_CHOICES: usize = 20;

/// One problem of a value.
#[derive(Debug)]
pub(super) struct Problem<'s> {
    pub(super) field: FieldPath,
    /// The value, shortened.
    pub(super) shown: String,
    pub(super) violation: Violation<'s>,
    /// The schema's description, which explains more than the keyword.
    pub(super) description: Option<&'s str>,
}

/// The rule that a value violates.
#[derive(Debug)]
pub(super) enum Violation<'s> {
    Type(&'s [Type]),
    Choice(&'s [Value]),
    Below(&'s Number),
    Above(&'s Number),
    NotAbove(&'s Number),
    NotBelow(&'s Number),
    NotAMultiple(u64),
    Shorter(u64),
    Longer(u64),
    Pattern(&'s str),
    FewerItems(u64),
    MoreItems(u64),
    Repeated(String),
    FewerKeys(u64),
    MoreKeys(u64),
    Missing(&'s str),
    Unknown {
        keys: Vec<String>,
        /// The number of further unknown keys.
        more: usize,
        rules: &'s ObjectRules,
    },
    /// The value matches no branch. Has the problems with each.
    NoBranch(Vec<Vec<Problem<'s>>>),
    /// The value matches more than one branch of a `oneOf`.
    SeveralBranches,
    NotAllowed,
}

impl Problem<'_> {
    /// The errors of a configuration, each with what its author can do and the schema's description.
    pub(super) fn errors(self) -> Vec<ConfigError> {
        let problems = self.meant().into_iter();
        let errors = problems.map(|problem| {
            let text = format!("{}; {}", problem.words(), remedy(&problem.violation));
            ConfigError {
                problem: clean(&with_description(text, problem.description)),
                field: problem.field,
            }
        });
        errors.collect()
    }

    /// The errors of a file, each at its field. See [`super::Schema::field_errors`].
    pub(super) fn field_errors(self, patterns: &[(&str, &str)]) -> Vec<ConfigError> {
        let problems = self.meant().into_iter();
        problems.flat_map(|one| one.at_fields(patterns)).collect()
    }

    fn at_fields(&self, patterns: &[(&str, &str)]) -> Vec<ConfigError> {
        let below = |key: &str, problem: String| ConfigError {
            field: self.field.field(key),
            problem,
        };
        match &self.violation {
            Violation::Missing(key) => vec![below(key, "is missing".to_owned())],
            Violation::Unknown { keys, rules, .. } => {
                let keys = keys.iter();
                keys.map(|key| below(key, unknown_field(key, rules)))
                    .collect()
            }
            violation => {
                let described = patterns.iter().find(
                    |(known, _)| matches!(violation, Violation::Pattern(pattern) if pattern == known),
                );
                vec![ConfigError {
                    field: self.field.clone(),
                    problem: match described {
                        Some((_, strings)) => self.must(strings),
                        None => self.words(),
                    },
                }]
            }
        }
    }

    /// The problems with the one of several forms that was clearly meant, or else the problem itself.
    fn meant(mut self) -> Vec<Self> {
        let is_listed = self.allowed().is_some();
        match &mut self.violation {
            Violation::NoBranch(branches) if !is_listed => match meant(branches) {
                Some(problems) => problems.into_iter().flat_map(Self::meant).collect(),
                None => vec![self],
            },
            _ => vec![self],
        }
    }

    /// What is wrong, without what to do.
    fn words(&self) -> String {
        let (violation, shown) = (&self.violation, &self.shown);
        let must = |be: String| self.must(&be);
        let have = |what: String| format!("must have {what}");
        match violation {
            Violation::Type(_) | Violation::Choice(_) | Violation::NoBranch(_) => {
                match self.allowed() {
                    Some(allowed) => must(allowed.in_words()),
                    None => format!("is {shown}, which matches none of the allowed forms"),
                }
            }
            Violation::Below(limit) => must(format!("at least {limit}")),
            Violation::Above(limit) => must(format!("at most {limit}")),
            Violation::NotAbove(limit) => must(format!("more than {limit}")),
            Violation::NotBelow(limit) => must(format!("less than {limit}")),
            Violation::NotAMultiple(factor) => must(format!("a multiple of {factor}")),
            Violation::Shorter(1) => "must not be empty".to_owned(),
            Violation::Shorter(limit) => {
                must(format!("at least {} long", counted(*limit, "character")))
            }
            Violation::Longer(limit) => {
                must(format!("no longer than {}", counted(*limit, "character")))
            }
            Violation::Pattern(pattern) => must(format!("a string that matches `{pattern}`")),
            Violation::FewerItems(limit) => have(format!("at least {}", counted(*limit, "item"))),
            Violation::MoreItems(limit) => have(format!("at most {}", counted(*limit, "item"))),
            Violation::Repeated(item) => format!("has the duplicate item {item}"),
            Violation::FewerKeys(limit) => have(format!("at least {}", counted(*limit, "key"))),
            Violation::MoreKeys(limit) => have(format!("at most {}", counted(*limit, "key"))),
            Violation::Missing(name) => format!("the required key `{name}` is missing"),
            Violation::Unknown { keys, more, rules } => unknown_keys(keys, *more, rules),
            Violation::SeveralBranches => {
                format!("is {shown}, which matches several forms, of which only one is allowed")
            }
            Violation::NotAllowed => format!("is {shown}, which is not allowed here"),
        }
    }

    fn must(&self, be: &str) -> String {
        format!("must be {be}; found {}", self.shown)
    }

    /// The values that are allowed instead. `None` if they cannot be listed.
    fn allowed(&self) -> Option<Allowed> {
        match &self.violation {
            Violation::Type(types) => Some(Allowed {
                types: type_words(types),
                ..Allowed::default()
            }),
            Violation::Choice(choices) => {
                let values = choices.iter();
                let values = values.filter(|value| !value.is_null() && **value != "");
                Some(Allowed {
                    values: values.take(MOST_CHOICES).map(short).collect(),
                    more: choices.len() > MOST_CHOICES,
                    ..Allowed::default()
                })
            }
            Violation::NoBranch(branches) => {
                let mut all = Allowed::default();
                for branch in branches {
                    all.add(self.of_branch(branch)?);
                }
                Some(all)
            }
            _ => None,
        }
    }

    /// The values that one branch allows, or else its types.
    fn of_branch(&self, branch: &[Self]) -> Option<Allowed> {
        let here = |problem: &Self| problem.field == self.field;
        let allowed = branch.iter().map(|one| here(one).then(|| one.allowed())?);
        let allowed: Vec<_> = allowed.collect::<Option<_>>()?;
        let with_values = allowed.iter().position(|one| !one.values.is_empty());
        allowed.into_iter().nth(with_values.unwrap_or(0))
    }
}

/// Takes the problems of the only branch that allows the type of the value.
fn meant<'s>(branches: &mut [Vec<Problem<'s>>]) -> Option<Vec<Problem<'s>>> {
    let of_type = |branch: &&mut Vec<Problem<'_>>| {
        let mut violations = branch.iter().map(|problem| &problem.violation);
        !violations.any(|violation| matches!(violation, Violation::Type(_)))
    };
    let mut meant = branches.iter_mut().filter(of_type);
    match (meant.next(), meant.next()) {
        (Some(branch), None) => Some(mem::take(branch)),
        _ => None,
    }
}

/// The allowed values or types.
#[derive(Default)]
struct Allowed {
    values: Vec<String>,
    types: Vec<&'static str>,
    /// Whether there are more values.
    more: bool,
}

impl Allowed {
    fn add(&mut self, other: Self) {
        self.values.extend(other.values);
        self.more |= other.more || self.values.len() > MOST_CHOICES;
        self.values.truncate(MOST_CHOICES);
        for name in other.types {
            if !self.types.contains(&name) {
                self.types.push(name);
            }
        }
    }

    fn in_words(&self) -> String {
        let types = self.types.iter().map(|name| (*name).to_owned());
        let more = self
            .more
            .then(|| "another of the allowed values".to_owned());
        let all: Vec<String> = self
            .values
            .iter()
            .cloned()
            .chain(more)
            .chain(types)
            .collect();
        match all.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => "omitted".to_owned(),
        }
    }
}

/// What the author of the configuration can do.
const fn remedy(violation: &Violation<'_>) -> &'static str {
    match violation {
        Violation::Type(_)
        | Violation::Choice(_)
        | Violation::NoBranch(_)
        | Violation::NotAMultiple(_)
        | Violation::Pattern(_) => "change it",
        Violation::Below(_) | Violation::NotAbove(_) => "raise it",
        Violation::Above(_) | Violation::NotBelow(_) => "lower it",
        Violation::Shorter(1) => "set it, or remove it",
        Violation::Shorter(_) => "lengthen it",
        Violation::Longer(_) => "shorten it",
        Violation::FewerItems(_) | Violation::FewerKeys(_) => "add more",
        Violation::MoreItems(_) | Violation::MoreKeys(_) => "remove some",
        Violation::Repeated(_) => "remove it",
        Violation::Missing(_) => "add it",
        Violation::Unknown { keys, .. } => match keys.len() {
            1 => "correct or remove it",
            _ => "correct or remove them",
        },
        Violation::SeveralBranches => "write it in one form",
        Violation::NotAllowed => "change or remove it",
    }
}

fn unknown_keys(keys: &[String], more: usize, rules: &ObjectRules) -> String {
    let quoted = keys.iter().map(|unknown| match near(unknown, rules) {
        Some(near) => format!("{} (did you mean `{near}`?)", short_text(unknown)),
        None => short_text(unknown),
    });
    let quoted: Vec<_> = quoted.collect();
    let key = if keys.len() == 1 { "key" } else { "keys" };
    let more = if more == 0 {
        String::new()
    } else {
        format!(" and {more} more")
    };
    format!("has the unknown {key} {}{more}", quoted.join(", "))
}

/// Describes an unknown key at its own place.
fn unknown_field(key: &str, rules: &ObjectRules) -> String {
    let known: Vec<_> = rules.properties.keys().map(String::as_str).collect();
    match near(key, rules) {
        Some(near) => format!("unknown field; did you mean `{near}`?"),
        None if known.is_empty() => "unknown field".to_owned(),
        None => format!("unknown field; valid fields are {}", known.join(", ")),
    }
}

/// The known key that is most similar to an unknown one.
fn near<'s>(key: &str, rules: &'s ObjectRules) -> Option<&'s str> {
    let known = rules.properties.keys().map(String::as_str);
    let is_short = key.len() <= MAX_MISSPELLED;
    is_short.then(|| nearest(key, known)).flatten()
}

fn with_description(problem: String, description: Option<&str>) -> String {
    match description {
        Some(description) => {
            let description = description.trim_end_matches('.');
            format!("{problem} (its schema says: {description})")
        }
        None => problem,
    }
}

/// The types as the author of a configuration knows them.
fn type_words(types: &[Type]) -> Vec<&'static str> {
    let words = |kind: &Type| match kind {
        // A null value counts as unset, so an error does not suggest it.
        Type::Null => None,
        Type::Boolean => Some("true or false"),
        Type::Integer => Some("an integer"),
        Type::Number => Some("a number"),
        Type::String => Some("a string"),
        Type::Array => Some("a list"),
        Type::Object => Some("a mapping"),
    };
    types.iter().filter_map(words).collect()
}

/// The value for a message: lists and maps by their type.
pub(super) fn short(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
        Value::String(text) => short_text(text),
        other => other.to_string(),
    }
}

/// The text in quotes, truncated if it is long.
pub(super) fn short_text(text: &str) -> String {
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("`{}…`", text.get(..end).unwrap_or_default()),
        None => format!("`{text}`"),
    }
}
