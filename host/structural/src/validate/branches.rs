//! `anyOf`, `oneOf`, `allOf` and `not`.

use serde_json::Value;

use trainyard_text::StackPath;

use super::{Report, check as check_value};
use crate::{
    go,
    node::{Checks, Node},
    violation::Violation,
};

/// Checks a value against the branches of its schema.
pub(super) fn check(checks: &Checks, value: &Value, at: &StackPath<'_>, report: &mut Report) {
    if !checks.any_of.is_empty() {
        any_of(&checks.any_of, value, at, report);
    }
    if !checks.one_of.is_empty() {
        one_of(&checks.one_of, value, at, report);
    }
    if !checks.all_of.is_empty() {
        all_of(&checks.all_of, value, at, report);
    }
    if let Some(node) = &checks.not
        && tried(node, value, at).violations.is_empty()
    {
        report
            .violations
            .push(refused(at, "must not validate the schema (not)"));
    }
}

fn any_of(nodes: &[Node], value: &Value, at: &StackPath<'_>, report: &mut Report) {
    let mut best: Option<Report> = None;
    for node in nodes {
        let tried = tried(node, value, at);
        if tried.violations.is_empty() {
            report.matches += tried.matches;
            return;
        }
        keep_better(&mut best, tried);
    }
    report
        .violations
        .push(refused(at, "must validate at least one schema (anyOf)"));
    if let Some(best) = best {
        report.merge(best);
    }
}

fn one_of(nodes: &[Node], value: &Value, at: &StackPath<'_>, report: &mut Report) {
    let mut best: Option<Report> = None;
    let mut held = Vec::new();
    for node in nodes {
        let tried = tried(node, value, at);
        if tried.violations.is_empty() {
            held.push(tried.matches);
        } else {
            keep_better(&mut best, tried);
        }
    }
    let found = match held.as_slice() {
        [matches] => {
            report.matches += matches;
            return;
        }
        [] => "Found none valid".to_owned(),
        several => format!("Found {} valid alternatives", several.len()),
    };
    let detail = format!("must validate one and only one schema (oneOf). {found}");
    report.violations.push(refused(at, &detail));
    if let Some(best) = best.filter(|_| held.is_empty()) {
        report.merge(best);
    }
}

fn all_of(nodes: &[Node], value: &Value, at: &StackPath<'_>, report: &mut Report) {
    let mut held = 0;
    for node in nodes {
        let tried = tried(node, value, at);
        if tried.violations.is_empty() {
            held += 1;
        }
        report.merge(tried);
    }
    if held < nodes.len() {
        let none = if held == 0 { ". None validated" } else { "" };
        let detail = format!("must validate all the schemas (allOf){none}");
        report.violations.push(refused(at, &detail));
    }
}

fn tried(node: &Node, value: &Value, at: &StackPath<'_>) -> Report {
    let mut report = Report::default();
    check_value(node, value, at, &mut report);
    report
}

fn keep_better(best: &mut Option<Report>, tried: Report) {
    if best
        .as_ref()
        .is_none_or(|best| tried.matches > best.matches)
    {
        *best = Some(tried);
    }
}

fn refused(at: &StackPath<'_>, problem: &str) -> Violation {
    Violation::pathless(
        at,
        format!("{} {problem}", go::quoted(&at.path().to_string())),
    )
}
