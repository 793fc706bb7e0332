//! The fields of a pod that select its node.

use serde_json::Value;

use super::{Faults, list, names, object, text};
use crate::trail::Trail;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Checks where a pod may run.
pub(super) fn check(faults: &mut Faults, at: &Trail<'_>, pod: &Value) {
    let selector = object(pod, "nodeSelector");
    names::labels(faults, &at.member("nodeSelector"), selector);
    tolerations(faults, at, pod);
    spread(faults, at, pod);
    if let Some(affinity) = pod.pointer("/affinity/nodeAffinity") {
        let at = at.member("affinity");
        node_affinity(faults, &at.member("nodeAffinity"), affinity);
    }
}

fn tolerations(faults: &mut Faults, at: &Trail<'_>, pod: &Value) {
    let at = at.member("tolerations");
    for (position, toleration) in list(pod, "tolerations").iter().enumerate() {
        let at = at.item(position);
        let member = |name| text(toleration, name);
        let (key, operator) = (member("key"), member("operator"));
        if !key.is_empty() {
            names::key(faults, &at.member("key"), key);
        } else if operator != "Exists" {
            faults.add(
                &at.member("operator"),
                "must be `Exists` if `key` is empty; set one of them",
            );
        }
        if operator == "Exists" && !member("value").is_empty() {
            faults.add(
                &at.member("operator"),
                "is `Exists`, so `value` must be empty; remove `value`, or use the operator `Equal`",
            );
        } else if matches!(operator, "" | "Equal") {
            names::value(faults, &at.member("operator"), member("value"));
        }
        // Others exist behind a feature gate.
        faults.word(
            &at,
            toleration,
            "operator",
            &["Exists", "Equal", "Gt", "Lt"],
        );
        faults.word(&at, toleration, "effect", &EFFECTS);
        let seconds = toleration.get("tolerationSeconds");
        if seconds.is_some_and(Value::is_number) && member("effect") != "NoExecute" {
            faults.add(
                &at.member("effect"),
                "must be `NoExecute` if `tolerationSeconds` is set; remove `tolerationSeconds`",
            );
        }
    }
}

fn spread(faults: &mut Faults, at: &Trail<'_>, pod: &Value) {
    let at = at.member("topologySpreadConstraints");
    for (position, constraint) in list(pod, "topologySpreadConstraints").iter().enumerate() {
        let at = at.item(position);
        faults.range(&at, constraint, "maxSkew", (1, i64::from(i32::MAX)));
        let actions = ["DoNotSchedule", "ScheduleAnyway"];
        faults.word(&at, constraint, "whenUnsatisfiable", &actions);
        let key = text(constraint, "topologyKey");
        if !key.is_empty() {
            names::key(faults, &at.member("topologyKey"), key);
        }
    }
}

fn node_affinity(faults: &mut Faults, at: &Trail<'_>, affinity: &Value) {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    if let Some(selector) = affinity.get(required) {
        let at = at.member(required);
        let at = at.member("nodeSelectorTerms");
        let terms = list(selector, "nodeSelectorTerms");
        if terms.is_empty() {
            faults.add(&at, "is empty, so no node matches; add a term");
        }
        for (position, term) in terms.iter().enumerate() {
            expressions(faults, &at.item(position), term);
        }
    }
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let at = at.member(preferred);
    for (position, term) in list(affinity, preferred).iter().enumerate() {
        let at = at.item(position);
        faults.range(&at, term, "weight", (1, 100));
        if let Some(preference) = term.get("preference") {
            expressions(faults, &at.member("preference"), preference);
        }
    }
}

/// Checks the expressions of a term of node affinity.
fn expressions(faults: &mut Faults, at: &Trail<'_>, term: &Value) {
    let at = at.member("matchExpressions");
    for (position, expression) in list(term, "matchExpressions").iter().enumerate() {
        let at = at.item(position);
        let operator = text(expression, "operator");
        let values = list(expression, "values").len();
        let wanted = match operator {
            "In" | "NotIn" if values == 0 => "at least one value",
            "Exists" | "DoesNotExist" if values > 0 => "no values",
            "Gt" | "Lt" if values != 1 => "one value",
            _ => "",
        };
        if !wanted.is_empty() {
            faults.add(
                &at.member("values"),
                format!("has {values} values, but the operator `{operator}` needs {wanted}"),
            );
        }
        let operators = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
        faults.word(&at, expression, "operator", &operators);
        names::key(faults, &at.member("key"), text(expression, "key"));
    }
}
