//! Rules as they stand in a schema, compiled.

use super::super::at::At;
use super::super::error::CompileError;
use super::super::node::{Additional, Node};
use super::environment::environment;
use super::types::{self, Reads, Type};
use super::{field_path, values};
use crate::structural::violation::ViolationKind;
use cel::Program;
use serde_json::{Map, Value};
use trainyard_api::path::Segment;

/// A rule, ready to be evaluated.
#[derive(Debug)]
pub(crate) struct Rule {
    source: String,
    pub(super) program: Program,
    message: Option<String>,
    message_source: Option<String>,
    pub(super) message_program: Option<Program>,
    pub(super) reason: ViolationKind,
    written_path: Option<String>,
    pub(super) field_path: Vec<Segment>,
    /// Whether `oldSelf` is an optional value, so that the rule holds on creation too.
    pub(super) optional_old: bool,
    /// Whether the rule looks at the value that was there before.
    pub(super) transition: bool,
    /// The fields of `self` that the rules of the same place read.
    pub(super) reads: Reads,
}

impl Rule {
    /// The rule as errors name it: by its message, if it has one.
    pub(super) fn name(&self) -> &str {
        self.message.as_deref().unwrap_or(&self.source)
    }

    /// The message of a rule that does not hold.
    pub(super) fn message(&self) -> String {
        match &self.message {
            Some(message) => message.clone(),
            None => format!("failed rule: {}", self.source),
        }
    }
}

/// Reads and parses the rules of one place. `correlated` says whether the value before an update can be found there.
pub(crate) fn read_rules(
    rules: Option<&Value>,
    correlated: bool,
    at: &At<'_>,
) -> Result<Vec<Rule>, CompileError> {
    let at = at.field("x-kubernetes-validations");
    let wrong = |at: &At<'_>, expected| CompileError::WrongValue {
        path: at.path(),
        expected,
    };
    let rules = match rules {
        None => return Ok(Vec::new()),
        Some(rules) => rules
            .as_array()
            .ok_or_else(|| wrong(&at, "a list of rules"))?,
    };
    rules
        .iter()
        .enumerate()
        .map(|(index, rule)| {
            let at = at.index(index);
            let rule = rule.as_object().ok_or_else(|| wrong(&at, "an object"))?;
            let rule = read_rule(rule, &at)?;
            if rule.transition && !correlated {
                return Err(CompileError::Refused {
                    path: at.field("rule").path(),
                    reason: "oldSelf cannot be used below the items of a list that is no x-kubernetes-list-type: map: \
                             nobody knows which old item was this one"
                        .to_owned(),
                });
            }
            Ok(rule)
        })
        .collect()
}

fn read_rule(rule: &Map<String, Value>, at: &At<'_>) -> Result<Rule, CompileError> {
    refuse_unknown(rule, at)?;
    let source = text(rule, "rule", at)?;
    let Some(source) = source.filter(|source| !source.is_empty()) else {
        return Err(refused(&at.field("rule"), "rule is not specified"));
    };
    let message = text(rule, "message", at)?;
    check_message(message.as_deref(), &source, &at.field("message"))?;
    let program = parse(&source, &at.field("rule"))?;
    let message_source = text(rule, "messageExpression", at)?;
    let message_program = match &message_source {
        Some(source) => Some(parse(source, &at.field("messageExpression"))?),
        None => None,
    };
    let transition = program.references().has_variable("oldSelf");
    let optional_old = optional_old(rule, transition, &at.field("optionalOldSelf"))?;
    Ok(Rule {
        reason: reason(text(rule, "reason", at)?.as_deref(), &at.field("reason"))?,
        written_path: text(rule, "fieldPath", at)?,
        field_path: Vec::new(),
        source,
        program,
        message,
        message_source,
        message_program,
        optional_old,
        transition,
        reads: Reads::default(),
    })
}

fn refuse_unknown(rule: &Map<String, Value>, at: &At<'_>) -> Result<(), CompileError> {
    const KNOWN: [&str; 6] = [
        "rule",
        "message",
        "messageExpression",
        "reason",
        "fieldPath",
        "optionalOldSelf",
    ];
    match rule.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        Some(keyword) => Err(CompileError::UnknownKeyword {
            path: at.path(),
            keyword: keyword.clone(),
        }),
        None => Ok(()),
    }
}

fn optional_old(
    rule: &Map<String, Value>,
    transition: bool,
    at: &At<'_>,
) -> Result<bool, CompileError> {
    match rule.get("optionalOldSelf") {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(true)) if !transition => {
            Err(refused(at, "may not be set if oldSelf is not used in rule"))
        }
        Some(Value::Bool(optional)) => Ok(*optional),
        Some(_) => Err(refused(at, "must be true or false")),
    }
}

fn check_message(message: Option<&str>, source: &str, at: &At<'_>) -> Result<(), CompileError> {
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

fn reason(reason: Option<&str>, at: &At<'_>) -> Result<ViolationKind, CompileError> {
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

/// Checks every rule below a node against the types of its values, and notes which fields it reads.
pub(crate) fn compile(node: &mut Node, whole: bool, at: &At<'_>) -> Result<(), CompileError> {
    if !node.below.rules {
        return Ok(());
    }
    let mut rules = std::mem::take(&mut node.rules);
    let rules_at = at.field("x-kubernetes-validations");
    let mut reads = Reads::default();
    for (index, rule) in rules.iter_mut().enumerate() {
        check(rule, node, whole, &rules_at.index(index), &mut reads)?;
    }
    for rule in &mut rules {
        rule.reads = reads.clone();
    }
    node.rules = rules;
    let properties_at = at.field("properties");
    for (name, property) in &mut node.properties {
        let whole = property.node.embedded;
        compile(&mut property.node, whole, &properties_at.key(name))?;
    }
    if let Some(Additional::Schema(values)) = &mut node.additional {
        let whole = values.embedded;
        compile(values, whole, &at.field("additionalProperties"))?;
    }
    match &mut node.items {
        Some(items) => {
            let whole = items.embedded;
            compile(items, whole, &at.field("items"))
        }
        None => Ok(()),
    }
}

fn check(
    rule: &mut Rule,
    node: &Node,
    whole: bool,
    at: &At<'_>,
    reads: &mut Reads,
) -> Result<(), CompileError> {
    if !node.in_cel {
        return Err(refused(
            at,
            "no rule can see a value whose type is unknown; give it a type",
        ));
    }
    let problem = |field: &str, source: &str, problem: String| CompileError::Rule {
        path: at.field(field).path(),
        rule: source.to_owned(),
        problem,
    };
    let scope = types::Scope::new(node, whole, rule.optional_old);
    let found = scope
        .type_of(rule.program.expression(), reads)
        .map_err(|words| problem("rule", &rule.source, words))?;
    if !matches!(found, Type::Any | Type::Bool) {
        let words = format!("it must evaluate to a bool, and evaluates to {found}");
        return Err(problem("rule", &rule.source, words));
    }
    if let (Some(program), Some(source)) = (&rule.message_program, &rule.message_source) {
        // A message sees the old value plainly, also where the rule sees it as an optional one.
        let found = types::Scope::new(node, whole, false)
            .type_of(program.expression(), reads)
            .map_err(|words| problem("messageExpression", source, words))?;
        if !matches!(found, Type::Any | Type::String) {
            let words = format!("it must evaluate to a string, and evaluates to {found}");
            return Err(problem("messageExpression", source, words));
        }
    }
    if let Some(path) = &rule.written_path {
        rule.field_path = field_path::parse(path, node).ok_or_else(|| {
            refused(
                &at.field("fieldPath"),
                "must be a valid path below the rule",
            )
        })?;
    }
    if !values::is_declared(node, whole) {
        reads.read_all();
    }
    Ok(())
}

fn parse(source: &str, at: &At<'_>) -> Result<Program, CompileError> {
    let problem = |problem: String| CompileError::Rule {
        path: at.path(),
        rule: source.to_owned(),
        problem,
    };
    let environment = environment().map_err(|error| problem(error.to_string()))?;
    environment.compile(source).map_err(|errors| {
        let words = errors
            .errors
            .iter()
            .map(|error| format!("{} at {}:{}", error.msg, error.pos.0, error.pos.1));
        problem(words.collect::<Vec<_>>().join("; "))
    })
}

fn text(
    rule: &Map<String, Value>,
    name: &str,
    at: &At<'_>,
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

fn refused(at: &At<'_>, reason: &str) -> CompileError {
    CompileError::Refused {
        path: at.path(),
        reason: reason.to_owned(),
    }
}
