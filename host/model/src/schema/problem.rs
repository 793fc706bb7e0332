//! Problems of a configuration, and their messages for its author.

use serde_json::{Number, Value};

use super::{ConfigError, node::Type};
use crate::text::clean;

/// The most characters of a value in a message.
const MOST: usize = 60;

/// The most values in a message.
const MOST_CHOICES: usize = 20;

/// One problem of a value.
#[derive(Debug)]
pub(super) struct Problem<'s> {
    pub(super) pointer: String,
    /// The value, shortened.
    pub(super) shown: String,
    pub(super) fault: Fault<'s>,
    /// The schema's description, which explains more than the keyword.
    pub(super) description: Option<&'s str>,
}

/// The rule that a value violates.
#[derive(Debug)]
pub(super) enum Fault<'s> {
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
    /// The first unknown keys, and the number of the others.
    Unknown(Vec<String>, usize),
    /// The value matches no branch. Has the problems with each.
    NoBranch(Vec<Vec<Problem<'s>>>),
    /// The value matches more than one branch of a `oneOf`.
    SeveralBranches,
    NotAllowed,
}

impl Fault<'_> {
    /// The most unknown keys in a message.
    pub(super) const KEYS: usize = 10;
}

impl Problem<'_> {
    /// The errors that are reported. If one of several forms was clearly meant, its errors.
    pub(super) fn errors(self) -> Vec<ConfigError> {
        let allowed = self.allowed();
        match self.fault {
            Fault::NoBranch(branches) if allowed.is_none() => match meant(branches) {
                Some(problems) => problems.into_iter().flat_map(Problem::errors).collect(),
                None => vec![ConfigError {
                    pointer: self.pointer,
                    problem: clean(&with_description(
                        format!(
                            "is {}, which matches none of the allowed forms; change it",
                            self.shown
                        ),
                        self.description,
                    )),
                }],
            },
            fault => {
                let words = words(&fault, &self.shown, allowed);
                let remedy = remedy(&fault);
                vec![ConfigError {
                    pointer: self.pointer,
                    problem: clean(&with_description(
                        format!("{words}; {remedy}"),
                        self.description,
                    )),
                }]
            }
        }
    }

    /// The values that are allowed instead. `None` if they cannot be listed.
    fn allowed(&self) -> Option<Allowed> {
        match &self.fault {
            Fault::Type(types) => Some(Allowed {
                types: type_words(types),
                ..Allowed::default()
            }),
            Fault::Choice(choices) => {
                let values = choices.iter();
                let values = values.filter(|value| !value.is_null() && **value != "");
                Some(Allowed {
                    values: values.take(MOST_CHOICES).map(short).collect(),
                    more: choices.len() > MOST_CHOICES,
                    ..Allowed::default()
                })
            }
            Fault::NoBranch(branches) => {
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
        let here = |problem: &Self| problem.pointer == self.pointer;
        let allowed = branch.iter().map(|one| here(one).then(|| one.allowed())?);
        let allowed: Vec<_> = allowed.collect::<Option<_>>()?;
        let with_values = allowed.iter().position(|one| !one.values.is_empty());
        allowed.into_iter().nth(with_values.unwrap_or(0))
    }
}

/// The problems of the only branch that allows the type of the value.
fn meant(branches: Vec<Vec<Problem<'_>>>) -> Option<Vec<Problem<'_>>> {
    let of_type = |branch: &Vec<Problem<'_>>| {
        let mut faults = branch.iter().map(|problem| &problem.fault);
        !faults.any(|fault| matches!(fault, Fault::Type(_)))
    };
    let mut meant = branches.into_iter().filter(of_type);
    match (meant.next(), meant.next()) {
        (Some(branch), None) => Some(branch),
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
            None => "left out".to_owned(),
        }
    }
}

fn words(fault: &Fault<'_>, shown: &str, allowed: Option<Allowed>) -> String {
    let must = |be: String| format!("must be {be}; found {shown}");
    let have = |what: String| format!("must have {what}");
    match fault {
        Fault::Type(_) | Fault::Choice(_) | Fault::NoBranch(_) => {
            must(allowed.unwrap_or_default().in_words())
        }
        Fault::Below(limit) => must(format!("at least {limit}")),
        Fault::Above(limit) => must(format!("at most {limit}")),
        Fault::NotAbove(limit) => must(format!("more than {limit}")),
        Fault::NotBelow(limit) => must(format!("less than {limit}")),
        Fault::NotAMultiple(factor) => must(format!("a multiple of {factor}")),
        Fault::Shorter(1) => "must not be empty".to_owned(),
        Fault::Shorter(limit) => must(format!("at least {} long", counted(*limit, "character"))),
        Fault::Longer(limit) => must(format!("no longer than {}", counted(*limit, "character"))),
        Fault::Pattern(pattern) => must(format!("a string that matches `{pattern}`")),
        Fault::FewerItems(limit) => have(format!("at least {}", counted(*limit, "item"))),
        Fault::MoreItems(limit) => have(format!("at most {}", counted(*limit, "item"))),
        Fault::Repeated(item) => format!("has the duplicate item {item}"),
        Fault::FewerKeys(limit) => have(format!("at least {}", counted(*limit, "key"))),
        Fault::MoreKeys(limit) => have(format!("at most {}", counted(*limit, "key"))),
        Fault::Missing(name) => format!("the required key `{name}` is missing"),
        Fault::Unknown(keys, more) => unknown_keys(keys, *more),
        Fault::SeveralBranches => {
            format!("is {shown}, which matches several forms, of which only one is allowed")
        }
        Fault::NotAllowed => format!("is {shown}, which is not allowed here"),
    }
}

/// What the author of the configuration can do.
const fn remedy(fault: &Fault<'_>) -> &'static str {
    match fault {
        Fault::Type(_)
        | Fault::Choice(_)
        | Fault::NoBranch(_)
        | Fault::NotAMultiple(_)
        | Fault::Pattern(_) => "change it",
        Fault::Below(_) | Fault::NotAbove(_) => "raise it",
        Fault::Above(_) | Fault::NotBelow(_) => "lower it",
        Fault::Shorter(1) => "set it, or remove it",
        Fault::Shorter(_) => "lengthen it",
        Fault::Longer(_) => "shorten it",
        Fault::FewerItems(_) | Fault::FewerKeys(_) => "add more",
        Fault::MoreItems(_) | Fault::MoreKeys(_) => "remove some",
        Fault::Repeated(_) => "remove it",
        Fault::Missing(_) => "add it",
        Fault::Unknown(keys, _) => match keys.len() {
            1 => "correct or remove it",
            _ => "correct or remove them",
        },
        Fault::SeveralBranches => "write it in one form",
        Fault::NotAllowed => "change or remove it",
    }
}

fn unknown_keys(keys: &[String], more: usize) -> String {
    let key = if keys.len() == 1 { "key" } else { "keys" };
    let more = if more == 0 {
        String::new()
    } else {
        format!(" and {more} more")
    };
    format!("has the unknown {key} {}{more}", keys.join(", "))
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

fn counted(count: u64, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}

/// The types as the author of a configuration knows them.
fn type_words(types: &[Type]) -> Vec<&'static str> {
    let words = |kind: &Type| match kind {
        // A null value counts as unset, so an error does not suggest it.
        Type::Null => None,
        Type::Boolean => Some("true or false"),
        Type::Integer => Some("a whole number"),
        Type::Number => Some("a number"),
        Type::String => Some("a string"),
        Type::Array => Some("a list"),
        Type::Object => Some("a map"),
    };
    types.iter().filter_map(words).collect()
}

/// The value for a message: lists and maps by their type.
pub(super) fn short(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a map".to_owned(),
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
