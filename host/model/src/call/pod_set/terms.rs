//! The JSON of tolerations and affinity terms. The rules are those of the API server for pods. Invalid JSON, and members that the API
//! server would drop, end the call.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::{
    names::{is_dns_label, is_label_value, is_qualified_name},
    text::{clean, join},
};

/// A problem, with its place in the JSON.
type Problem = String;

/// What a requirement is on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequirementKind {
    Pods,
    Nodes,
    /// Fields of nodes. Only `metadata.name` is supported.
    NodeFields,
}

/// Checks a toleration.
pub(super) fn toleration(json: &Value) -> Result<(), Problem> {
    let members = ["key", "operator", "value", "effect", "tolerationSeconds"];
    let toleration = JsonItem::root(json).object("a toleration", &members)?;
    let text = |name| toleration.text(name);
    let (key, operator, value, effect) = (
        text("key")?,
        text("operator")?,
        text("value")?,
        text("effect")?,
    );
    if !key.is_empty() && !is_qualified_name(key) {
        return toleration.wrong("the key of a toleration must be a valid label key");
    }
    if key.is_empty() && operator != "Exists" {
        return toleration.wrong("a toleration without a key must have the operator `Exists`");
    }
    match operator {
        "" | "Equal" if is_label_value(value) => {}
        "" | "Equal" => {
            return toleration.wrong("the value of a toleration must be a valid label value");
        }
        "Exists" if value.is_empty() => {}
        "Exists" => {
            return toleration
                .wrong("a toleration with the operator `Exists` must not have a value");
        }
        "Lt" | "Gt" if is_integer(value) => {}
        "Lt" | "Gt" => {
            return toleration.wrong(
                "a toleration with the operator `Lt` or `Gt` must have an integer as its value",
            );
        }
        _ => {
            return toleration
                .wrong("the operator of a toleration must be `Equal`, `Exists`, `Lt` or `Gt`");
        }
    }
    if !["", "NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect) {
        return toleration.wrong(
            "the effect of a toleration must be `NoSchedule`, `PreferNoSchedule` or `NoExecute`",
        );
    }
    let has_seconds = toleration.integer("tolerationSeconds")?.is_some();
    if has_seconds && effect != "NoExecute" {
        return toleration.wrong("`tolerationSeconds` needs the effect `NoExecute`");
    }
    Ok(())
}

/// Checks a required term of a node affinity.
pub(super) fn required_of_nodes(json: &Value) -> Result<(), Problem> {
    match of_nodes(&JsonItem::root(json))? {
        0 => Err(
            "a required term of a node affinity needs `matchExpressions` or `matchFields`; without them it matches no node"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

/// Checks a preferred term of a node affinity.
pub(super) fn preferred_of_nodes(json: &Value) -> Result<(), Problem> {
    of_nodes(&preferred(json, "a node affinity", "preference")?).map(drop)
}

/// Checks a required term of a pod affinity or anti-affinity.
pub(super) fn required_of_pods(json: &Value) -> Result<(), Problem> {
    of_pods(&JsonItem::root(json))
}

/// Checks a preferred term of a pod affinity or anti-affinity.
pub(super) fn preferred_of_pods(json: &Value) -> Result<(), Problem> {
    of_pods(&preferred(json, "a pod affinity", "podAffinityTerm")?)
}

/// The term of a preferred term, without its weight.
fn preferred<'v>(json: &'v Value, of: &str, inner: &'static str) -> Result<JsonItem<'v>, Problem> {
    let what = format!("a preferred term of {of}");
    let term = JsonItem::root(json).object(&what, &["weight", inner])?;
    let weight = term.integer("weight")?;
    if !weight.is_some_and(|weight| (1..=100).contains(&weight)) {
        return term.wrong("a preferred term needs `weight`, from 1 to 100");
    }
    match term.get(inner) {
        Some(inner) => Ok(inner),
        None => term.wrong(&format!("{what} needs `{inner}`")),
    }
}

/// Checks a node selector term, and returns the number of its requirements.
fn of_nodes(term: &JsonItem<'_>) -> Result<usize, Problem> {
    let term = term.object(
        "a term of a node affinity",
        &["matchExpressions", "matchFields"],
    )?;
    let mut count = 0;
    for (list, of) in [
        ("matchExpressions", RequirementKind::Nodes),
        ("matchFields", RequirementKind::NodeFields),
    ] {
        for item in term.list(list)? {
            requirement(&item, of)?;
            count += 1;
        }
    }
    Ok(count)
}

fn of_pods(term: &JsonItem<'_>) -> Result<(), Problem> {
    let members = [
        "labelSelector",
        "topologyKey",
        "namespaces",
        "namespaceSelector",
        "matchLabelKeys",
        "mismatchLabelKeys",
    ];
    let term = term.object("a term of a pod affinity", &members)?;
    match term.text("topologyKey")? {
        "" => {
            return term
                .wrong("a term of a pod affinity needs `topologyKey`, a text that is not empty");
        }
        key if !is_qualified_name(key) => {
            return term.wrong("the `topologyKey` must be a valid label key");
        }
        _ => {}
    }
    let mut selected = BTreeSet::new();
    for selector in ["labelSelector", "namespaceSelector"] {
        let keys = term.get(selector).map(|item| keys_of_selector(&item));
        if let (Some(keys), "labelSelector") = (keys.transpose()?, selector) {
            selected = keys;
        }
    }
    if !term.texts("namespaces")?.into_iter().all(is_dns_label) {
        return term.wrong("`namespaces` contains an invalid namespace name");
    }
    let (matched, mismatched) = (
        term.texts("matchLabelKeys")?,
        term.texts("mismatchLabelKeys")?,
    );
    let keys = || matched.iter().chain(&mismatched);
    if keys().next().is_some() && term.get("labelSelector").is_none() {
        return term.wrong("`matchLabelKeys` and `mismatchLabelKeys` need `labelSelector`");
    }
    if !keys().all(|key| is_qualified_name(key)) {
        return term.wrong("`matchLabelKeys` and `mismatchLabelKeys` must contain label keys");
    }
    if let Some(key) = matched
        .iter()
        .find(|key| mismatched.contains(key) || selected.contains(**key))
    {
        return term.wrong(&format!(
            "`{key}` of `matchLabelKeys` is also in `mismatchLabelKeys` or `labelSelector`"
        ));
    }
    Ok(())
}

/// Checks a label selector, and collects its keys.
fn keys_of_selector<'v>(selector: &JsonItem<'v>) -> Result<BTreeSet<&'v str>, Problem> {
    let selector = selector.object("a label selector", &["matchLabels", "matchExpressions"])?;
    let mut keys = BTreeSet::new();
    if let Some(labels) = selector.get("matchLabels") {
        let Value::Object(members) = labels.value else {
            return labels.wrong("is not an object");
        };
        for (key, value) in members {
            if !is_qualified_name(key) || !value.as_str().is_some_and(is_label_value) {
                return labels.wrong(&format!(
                    "`{key}` is not a valid label key, or its value is not valid"
                ));
            }
            keys.insert(&**key);
        }
    }
    for item in selector.list("matchExpressions")? {
        keys.insert(requirement(&item, RequirementKind::Pods)?);
    }
    Ok(keys)
}

/// Checks a requirement, and returns its key.
fn requirement<'v>(item: &JsonItem<'v>, of: RequirementKind) -> Result<&'v str, Problem> {
    let item = item.object("a requirement", &["key", "operator", "values"])?;
    let (key, operator) = (item.text("key")?, item.text("operator")?);
    let values = item.texts("values")?;
    let known: &[&str] = match of {
        RequirementKind::Pods => &["In", "NotIn", "Exists", "DoesNotExist"],
        RequirementKind::Nodes => &["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"],
        RequirementKind::NodeFields => &["In", "NotIn"],
    };
    if !known.contains(&operator) {
        return item.wrong(&format!("the operator must be one of {}", known.join(", ")));
    }
    if of == RequirementKind::NodeFields {
        return match (key, values.as_slice()) {
            ("metadata.name", [_]) => Ok(key),
            _ => item.wrong("`matchFields` supports only `metadata.name`, with one value"),
        };
    }
    if !is_qualified_name(key) {
        return item.wrong("the key is not a valid label key");
    }
    if !values.iter().all(|value| is_label_value(value)) {
        return item.wrong("one of the values is not a valid label value");
    }
    match (operator, values.len()) {
        ("In" | "NotIn", 0) => item.wrong("the operators In and NotIn need values"),
        ("Exists" | "DoesNotExist", 1..) => {
            item.wrong("the operators Exists and DoesNotExist take no values")
        }
        ("Gt" | "Lt", 0 | 2..) => item.wrong("the operators Gt and Lt need one value"),
        _ => Ok(key),
    }
}

/// Whether the text is a 64-bit integer in the form that Kubernetes accepts.
fn is_integer(text: &str) -> bool {
    text.parse::<i64>()
        .is_ok_and(|value| value.to_string() == text)
}

/// A value in the JSON, with its place.
struct JsonItem<'v> {
    value: &'v Value,
    path: String,
}

impl<'v> JsonItem<'v> {
    fn root(value: &'v Value) -> Self {
        let path = String::new();
        Self { value, path }
    }

    /// Reads an object that has only these members.
    fn object(&self, what: &str, known: &[&str]) -> Result<JsonObject<'v>, Problem> {
        let Value::Object(members) = self.value else {
            return self.wrong("is not an object");
        };
        if let Some(unknown) = members.keys().find(|name| !known.contains(&&***name)) {
            return self.wrong(&format!(
                "unknown field `{unknown}` in {what}; valid fields are {}",
                join(known, ", ")
            ));
        }
        let path = self.path.clone();
        Ok(JsonObject { members, path })
    }

    fn text(&self) -> Result<&'v str, Problem> {
        self.value
            .as_str()
            .map_or_else(|| self.wrong("is not a string"), Ok)
    }

    fn wrong<T>(&self, problem: &str) -> Result<T, Problem> {
        wrong(&self.path, problem)
    }
}

/// An object in the JSON, with its place.
struct JsonObject<'v> {
    members: &'v Map<String, Value>,
    path: String,
}

impl<'v> JsonObject<'v> {
    /// A member. Null counts as absent.
    fn get(&self, name: &str) -> Option<JsonItem<'v>> {
        let value = self.members.get(name).filter(|value| !value.is_null())?;
        let path = match &*self.path {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        Some(JsonItem { value, path })
    }

    /// A text. The empty text counts as absent.
    fn text(&self, name: &str) -> Result<&'v str, Problem> {
        self.get(name).map_or(Ok(""), |item| item.text())
    }

    fn integer(&self, name: &str) -> Result<Option<i64>, Problem> {
        let Some(item) = self.get(name) else {
            return Ok(None);
        };
        match item.value.as_i64() {
            None => item.wrong("is not an integer"),
            some => Ok(some),
        }
    }

    fn list(&self, name: &str) -> Result<Vec<JsonItem<'v>>, Problem> {
        let Some(list) = self.get(name) else {
            return Ok(Vec::new());
        };
        let Value::Array(items) = list.value else {
            return list.wrong("is not a list");
        };
        let items = items.iter().enumerate().map(|(at, value)| JsonItem {
            value,
            path: format!("{}[{at}]", list.path),
        });
        Ok(items.collect())
    }

    fn texts(&self, name: &str) -> Result<Vec<&'v str>, Problem> {
        self.list(name)?.iter().map(JsonItem::text).collect()
    }

    fn wrong<T>(&self, problem: &str) -> Result<T, Problem> {
        wrong(&self.path, problem)
    }
}

fn wrong<T>(path: &str, problem: &str) -> Result<T, Problem> {
    let problem = clean(problem);
    Err(match path {
        "" => problem.to_string(),
        path => format!("{path}: {problem}"),
    })
}
