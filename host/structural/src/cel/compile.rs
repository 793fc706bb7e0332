//! Compiles the rules of a node: parses them, and checks them against the types of the schema.

use cel::Program;
use serde_json::Value;

use trainyard_text::StackPath;

use super::{
    environment::environment,
    field_path,
    types::{self, Type},
    values,
};
use crate::{
    error::CompileError,
    node::Node,
    rules::{Compiled, KEYWORD, OLD_SELF, OPTIONAL_OLD, Reads, Rule, RuleSource, refused},
};
/// Returns the rules of a node, parsed and checked against its types. They are compiled when they are first needed.
pub(crate) fn compiled<'n>(
    node: &'n Node,
    whole: bool,
    at: &StackPath<'_>,
) -> Result<&'n Compiled, &'n CompileError> {
    let compile = || compile_all(node, whole, &at.field(KEYWORD));
    node.rules.compiled.get_or_init(compile).as_ref()
}

fn compile_all(node: &Node, whole: bool, at: &StackPath<'_>) -> Result<Compiled, CompileError> {
    let mut reads = Reads::default();
    let rules = node.rules.written.iter().enumerate();
    let rules = rules.map(|(index, written)| {
        let at = at.index(index);
        let rule = compile(written, node.rules.correlated, &at)?;
        check(written, rule, node, whole, &at, &mut reads)
    });
    let rules = rules.collect::<Result<_, _>>()?;
    Ok(Compiled { rules, reads })
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
