//! The fields of a pod that select its node.

use serde_json::Value;
use trainyard_api::StackPath;

use super::{
    FieldProblems, names,
    rules::{ANY, INT_MAX, Rule, Shape},
};
use crate::json::{get, items, text};

const WEIGHT: Rule = Rule::Range(1, 100);

/// A toleration.
pub(super) static TOLERATION: Shape = Shape {
    members: &[
        (
            "effect",
            &[Rule::Word(&["NoSchedule", "PreferNoSchedule", "NoExecute"])],
        ),
        ("key", &[Rule::Text(names::key)]),
        // Others exist behind a feature gate.
        ("operator", &[Rule::Word(&["Exists", "Equal", "Gt", "Lt"])]),
    ],
    whole: Some(toleration),
    ..ANY
};

/// A constraint of how pods are spread over nodes.
pub(super) static SPREAD: Shape = Shape {
    members: &[
        ("labelSelector", &[Rule::Object(&SELECTOR)]),
        ("maxSkew", &[Rule::Range(1, INT_MAX)]),
        ("minDomains", &[Rule::Range(1, INT_MAX)]),
        ("nodeAffinityPolicy", &[Rule::Word(&["Honor", "Ignore"])]),
        ("nodeTaintsPolicy", &[Rule::Word(&["Honor", "Ignore"])]),
        ("topologyKey", &[Rule::Text(names::key)]),
        (
            "whenUnsatisfiable",
            &[Rule::Word(&["DoNotSchedule", "ScheduleAnyway"])],
        ),
    ],
    needs: &["topologyKey"],
    ..ANY
};

/// The affinity of a pod.
pub(super) static AFFINITY: Shape = Shape {
    members: &[
        ("nodeAffinity", &[Rule::Object(&NODE_AFFINITY)]),
        ("podAffinity", &[Rule::Object(&POD_AFFINITY)]),
        ("podAntiAffinity", &[Rule::Object(&POD_AFFINITY)]),
    ],
    ..ANY
};

static NODE_AFFINITY: Shape = Shape {
    members: &[
        (
            "preferredDuringSchedulingIgnoredDuringExecution",
            &[Rule::Items(&PREFERRED_NODES)],
        ),
        (
            "requiredDuringSchedulingIgnoredDuringExecution",
            &[Rule::Object(&REQUIRED_NODES)],
        ),
    ],
    ..ANY
};

static PREFERRED_NODES: Shape = Shape {
    members: &[
        ("preference", &[Rule::Object(&NODES)]),
        ("weight", &[WEIGHT]),
    ],
    ..ANY
};

static REQUIRED_NODES: Shape = Shape {
    members: &[("nodeSelectorTerms", &[Rule::Items(&NODES)])],
    whole: Some(|problems, at, required| {
        if items(required, "nodeSelectorTerms").is_empty() {
            let at = at.field("nodeSelectorTerms");
            problems.add(&at, "is empty, so no node matches; add a term");
        }
    }),
    ..ANY
};

static NODES: Shape = Shape {
    members: &[
        ("matchExpressions", &[Rule::Items(&NODE_EXPRESSION)]),
        ("matchFields", &[Rule::Items(&NODE_FIELD)]),
    ],
    ..ANY
};

static NODE_FIELD: Shape = Shape {
    members: &[
        ("key", &[Rule::NonEmptyWord(&["metadata.name"])]),
        ("operator", &[Rule::NonEmptyWord(&["In", "NotIn"])]),
    ],
    needs: &["key", "operator"],
    whole: Some(|problems, at, field| {
        let values = items(field, "values").len();
        if values != 1 && matches!(text(field, "operator"), "In" | "NotIn") {
            let message = format!("has {values} values; a field requires exactly one");
            problems.add(&at.field("values"), message);
        }
    }),
};

static NODE_EXPRESSION: Shape = Shape {
    members: &[
        ("key", &[Rule::Text(names::key)]),
        (
            "operator",
            &[Rule::Word(&[
                "In",
                "NotIn",
                "Exists",
                "DoesNotExist",
                "Gt",
                "Lt",
            ])],
        ),
    ],
    needs: &["key"],
    whole: Some(expression),
};

static POD_AFFINITY: Shape = Shape {
    members: &[
        (
            "preferredDuringSchedulingIgnoredDuringExecution",
            &[Rule::Items(&PREFERRED_PODS)],
        ),
        (
            "requiredDuringSchedulingIgnoredDuringExecution",
            &[Rule::Items(&PODS)],
        ),
    ],
    ..ANY
};

static PREFERRED_PODS: Shape = Shape {
    members: &[
        ("podAffinityTerm", &[Rule::Object(&PODS)]),
        ("weight", &[WEIGHT]),
    ],
    ..ANY
};

static PODS: Shape = Shape {
    members: &[
        ("labelSelector", &[Rule::Object(&SELECTOR)]),
        ("namespaceSelector", &[Rule::Object(&SELECTOR)]),
        ("topologyKey", &[Rule::Text(names::key)]),
    ],
    needs: &["topologyKey"],
    ..ANY
};

static SELECTOR: Shape = Shape {
    members: &[
        ("matchExpressions", &[Rule::Items(&POD_EXPRESSION)]),
        ("matchLabels", &[Rule::Check(names::labels)]),
    ],
    ..ANY
};

static POD_EXPRESSION: Shape = Shape {
    members: &[
        ("key", &[Rule::Text(names::key)]),
        (
            "operator",
            &[Rule::Word(&["In", "NotIn", "Exists", "DoesNotExist"])],
        ),
    ],
    needs: &["key"],
    whole: Some(expression),
};

fn toleration(problems: &mut FieldProblems, at: &StackPath<'_>, toleration: &Value) {
    let member = |name| text(toleration, name);
    let operator = member("operator");
    if member("key").is_empty() && operator != "Exists" {
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
    let seconds = get(toleration, "tolerationSeconds");
    if seconds.is_some_and(Value::is_number) && member("effect") != "NoExecute" {
        problems.add(
            &at.field("effect"),
            "must be `NoExecute` if `tolerationSeconds` is set; remove `tolerationSeconds`",
        );
    }
}

/// Checks the number of values of an expression.
fn expression(problems: &mut FieldProblems, at: &StackPath<'_>, expression: &Value) {
    let operator = text(expression, "operator");
    let values = items(expression, "values").len();
    let wanted = match operator {
        "In" | "NotIn" if values == 0 => "at least one value",
        "Exists" | "DoesNotExist" if values > 0 => "no values",
        "Gt" | "Lt" if values != 1 => "one value",
        _ => return,
    };
    problems.add(
        &at.field("values"),
        format!("has {values} values, but the operator `{operator}` needs {wanted}"),
    );
}
