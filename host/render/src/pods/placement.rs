//! The fields of a pod that select its node.

use serde_json::Value;
use trainyard_api::StackPath;

use super::{PodProblems, names};
use crate::json::{get, get_at, items, object, text};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Checks where a pod may run.
pub(super) fn check(problems: &mut PodProblems, at: &StackPath<'_>, pod: &Value) {
    let selector = object(pod, "nodeSelector");
    names::labels(problems, &at.field("nodeSelector"), selector);
    tolerations(problems, at, pod);
    spread(problems, at, pod);
    if let Some(affinity) = get_at(pod, &["affinity", "nodeAffinity"]) {
        let at = at.field("affinity");
        node_affinity(problems, &at.field("nodeAffinity"), affinity);
    }
}

fn tolerations(problems: &mut PodProblems, at: &StackPath<'_>, pod: &Value) {
    let at = at.field("tolerations");
    for (position, toleration) in items(pod, "tolerations").iter().enumerate() {
        let at = at.index(position);
        let member = |name| text(toleration, name);
        let (key, operator) = (member("key"), member("operator"));
        if !key.is_empty() {
            names::key(problems, &at.field("key"), key);
        } else if operator != "Exists" {
            problems.add(
                &at.field("operator"),
                "must be `Exists` if `key` is empty; set one of them",
            );
        }
        if operator == "Exists" && !member("value").is_empty() {
            problems.add(
                &at.field("operator"),
                "is `Exists`, so `value` must be empty; remove `value`, or use the operator `Equal`",
            );
        } else if matches!(operator, "" | "Equal") {
            names::value(problems, &at.field("operator"), member("value"));
        }
        // Others exist behind a feature gate.
        problems.word(
            &at,
            toleration,
            "operator",
            &["Exists", "Equal", "Gt", "Lt"],
        );
        problems.word(&at, toleration, "effect", &EFFECTS);
        let seconds = get(toleration, "tolerationSeconds");
        if seconds.is_some_and(Value::is_number) && member("effect") != "NoExecute" {
            problems.add(
                &at.field("effect"),
                "must be `NoExecute` if `tolerationSeconds` is set; remove `tolerationSeconds`",
            );
        }
    }
}

fn spread(problems: &mut PodProblems, at: &StackPath<'_>, pod: &Value) {
    let at = at.field("topologySpreadConstraints");
    for (position, constraint) in items(pod, "topologySpreadConstraints").iter().enumerate() {
        let at = at.index(position);
        problems.range(&at, constraint, "maxSkew", (1, i64::from(i32::MAX)));
        let actions = ["DoNotSchedule", "ScheduleAnyway"];
        problems.word(&at, constraint, "whenUnsatisfiable", &actions);
        let key = text(constraint, "topologyKey");
        if !key.is_empty() {
            names::key(problems, &at.field("topologyKey"), key);
        }
    }
}

fn node_affinity(problems: &mut PodProblems, at: &StackPath<'_>, affinity: &Value) {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    if let Some(selector) = affinity.get(required) {
        let at = at.field(required);
        let at = at.field("nodeSelectorTerms");
        let terms = items(selector, "nodeSelectorTerms");
        if terms.is_empty() {
            problems.add(&at, "is empty, so no node matches; add a term");
        }
        for (position, term) in terms.iter().enumerate() {
            expressions(problems, &at.index(position), term);
        }
    }
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let at = at.field(preferred);
    for (position, term) in items(affinity, preferred).iter().enumerate() {
        let at = at.index(position);
        problems.range(&at, term, "weight", (1, 100));
        if let Some(preference) = get(term, "preference") {
            expressions(problems, &at.field("preference"), preference);
        }
    }
}

/// Checks the expressions of a term of node affinity.
fn expressions(problems: &mut PodProblems, at: &StackPath<'_>, term: &Value) {
    let at = at.field("matchExpressions");
    for (position, expression) in items(term, "matchExpressions").iter().enumerate() {
        let at = at.index(position);
        let operator = text(expression, "operator");
        let values = items(expression, "values").len();
        let wanted = match operator {
            "In" | "NotIn" if values == 0 => "at least one value",
            "Exists" | "DoesNotExist" if values > 0 => "no values",
            "Gt" | "Lt" if values != 1 => "one value",
            _ => "",
        };
        if !wanted.is_empty() {
            problems.add(
                &at.field("values"),
                format!("has {values} values, but the operator `{operator}` needs {wanted}"),
            );
        }
        let operators = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
        problems.word(&at, expression, "operator", &operators);
        names::key(problems, &at.field("key"), text(expression, "key"));
    }
}
