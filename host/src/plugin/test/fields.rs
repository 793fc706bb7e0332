//! Compares objects field by field, with what set each field.

use serde::Serialize;
use serde_json::Value;
use trainyard_api::{
    FieldPath,
    merge::{self, Difference, JOB_SET, PLAIN},
    yaml,
};
use trainyard_model::text::clean;
use trainyard_render::Rendered;

use crate::{
    difference::first_difference,
    explain::{setter, without_env_name},
    plugin::cases::RenderedJob,
};

/// A field that differs.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::plugin) struct FieldChange {
    /// The kind and the name of the object.
    pub(in crate::plugin) object: String,
    /// The path in the object. Empty for the whole object.
    pub(in crate::plugin) path: String,
    /// `None` if the field is not expected.
    pub(in crate::plugin) expected: Option<Value>,
    /// `None` if the field does not exist.
    pub(in crate::plugin) found: Option<Value>,
    /// What set the field, or removed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::plugin) set_by: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::plugin) reason: Option<String>,
}

/// An object with the rendering that has it.
type Found<'a> = (&'a Value, &'a Rendered);

/// Returns the fields that differ between the documents of an expected file and the result of these TrainJobs. Empty if only the order or the
/// notation differs.
///
/// # Errors
/// Why the expected file cannot be read.
pub(super) fn changes(expected: &str, jobs: &[RenderedJob]) -> Result<Vec<FieldChange>, String> {
    let documents = yaml::read(expected).into_iter();
    let expected = documents
        .map(|document| document.map(|document| document.value))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| clean(&error.to_string()))?;
    let objects: Vec<Found<'_>> = jobs
        .iter()
        .flat_map(|job| {
            let objects = job.rendered.all_objects();
            objects.map(|object| (object, &job.rendered))
        })
        .collect();
    let mut all = Vec::new();
    for one in &expected {
        match objects.iter().find(|(object, _)| id(object) == id(one)) {
            Some((object, rendered)) => all.extend(changes_of(one, object, rendered)),
            None => all.push(whole(one, Some(one), None, None)),
        }
    }
    for (object, rendered) in &objects {
        if !expected.iter().any(|one| id(one) == id(object)) {
            all.push(whole(object, None, Some(object), Some(rendered)));
        }
    }
    if all.is_empty() {
        all.extend(reordered(&expected, &objects));
    }
    Ok(all)
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
fn who_set(path: &FieldPath, rendered: &Rendered) -> (Option<String>, Option<String>) {
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
fn reordered(expected: &[Value], objects: &[Found<'_>]) -> Option<FieldChange> {
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
