//! Rules of a schema, compiled.

use std::sync::OnceLock;

use cel::Program;
use serde_json::{Map, Value};
use trainyard_text::path::Segment;

use super::{
    environment::environment,
    field_path,
    reads::Reads,
    types::{self, Type},
    values,
};
use crate::{error::CompileError, node::Node, stack_path::StackPath, violation::ViolationKind};

/// The keyword for rules.
const KEYWORD: &str = "x-kubernetes-validations";
/// The variable for the old value.
const OLD_SELF: &str = "oldSelf";
const OPTIONAL_OLD: &str = "optionalOldSelf";

/// The rules of one node. They are compiled when they are first needed.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    written: Vec<RuleSource>,
    /// Whether the old value of an update can be found.
    correlated: bool,
    compiled: OnceLock<Result<Compiled, CompileError>>,
}

/// Rules that are ready to be evaluated.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(super) rules: Vec<Rule>,
    /// The fields of `self` that the rules read.
    pub(super) reads: Reads,
}

/// A rule as written in a schema.
#[derive(Debug)]
struct RuleSource {
    source: String,
    message: Option<String>,
    message_source: Option<String>,
    reason: ViolationKind,
    field_path: Option<String>,
    optional_old: Option<Value>,
}

/// A rule, ready to be evaluated.
#[derive(Debug)]
pub(crate) struct Rule {
    /// The message of the rule, or else its source, which identifies it in errors.
    pub(super) name: String,
    /// The message of a violation.
    pub(super) message: String,
    pub(super) program: Program,
    pub(super) message_program: Option<Program>,
    pub(super) reason: ViolationKind,
    pub(super) field_path: Vec<Segment>,
    /// Whether `oldSelf` is an optional value, so that the rule is evaluated on creation too.
    pub(super) optional_old: bool,
    /// Whether the rule reads `oldSelf`.
    pub(super) transition: bool,
}

impl Rules {
    /// Parses the rules of a node. `correlated` is set if the old value of an update can be found there.
    pub(crate) fn read(
        rules: Option<&Value>,
        correlated: bool,
        at: &StackPath<'_>,
    ) -> Result<Self, CompileError> {
        let at = at.field(KEYWORD);
        let wrong = |at: &StackPath<'_>, expected| CompileError::WrongValue {
            path: at.path(),
            expected,
        };
        let rules = match rules {
            None => return Ok(Self::default()),
            Some(rules) => rules
                .as_array()
                .ok_or_else(|| wrong(&at, "a list of rules"))?,
        };
        let written = rules.iter().enumerate().map(|(index, rule)| {
            let at = at.index(index);
            let rule = rule.as_object().ok_or_else(|| wrong(&at, "an object"))?;
            read(rule, &at)
        });
        Ok(Self {
            written: written.collect::<Result<_, _>>()?,
            correlated,
            compiled: OnceLock::new(),
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    /// Returns whether all of them are transition rules, which are not evaluated without an old value. A rule counts as one if its
    /// text contains `oldSelf`.
    pub(super) fn are_transition_rules(&self) -> bool {
        let of_updates =
            |rule: &RuleSource| rule.optional_old.is_none() && rule.source.contains(OLD_SELF);
        self.written.iter().all(of_updates)
    }

    /// Returns the rules, parsed and checked against the types of their node.
    pub(crate) fn compiled(
        &self,
        node: &Node,
        whole: bool,
        at: &StackPath<'_>,
    ) -> Result<&Compiled, &CompileError> {
        let compile = || self.compile(node, whole, &at.field(KEYWORD));
        self.compiled.get_or_init(compile).as_ref()
    }

    fn compile(
        &self,
        node: &Node,
        whole: bool,
        at: &StackPath<'_>,
    ) -> Result<Compiled, CompileError> {
        let mut reads = Reads::default();
        let rules = self.written.iter().enumerate().map(|(index, written)| {
            let at = at.index(index);
            let rule = compile(written, self.correlated, &at)?;
            check(written, rule, node, whole, &at, &mut reads)
        });
        let rules = rules.collect::<Result<_, _>>()?;
        Ok(Compiled { rules, reads })
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

fn compile(
    written: &RuleSource,
    correlated: bool,
    at: &StackPath<'_>,
) -> Result<Rule, CompileError> {
    let program = parse(&written.source, &at.field("rule"))?;
    let message_source = written.message_source.as_deref();
    let message_program =
        message_source.map(|source| parse(source, &at.field("messageExpression")));
    let transition = program.references().has_variable(OLD_SELF);
    let optional_old = written.optional_old.as_ref();
    let optional_old = optional_old_of(optional_old, transition, &at.field(OPTIONAL_OLD))?;
    if transition && !correlated {
        return Err(refused(
            &at.field("rule"),
            "oldSelf cannot be used in the items of a list without x-kubernetes-list-type: map, because the old item \
             cannot be found",
        ));
    }
    let failed = || format!("failed rule: {}", written.source);
    Ok(Rule {
        name: written.message.as_ref().unwrap_or(&written.source).clone(),
        message: written.message.clone().unwrap_or_else(failed),
        program,
        message_program: message_program.transpose()?,
        reason: written.reason,
        field_path: Vec::new(),
        optional_old,
        transition,
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

fn optional_old_of(
    written: Option<&Value>,
    transition: bool,
    at: &StackPath<'_>,
) -> Result<bool, CompileError> {
    match written {
        None => Ok(false),
        Some(Value::Bool(true)) if !transition => {
            Err(refused(at, "may not be set if oldSelf is not used in rule"))
        }
        Some(Value::Bool(optional)) => Ok(*optional),
        Some(_) => Err(refused(at, "must be true or false")),
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

/// Checks the types in a rule, and adds the fields that it reads.
fn check(
    written: &RuleSource,
    mut rule: Rule,
    node: &Node,
    whole: bool,
    at: &StackPath<'_>,
    reads: &mut Reads,
) -> Result<Rule, CompileError> {
    if !node.in_cel {
        return Err(refused(
            at,
            "rules cannot read a value without a type; add a type",
        ));
    }
    let problem = |field: &str, source: &str, problem: String| CompileError::Rule {
        path: at.field(field).path(),
        rule: source.to_owned(),
        problem,
    };
    let scope = types::Variables::new(node, whole, rule.optional_old);
    let found = scope
        .type_of(rule.program.expression(), reads)
        .map_err(|words| problem("rule", &written.source, words))?;
    if !matches!(found, Type::Any | Type::Bool) {
        let words = format!("must evaluate to bool, but evaluates to {found}");
        return Err(problem("rule", &written.source, words));
    }
    if let (Some(program), Some(source)) = (&rule.message_program, &written.message_source) {
        // In a messageExpression, oldSelf is never optional.
        let found = types::Variables::new(node, whole, false)
            .type_of(program.expression(), reads)
            .map_err(|words| problem("messageExpression", source, words))?;
        if !matches!(found, Type::Any | Type::String) {
            let words = format!("must evaluate to string, but evaluates to {found}");
            return Err(problem("messageExpression", source, words));
        }
    }
    if let Some(path) = &written.field_path {
        rule.field_path = field_path::parse(path, node).ok_or_else(|| {
            refused(
                &at.field("fieldPath"),
                "must be the path of a field below the rule",
            )
        })?;
    }
    if !values::is_declared(node, whole) {
        reads.read_all();
    }
    Ok(rule)
}

fn parse(source: &str, at: &StackPath<'_>) -> Result<Program, CompileError> {
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

fn refused(at: &StackPath<'_>, reason: &str) -> CompileError {
    CompileError::Refused {
        path: at.path(),
        reason: reason.to_owned(),
    }
}
