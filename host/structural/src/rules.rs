//! The rules of a node (`x-kubernetes-validations`), as written and as compiled.

use std::{
    collections::BTreeSet,
    sync::{LazyLock, OnceLock},
};

use cel::Program;
use serde_json::{Map, Value};
use trainyard_text::{StackPath, path::Segment};

use crate::{
    error::CompileError,
    sparse::{Absent, Sparse},
    violation::ViolationKind,
};

/// The keyword for rules.
pub(crate) const KEYWORD: &str = "x-kubernetes-validations";
/// The variable for the old value.
pub(crate) const OLD_SELF: &str = "oldSelf";
/// The field of a rule that makes `oldSelf` an optional value.
pub(crate) const OPTIONAL_OLD: &str = "optionalOldSelf";

/// The rules of one node. They are compiled when they are first needed.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    pub(crate) written: Vec<RuleSource>,
    /// Whether the old value of an update can be found.
    pub(crate) correlated: bool,
    pub(crate) compiled: OnceLock<Result<Compiled, CompileError>>,
}

/// Rules that are ready to be evaluated.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) rules: Vec<Rule>,
    /// The fields of `self` that the rules read.
    pub(crate) reads: Reads,
}

/// A rule as written in a schema.
#[derive(Debug)]
pub(crate) struct RuleSource {
    pub(crate) source: String,
    pub(crate) message: Option<String>,
    pub(crate) message_source: Option<String>,
    pub(crate) reason: ViolationKind,
    pub(crate) field_path: Option<String>,
    pub(crate) optional_old: Option<Value>,
}

/// A rule, ready to be evaluated.
#[derive(Debug)]
pub(crate) struct Rule {
    /// The message of the rule, or else its source, which identifies it in errors.
    pub(crate) name: String,
    /// The message of a violation.
    pub(crate) message: String,
    pub(crate) program: Program,
    pub(crate) message_program: Option<Program>,
    pub(crate) reason: ViolationKind,
    pub(crate) field_path: Vec<Segment>,
    /// Whether `oldSelf` is an optional value, so that the rule is evaluated on creation too.
    pub(crate) optional_old: bool,
    /// Whether the rule reads `oldSelf`.
    pub(crate) transition: bool,
}

/// The fields of `self` and `oldSelf` that the rules of one place read. Other fields are not converted for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    all: bool,
    fields: BTreeSet<String>,
}

impl Reads {
    /// Returns whether the rules read the field, by its name in CEL.
    pub(crate) fn needs(&self, field: &str) -> bool {
        self.all || self.fields.contains(field)
    }

    /// Adds a field, by its name in CEL.
    pub(crate) fn add(&mut self, field: &str) {
        self.fields.insert(field.to_owned());
    }

    /// Adds all fields, for a rule that uses `self` as a whole.
    pub(crate) fn read_all(&mut self) {
        self.all = true;
    }
}

impl Absent for Rules {
    fn absent() -> &'static Self {
        static NONE: LazyLock<Rules> = LazyLock::new(Rules::default);
        &NONE
    }
}

impl Rules {
    /// Parses the rules of a node. `correlated` is set if the old value of an update can be found there.
    pub(crate) fn read(
        rules: Option<&Value>,
        correlated: bool,
        at: &StackPath<'_>,
    ) -> Result<Sparse<Self>, CompileError> {
        let at = at.field(KEYWORD);
        let wrong = |at: &StackPath<'_>, expected| CompileError::WrongValue {
            path: at.path(),
            expected,
        };
        let rules = match rules {
            None => return Ok(Sparse::default()),
            Some(rules) => rules
                .as_array()
                .ok_or_else(|| wrong(&at, "a list of rules"))?,
        };
        let written = rules.iter().enumerate().map(|(index, rule)| {
            let at = at.index(index);
            let rule = rule.as_object().ok_or_else(|| wrong(&at, "an object"))?;
            read(rule, &at)
        });
        Ok(Sparse::new(Self {
            written: written.collect::<Result<_, _>>()?,
            correlated,
            compiled: OnceLock::new(),
        }))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    /// Returns whether all rules are transition rules, which are not evaluated without an old value. A rule counts as one if its
    /// text contains `oldSelf`.
    pub(crate) fn are_transition_rules(&self) -> bool {
        let of_updates =
            |rule: &RuleSource| rule.optional_old.is_none() && rule.source.contains(OLD_SELF);
        self.written.iter().all(of_updates)
    }
}

fn read(rule: &Map<String, Value>, at: &StackPath<'_>) -> Result<RuleSource, CompileError> {
    refuse_unknown(rule, at)?;
    let source = text(rule, "rule", at)?;
    let Some(source) = source.filter(|source| !source.is_empty()) else {
        return Err(refused(&at.field("rule"), "rule is not specified"));
    };
    let message = text(rule, "message", at)?;
    check_message(message.as_deref(), &source, &at.field("message"))?;
    Ok(RuleSource {
        source,
        message,
        message_source: text(rule, "messageExpression", at)?,
        reason: reason(text(rule, "reason", at)?.as_deref(), &at.field("reason"))?,
        field_path: text(rule, "fieldPath", at)?,
        optional_old: rule.get(OPTIONAL_OLD).filter(|old| !old.is_null()).cloned(),
    })
}

fn refuse_unknown(rule: &Map<String, Value>, at: &StackPath<'_>) -> Result<(), CompileError> {
    const KNOWN: [&str; 6] = [
        "rule",
        "message",
        "messageExpression",
        "reason",
        "fieldPath",
        OPTIONAL_OLD,
    ];
    match rule.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        Some(keyword) => Err(CompileError::UnknownKeyword {
            path: at.path(),
            keyword: keyword.clone(),
        }),
        None => Ok(()),
    }
}

fn check_message(
    message: Option<&str>,
    source: &str,
    at: &StackPath<'_>,
) -> Result<(), CompileError> {
    match message {
        Some("") => Err(refused(at, "must be non-empty if specified")),
        Some(message) if message.contains('\n') => Err(refused(at, "must not contain line breaks")),
        None if source.contains('\n') => Err(refused(
            at,
            "message must be specified if rule contains line breaks",
        )),
        _ => Ok(()),
    }
}

fn reason(reason: Option<&str>, at: &StackPath<'_>) -> Result<ViolationKind, CompileError> {
    Ok(match reason {
        None | Some("FieldValueInvalid") => ViolationKind::Invalid,
        Some("FieldValueForbidden") => ViolationKind::Forbidden,
        Some("FieldValueRequired") => ViolationKind::Required,
        Some("FieldValueDuplicate") => ViolationKind::Duplicate,
        Some(_) => {
            return Err(refused(
                at,
                "must be FieldValueInvalid, FieldValueForbidden, FieldValueRequired or FieldValueDuplicate",
            ));
        }
    })
}

fn text(
    rule: &Map<String, Value>,
    name: &str,
    at: &StackPath<'_>,
) -> Result<Option<String>, CompileError> {
    match rule.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim().to_owned())),
        Some(_) => Err(CompileError::WrongValue {
            path: at.field(name).path(),
            expected: "a string",
        }),
    }
}

/// Refuses a rule, as an API server does.
pub(crate) fn refused(at: &StackPath<'_>, reason: &str) -> CompileError {
    CompileError::Refused {
        path: at.path(),
        reason: reason.to_owned(),
    }
}
