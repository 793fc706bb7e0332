//! Compares two schemas of a plugin's configuration: which configurations that the old one accepts does the new one refuse?

use std::{collections::BTreeSet, sync::LazyLock};

use serde_json::{Map, Value, json};
use trainyard_model::{
    schema::{ANNOTATIONS, Schema},
    text::clean,
};

use super::{Breaks, Change, ChangeKind};

/// The most pairs of schemas that are compared. References can make a short schema a large one.
const MAX_PAIRS: usize = 4096;

/// The schema that accepts everything.
static ANYTHING: Value = Value::Bool(true);

/// The same schema as an object.
static NO_KEYWORDS: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// Returns the changes from one schema to another, which is that of `what`.
pub(super) fn changes(
    what: &str,
    breaks: Breaks,
    old: Option<&Schema>,
    new: Option<&Schema>,
) -> Vec<Change> {
    let (old, new) = match (old, new) {
        (None, None) => return Vec::new(),
        (None, Some(new)) => {
            let is_refused = new.complete(&mut json!({})).is_err();
            let breaks = is_refused.then_some(breaks);
            return vec![Change::one_sided(true, what.to_owned(), breaks)];
        }
        (Some(_), None) => return vec![Change::one_sided(false, what.to_owned(), Some(breaks))],
        (Some(old), Some(new)) => (old.source(), new.source()),
    };
    let mut comparison = Comparison {
        roots: (old, new),
        what,
        breaks,
        pairs: 0,
        seen: BTreeSet::new(),
        changes: Vec::new(),
    };
    comparison.compare(old, new, "");
    comparison.changes
}

struct Comparison<'a> {
    roots: (&'a Value, &'a Value),
    what: &'a str,
    breaks: Breaks,
    pairs: usize,
    /// The pairs that were compared, by their addresses. One that several references lead to is reported once.
    seen: BTreeSet<[usize; 2]>,
    changes: Vec<Change>,
}

impl<'a> Comparison<'a> {
    fn compare(&mut self, old: &'a Value, new: &'a Value, path: &str) {
        self.pairs += 1;
        match self.pairs {
            0..=MAX_PAIRS => {}
            _ => {
                if self.pairs == MAX_PAIRS + 1 {
                    let text = format!("{}: too large to be compared as a whole", self.what);
                    let breaks = Some(self.breaks);
                    self.changes
                        .push(Change::new(ChangeKind::Changed, text, breaks));
                }
                return;
            }
        }
        if beside_reference(old) != beside_reference(new) {
            // What stands beside a reference applies together with its target.
            self.add_if_different("schema", Some(old), Some(new), path);
        }
        let (old, new) = (resolved(old, self.roots.0), resolved(new, self.roots.1));
        let addresses = [old, new].map(|schema| std::ptr::from_ref(schema).addr());
        if !self.seen.insert(addresses) {
            return;
        }
        let (old, new) = match (old, new) {
            (Value::Object(old), Value::Object(new)) => (old, new),
            (Value::Object(old), Value::Bool(true)) => (old, &*NO_KEYWORDS),
            (Value::Bool(true), Value::Object(new)) => (&*NO_KEYWORDS, new),
            _ => return self.add_if_different("schema", Some(old), Some(new), path),
        };
        self.properties(old, new, path);
        self.below("items", old, new, &format!("{path}[]"));
        self.below("additionalProperties", old, new, &joined(path, "*"));
        let keys: BTreeSet<_> = old.keys().chain(new.keys()).collect();
        for key in keys {
            let is_compared = ["properties", "required", "items", "additionalProperties"];
            let has_no_effect = ["$defs", "$ref", "definitions", "description"];
            if !is_compared.contains(&&**key)
                && !has_no_effect.contains(&&**key)
                && !ANNOTATIONS.contains(&&**key)
            {
                match key.as_str() {
                    "allOf" | "anyOf" | "oneOf" | "not" => {
                        let old = old.get(key).map(|old| expanded(old, self.roots.0));
                        let new = new.get(key).map(|new| expanded(new, self.roots.1));
                        self.add_if_different(key, old.as_ref(), new.as_ref(), path);
                    }
                    key => self.add_if_different(key, old.get(key), new.get(key), path),
                }
            }
        }
    }

    /// Compares the schemas of one keyword.
    fn below(
        &mut self,
        key: &str,
        old: &'a Map<String, Value>,
        new: &'a Map<String, Value>,
        path: &str,
    ) {
        let (old, new) = (old.get(key), new.get(key));
        if old != new || old.is_some_and(Value::is_object) {
            self.compare(old.unwrap_or(&ANYTHING), new.unwrap_or(&ANYTHING), path);
        }
    }

    fn properties(&mut self, old: &'a Map<String, Value>, new: &'a Map<String, Value>, path: &str) {
        let names: BTreeSet<_> = names(old).chain(names(new)).collect();
        for name in names {
            let (before, after) = (property(old, name), property(new, name));
            let below = joined(path, name);
            let was_needed = is_needed(old, name, self.roots.0);
            let is_needed = is_needed(new, name, self.roots.1) && !was_needed;
            match (before, after) {
                (Some(_), None) => self.add(ChangeKind::Removed, &below, true, ""),
                (None, Some(after)) => {
                    // Before, an open object had any value there.
                    let others = old.get("additionalProperties").unwrap_or(&ANYTHING);
                    let is_open = *others != Value::Bool(false) && *after != ANYTHING;
                    let how = if is_needed { " is required" } else { "" };
                    self.add(ChangeKind::Added, &below, is_needed || is_open, how);
                }
                (Some(before), Some(after)) => {
                    if is_needed {
                        self.add(ChangeKind::Changed, &below, true, " is required");
                    }
                    self.compare(before, after, &below);
                }
                (None, None) if is_needed => {
                    self.add(ChangeKind::Changed, &below, true, " is required");
                }
                (None, None) => {}
            }
        }
    }

    /// Adds the change of a keyword.
    fn add_if_different(
        &mut self,
        key: &str,
        old: Option<&Value>,
        new: Option<&Value>,
        path: &str,
    ) {
        if old == new {
            return;
        }
        let shown = |value: Option<&Value>| {
            value.map_or_else(|| "none".to_owned(), |value| clean(&value.to_string()))
        };
        let text = format!(": `{key}` is {} instead of {}", shown(new), shown(old));
        self.add(ChangeKind::Changed, path, !is_wider(key, old, new), &text);
    }

    fn add(&mut self, kind: ChangeKind, path: &str, is_breaking: bool, text: &str) {
        let place = match path {
            "" => String::new(),
            path => format!(" `{}`", clean(path)),
        };
        let what = format!("{}{place}{text}", self.what);
        let breaks = is_breaking.then_some(self.breaks);
        self.changes.push(Change::new(kind, what, breaks));
    }
}

/// Returns the names of an object that a schema has a schema for, or requires.
fn names(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flat_map(Map::keys);
    let required = schema.get("required").and_then(Value::as_array);
    let required = required.into_iter().flatten().filter_map(Value::as_str);
    properties.map(String::as_str).chain(required)
}

fn property<'a>(schema: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}

/// Whether a configuration has to have a key. A default is filled in before that is checked.
fn is_needed(schema: &Map<String, Value>, name: &str, root: &Value) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = required.is_some_and(|names| names.iter().any(|one| one == name));
    let has_default = |schema: &Value| schema.get("default").is_some();
    let is_filled = property(schema, name)
        .is_some_and(|own| has_default(own) || has_default(resolved(own, root)));
    is_required && !is_filled
}

/// Returns what stands beside a reference. `None` if nothing does, or if the schema is no reference.
fn beside_reference(schema: &Value) -> Option<Map<String, Value>> {
    let mut beside = schema.as_object()?.clone();
    beside.shift_remove("$ref")?;
    beside.retain(|key, _| key != "description" && !ANNOTATIONS.contains(&&**key));
    (!beside.is_empty()).then_some(beside)
}

/// Returns the schema that a reference stands for.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let mut schema = schema;
    // References cannot form a cycle, but a chain of them is possible.
    while let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        let target = target
            .strip_prefix('#')
            .and_then(|pointer| root.pointer(pointer));
        match target {
            Some(target) => schema = target,
            None => return schema,
        }
    }
    schema
}

/// Returns a schema, or a list of schemas, with the targets of its references instead of them, as far as [`MAX_PAIRS`] values allow.
fn expanded(schema: &Value, root: &Value) -> Value {
    let mut budget = MAX_PAIRS;
    expanded_within(schema, root, &mut budget)
}

fn expanded_within(schema: &Value, root: &Value, budget: &mut usize) -> Value {
    *budget = budget.saturating_sub(1);
    if *budget == 0 {
        return schema.clone();
    }
    match schema {
        Value::Object(keywords) => {
            let mut all: Map<String, Value> = keywords
                .iter()
                .filter(|(key, _)| *key != "description" && !ANNOTATIONS.contains(&&***key))
                .map(|(key, value)| (key.clone(), expanded_within(value, root, budget)))
                .collect();
            let target = resolved(schema, root);
            if !std::ptr::eq(target, schema) {
                all.insert("$ref".to_owned(), expanded_within(target, root, budget));
            }
            Value::Object(all)
        }
        Value::Array(items) => {
            let items = items.iter();
            items
                .map(|item| expanded_within(item, root, budget))
                .collect()
        }
        other => other.clone(),
    }
}

fn joined(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

/// Whether a schema with a changed keyword accepts at least what it accepted. A keyword that is hard to compare counts as narrower.
fn is_wider(key: &str, old: Option<&Value>, new: Option<&Value>) -> bool {
    match (key, old, new) {
        // It does not affect what is accepted.
        ("default", ..) | (_, Some(_), None) => true,
        ("schema", old, new) => new == Some(&ANYTHING) || old == Some(&Value::Bool(false)),
        ("uniqueItems", _, Some(new)) => *new == Value::Bool(false),
        (_, None, Some(_)) => false,
        (
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties",
            Some(old),
            Some(new),
        ) => new.as_f64() <= old.as_f64(),
        (
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties",
            Some(old),
            Some(new),
        ) => new.as_f64() >= old.as_f64(),
        ("type", Some(old), Some(new)) => {
            let new = texts(new);
            let accepts = |one: &String| {
                new.contains(one) || (one == "\"integer\"" && new.contains("\"number\""))
            };
            texts(old).iter().all(accepts)
        }
        ("enum", Some(old), Some(new)) => texts(old).is_subset(&texts(new)),
        _ => false,
    }
}

/// Returns the items of a list, or the only one.
fn texts(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Array(items) => items.iter().map(Value::to_string).collect(),
        one => BTreeSet::from([one.to_string()]),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    fn lines(old: Value, new: Value) -> Vec<String> {
        let (old, new) = (Schema::new(old).unwrap(), Schema::new(new).unwrap());
        let changes = changes("configuration", Breaks::Runtimes, Some(&old), Some(&new));
        changes.iter().map(ToString::to_string).collect()
    }

    fn properties(properties: Value) -> Value {
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    }

    #[test]
    fn what_the_old_schema_accepts_and_the_new_one_refuses_breaks_runtimes() {
        let old = || json!({"a": {"type": "integer", "minimum": 1, "default": 3}, "b": {"enum": ["x", "y"]}, "c": {}});
        let table = [
            (
                json!({"type": "integer", "minimum": 0, "default": 3}),
                vec!["~ configuration `a`: `minimum` is 0 instead of 1"],
            ),
            (
                json!({"type": "integer", "minimum": 2, "default": 3}),
                vec!["~ configuration `a`: `minimum` is 2 instead of 1 (breaks runtimes)"],
            ),
            (
                json!({"type": "integer", "minimum": 1, "default": 4}),
                vec!["~ configuration `a`: `default` is 4 instead of 3"],
            ),
            (
                json!({"type": "number", "minimum": 1, "default": 3}),
                vec!["~ configuration `a`: `type` is \"number\" instead of \"integer\""],
            ),
            (
                json!({"type": ["string"], "minimum": 1, "default": "3"}),
                vec![
                    "~ configuration `a`: `default` is \"3\" instead of 3",
                    "~ configuration `a`: `type` is [\"string\"] instead of \"integer\" (breaks runtimes)",
                ],
            ),
            (
                json!({"type": "integer", "minimum": 1, "default": 3, "multipleOf": 2}),
                vec!["~ configuration `a`: `multipleOf` is 2 instead of none (breaks runtimes)"],
            ),
            (
                json!({"type": "integer", "minimum": 1, "default": 3, "description": "new"}),
                vec![],
            ),
        ];
        for (a, expected) in table {
            let mut new = old();
            new["a"] = a;
            assert_eq!(lines(properties(old()), properties(new)), expected);
        }
        let without = json!({"a": old()["a"], "b": {"enum": ["x"]}});
        assert_eq!(
            lines(properties(old()), properties(without)),
            [
                "~ configuration `b`: `enum` is [\"x\"] instead of [\"x\",\"y\"] (breaks runtimes)",
                "- configuration `c` (breaks runtimes)",
            ]
        );
    }

    #[test]
    fn required_keys_break_runtimes_unless_they_have_a_default() {
        let old = json!({"type": "object", "additionalProperties": false, "properties": {"a": {"type": "string"}}});
        let with = |default: Value| {
            let mut new = json!({"type": "object", "additionalProperties": false, "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a", "b"]});
            if !default.is_null() {
                new["properties"]["b"]["default"] = default;
            }
            new
        };
        assert_eq!(
            lines(old.clone(), with(Value::Null)),
            [
                "~ configuration `a` is required (breaks runtimes)",
                "+ configuration `b` is required (breaks runtimes)",
            ]
        );
        assert_eq!(
            lines(old, with(json!("x"))),
            [
                "~ configuration `a` is required (breaks runtimes)",
                "+ configuration `b`"
            ]
        );
    }

    #[test]
    fn what_was_accepted_without_being_named_counts() {
        let of = |a: Value| json!({"type": "object", "properties": {"a": a}, "required": ["a"]});
        // A default was filled in before the check.
        assert_eq!(
            lines(of(json!({"default": 1})), of(json!({}))),
            [
                "~ configuration `a` is required (breaks runtimes)",
                "~ configuration `a`: `default` is none instead of 1",
            ]
        );
        // An open object had any value there.
        let open = json!({"type": "object"});
        let typed = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        assert_eq!(
            lines(open.clone(), typed),
            ["+ configuration `a` (breaks runtimes)"]
        );
        let required = json!({"type": "object", "required": ["a"]});
        assert_eq!(
            lines(open, required),
            ["~ configuration `a` is required (breaks runtimes)"]
        );
        let referenced = |beside: Value| {
            let mut a = json!({"$ref": "#/$defs/a"});
            a.as_object_mut()
                .unwrap()
                .extend(beside.as_object().unwrap().clone());
            json!({"type": "object", "properties": {"a": a}, "$defs": {"a": {"type": "integer"}}})
        };
        let narrower = lines(referenced(json!({})), referenced(json!({"minimum": 3})));
        assert!(
            narrower.len() == 1 && narrower[0].ends_with("(breaks runtimes)"),
            "{narrower:?}"
        );
        assert!(
            lines(
                referenced(json!({})),
                referenced(json!({"description": "a"}))
            )
            .is_empty()
        );
    }

    #[test]
    fn nested_schemas_are_compared_through_references() {
        let schema = |port: Value| {
            json!({"type": "object", "properties": {"nics": {"type": "array", "items": {"$ref": "#/$defs/nic"}}},
                "$defs": {"nic": {"type": "object", "properties": {"port": port}}}})
        };
        let renamed = |port: Value| json!({"type": "object", "properties": {"nics": {"type": "array", "items": {"type": "object", "properties": {"port": port}}}}});
        assert_eq!(
            lines(
                schema(json!({"maximum": 9})),
                renamed(json!({"maximum": 8}))
            ),
            ["~ configuration `nics[].port`: `maximum` is 8 instead of 9 (breaks runtimes)"]
        );
        assert!(lines(schema(json!({})), renamed(json!({}))).is_empty());
        let closed = json!({"type": "object", "additionalProperties": false});
        let open = json!({"type": "object"});
        assert_eq!(
            lines(open.clone(), closed.clone()),
            ["~ configuration `*`: `schema` is false instead of true (breaks runtimes)"]
        );
        assert_eq!(
            lines(closed, open),
            ["~ configuration `*`: `schema` is true instead of false"]
        );
    }

    #[test]
    fn references_cannot_make_the_comparison_endless() {
        let numbers = |reverse: bool| {
            let mut numbers: Vec<u32> = (0..5000).collect();
            if reverse {
                numbers.reverse();
            }
            json!({"enum": numbers})
        };
        let nested = |last: Value| {
            let mut definitions = Map::new();
            definitions.insert("l0".to_owned(), last);
            for level in 1..7 {
                let below = json!({"$ref": format!("#/$defs/l{}", level - 1)});
                let names = ["a", "b", "c", "d"].map(str::to_owned);
                let properties = names.into_iter().map(|name| (name, below.clone()));
                let properties: Map<_, _> = properties.collect();
                definitions.insert(format!("l{level}"), json!({"properties": properties}));
            }
            json!({"properties": {"all": {"$ref": "#/$defs/l6"}}, "$defs": definitions})
        };
        assert_eq!(
            lines(nested(numbers(false)), nested(numbers(true))).len(),
            1
        );
        let narrower = lines(nested(json!({"minimum": 1})), nested(json!({"minimum": 2})));
        assert_eq!(
            narrower,
            ["~ configuration `all.a.a.a.a.a.a`: `minimum` is 2 instead of 1 (breaks runtimes)"]
        );
    }

    #[test]
    fn references_in_alternatives_are_compared() {
        let of = |maximum: u32| {
            json!({"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#/$defs/p"}, {"type": "null"}]}},
                "$defs": {"p": {"type": "integer", "maximum": maximum}}})
        };
        let narrower = lines(of(10), of(9));
        assert!(
            narrower.len() == 1 && narrower[0].ends_with("(breaks runtimes)"),
            "{narrower:?}"
        );
        assert!(lines(of(9), of(9)).is_empty());
    }
}
