//! Compares objects field by field, with what set each field.

use serde::Serialize;
use serde_json::Value;
use trainyard_api::{
    FieldPath,
    merge::{self, Difference, JOB_SET, PLAIN},
};
use trainyard_model::text::{MAX_LINE, clean, clean_to};
use trainyard_render::{Rendered, Setter};

use crate::difference::first_difference;

/// A field that differs.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FieldChange {
    /// The kind and the name of the object.
    pub(crate) object: String,
    /// The path in the object. Empty for the whole object.
    pub(crate) path: String,
    /// `None` if the field is not expected.
    pub(crate) expected: Option<Value>,
    /// `None` if the field does not exist.
    pub(crate) found: Option<Value>,
    /// What set the field, or removed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) set_by: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// An object with the rendering that has it.
pub(crate) type Found<'a> = (&'a Value, &'a Rendered);

/// Returns the objects of a rendering.
pub(crate) fn objects_of(rendered: &Rendered) -> impl Iterator<Item = Found<'_>> {
    rendered.all_objects().map(move |object| (object, rendered))
}

/// Returns the fields that differ between the expected objects and those that were found. If only the order differs, returns the first
/// place where it does.
pub(crate) fn changes(expected: &[&Value], objects: &[Found<'_>]) -> Vec<FieldChange> {
    let mut all = Vec::new();
    for one in expected {
        match objects.iter().find(|(object, _)| id(object) == id(one)) {
            Some((object, rendered)) => all.extend(changes_of(one, object, rendered)),
            None => all.push(whole(one, Some(one), None, None)),
        }
    }
    for (object, rendered) in objects {
        if !expected.iter().any(|one| id(one) == id(object)) {
            all.push(whole(object, None, Some(object), Some(rendered)));
        }
    }
    if all.is_empty() {
        all.extend(reordered(expected, objects));
    }
    all
}

/// Returns a value of a field, or that there is none, for a line of text.
pub(crate) fn shown(value: Option<&Value>) -> String {
    let text = |value: &Value| clean_to(&value.to_string(), MAX_LINE);
    value.map_or_else(|| "(absent)".to_owned(), text)
}

/// Returns the fields of an object that differ.
fn changes_of(expected: &Value, found: &Value, rendered: &Rendered) -> Vec<FieldChange> {
    let is_job_set = std::ptr::eq(found, &rendered.job_set);
    let node = if is_job_set { &JOB_SET } else { &PLAIN };
    let differences = merge::differences_in(expected, found, node).into_iter();
    let change = |Difference { path, from, to }: Difference| {
        let (set_by, reason) = match is_job_set {
            true => who_set(&path, rendered),
            false => (emitter(found, rendered), None),
        };
        let shown =
            |value: Option<Value>| value.map(|value| without_env_name(&path, &value).clone());
        FieldChange {
            object: named(found),
            path: path.to_string(),
            expected: shown(from),
            found: shown(to),
            set_by,
            reason,
        }
    };
    differences.map(change).collect()
}

/// Returns what set a field of the JobSet last, or removed it, and why.
pub(crate) fn who_set(path: &FieldPath, rendered: &Rendered) -> (Option<String>, Option<String>) {
    let rows = rendered.explain(path).unwrap_or_default();
    let step = rows.first().and_then(|row| row.steps.last());
    let Some(step) = step else {
        return (None, None);
    };
    let (by, why) = setter(&step.by);
    (Some(by), why.map(str::to_owned))
}

/// Returns the plugin that emitted an object.
fn emitter(object: &Value, rendered: &Rendered) -> Option<String> {
    let mut emitted = rendered.objects.iter();
    let emitted = emitted.find(|emitted| std::ptr::eq(&emitted.value, object))?;
    let plugin = &emitted.plugin;
    Some(format!("{} {}", plugin.name, plugin.version))
}

/// Returns the change of an object that only one side has.
fn whole(
    object: &Value,
    expected: Option<&Value>,
    found: Option<&Value>,
    rendered: Option<&Rendered>,
) -> FieldChange {
    FieldChange {
        object: named(object),
        path: String::new(),
        expected: expected.cloned(),
        found: found.cloned(),
        set_by: rendered.and_then(|rendered| emitter(object, rendered)),
        reason: None,
    }
}

/// Returns the first place where only the order differs.
fn reordered(expected: &[&Value], objects: &[Found<'_>]) -> Option<FieldChange> {
    let mut pairs = expected.iter().zip(objects);
    pairs.find_map(|(one, (object, _))| {
        let first = first_difference(&FieldPath::root(), one, object)?;
        Some(FieldChange {
            object: named(object),
            path: first.path.to_string(),
            expected: first.recorded,
            found: first.now,
            set_by: None,
            reason: Some("the order differs".to_owned()),
        })
    })
}

/// What identifies an object.
fn id(object: &Value) -> [Option<&str>; 4] {
    let paths = [
        "/apiVersion",
        "/kind",
        "/metadata/namespace",
        "/metadata/name",
    ];
    paths.map(|path| object.pointer(path).and_then(Value::as_str))
}

/// Returns the kind and the name of an object.
fn named(object: &Value) -> String {
    let [_, kind, _, name] = id(object);
    clean(&format!("{} {}", kind.unwrap_or("?"), name.unwrap_or("?")))
}

/// Returns the value at a path of the JobSet for the output. Of an item of a list of env vars, this is the item without its name, which the
/// path contains.
pub(crate) fn without_env_name<'v>(path: &FieldPath, value: &'v Value) -> &'v Value {
    let is_env = matches!(path.segments(), [.., list, _] if list.text() == "env");
    match value.get("name") {
        Some(_) if is_env => {
            let own = value.get("value").or_else(|| value.get("valueFrom"));
            own.unwrap_or(value)
        }
        _ => value,
    }
}

/// Returns what set a field, and why.
pub(crate) fn setter(by: &Setter) -> (String, Option<&str>) {
    match by {
        Setter::Runtime { field } => ("runtime".to_owned(), Some(field)),
        Setter::Patch { manager, field } => (format!("patch of {manager}"), Some(field)),
        Setter::Host { reason } => ("trainyard".to_owned(), Some(reason)),
        Setter::TrainJob { field } => ("TrainJob".to_owned(), Some(field)),
        Setter::Plugin {
            name,
            version,
            reason,
            ..
        } => (format!("{name} {version}"), reason.as_deref()),
    }
}
