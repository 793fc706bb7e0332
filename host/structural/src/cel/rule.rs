//! Rules as they stand in a schema, compiled.

use super::environment::environment;
use super::reads::Reads;
use super::types::{self, Type};
use super::{field_path, values};
use crate::error::CompileError;
use crate::node::Node;
use crate::stack_path::StackPath;
use crate::violation::ViolationKind;
use cel::Program;
use serde_json::{Map, Value};
use std::sync::OnceLock;
use trainyard_text::path::Segment;

/// The keyword under which rules stand in a schema.
const KEYWORD: &str = "x-kubernetes-validations";
/// The variable by which a rule sees the value that was there before.
const OLD_SELF: &str = "oldSelf";
const OPTIONAL_OLD: &str = "optionalOldSelf";

/// The rules of one place. They are compiled when a value is first held against them, unless [`Rules::compiled`] did it before.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    written: Vec<Written>,
    /// Whether the value before an update can be found at this place.
    correlated: bool,
    compiled: OnceLock<Result<Compiled, CompileError>>,
}

/// Rules that are ready to be evaluated.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(super) rules: Vec<Rule>,
    /// The fields of `self` that they read.
    pub(super) reads: Reads,
}

/// A rule as it stands in a schema.
#[derive(Debug)]
struct Written {
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
    /// The rule as errors name it: by its message, if it has one.
    pub(super) name: String,
    /// The message of the rule where it does not hold.
    pub(super) message: String,
    pub(super) program: Program,
    pub(super) message_program: Option<Program>,
    pub(super) reason: ViolationKind,
    pub(super) field_path: Vec<Segment>,
    /// Whether `oldSelf` is an optional value, so that the rule holds on creation too.
    pub(super) optional_old: bool,
    /// Whether the rule looks at the value that was there before.
    pub(super) transition: bool,
}

impl Rules {
    /// Reads the rules of one place. `correlated` says whether the value before an update can be found there.
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

    /// Whether none of them says anything of a value that was not there before. A rule that names `oldSelf` is taken as one that
    /// looks at it.
    pub(super) fn are_of_updates(&self) -> bool {
        let of_updates =
            |rule: &Written| rule.optional_old.is_none() && rule.source.contains(OLD_SELF);
        self.written.iter().all(of_updates)
    }

    /// The rules, compiled: parsed, and checked against the types of the node that they stand in.
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

fn read(rule: &Map<String, Value>, at: &StackPath<'_>) -> Result<Written, CompileError> {
    refuse_unknown(rule, at)?;
    let source = text(rule, "rule", at)?;
    let Some(source) = source.filter(|source| !source.is_empty()) else {
        return Err(refused(&at.field("rule"), "rule is not specified"));
    };
    let message = text(rule, "message", at)?;
    check_message(message.as_deref(), &source, &at.field("message"))?;
    Ok(Written {
        source,
        message,
        message_source: text(rule, "messageExpression", at)?,
        reason: reason(text(rule, "reason", at)?.as_deref(), &at.field("reason"))?,
        field_path: text(rule, "fieldPath", at)?,
        optional_old: rule.get(OPTIONAL_OLD).filter(|old| !old.is_null()).cloned(),
    })
}

fn compile(written: &Written, correlated: bool, at: &StackPath<'_>) -> Result<Rule, CompileError> {
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
            "oldSelf cannot be used below the items of a list that is no x-kubernetes-list-type: map: \
             nobody knows which old item was this one",
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

/// Checks a rule against the types of the values that it sees, and notes which fields it reads.
fn check(
    written: &Written,
    mut rule: Rule,
    node: &Node,
    whole: bool,
    at: &StackPath<'_>,
    reads: &mut Reads,
) -> Result<Rule, CompileError> {
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
        .map_err(|words| problem("rule", &written.source, words))?;
    if !matches!(found, Type::Any | Type::Bool) {
        let words = format!("it must evaluate to a bool, and evaluates to {found}");
        return Err(problem("rule", &written.source, words));
    }
    if let (Some(program), Some(source)) = (&rule.message_program, &written.message_source) {
        // A message sees the old value plainly, also where the rule sees it as an optional one.
        let found = types::Scope::new(node, whole, false)
            .type_of(program.expression(), reads)
            .map_err(|words| problem("messageExpression", source, words))?;
        if !matches!(found, Type::Any | Type::String) {
            let words = format!("it must evaluate to a string, and evaluates to {found}");
            return Err(problem("messageExpression", source, words));
        }
    }
    if let Some(path) = &written.field_path {
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
