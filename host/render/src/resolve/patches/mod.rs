//! Merges the TrainJob's `runtimePatches` into the template, in order, before any other change.

mod changes;
mod check;
mod targets;

use std::sync::Arc;

use serde_json::Value;
use trainyard_api::{
    FieldPath, RuntimePatch, TrainJob,
    merge::{self, JOB_SET_SPEC, MergeError, Names, Side},
    names,
};
use trainyard_model::{
    deadline::Deadline,
    names::is_domain_path,
    record::{EntryRef, EntryScope, Field, Owner, Record},
};

use crate::{
    entries,
    journal::{Journal, Source},
    problem::{InputObject, Problem, Warning},
};

/// The result of the patches of a TrainJob.
#[derive(Default)]
pub(crate) struct Patched {
    /// The JobSet's spec with all patches. `None` if no patch changes it.
    pub(crate) spec: Option<Arc<Value>>,
    /// The changes by the patches, in order.
    pub(crate) journal: Journal,
    pub(crate) warnings: Vec<Warning>,
}

/// Merges the patches into the template, and writes their changes to the record. `steps` returns the problems of the TrainJob's steps.
///
/// # Errors
/// All problems of the patches, or [`Problem::Overdue`] if the deadline passes.
pub(super) fn apply(
    job: &TrainJob,
    template: &Value,
    record: &mut Record,
    steps: &dyn Fn(&Record) -> Vec<Problem>,
    deadline: &Deadline,
) -> Result<Patched, Vec<Problem>> {
    let mut patched = Patched::default();
    let mut problems = Vec::new();
    for (at, patch) in job.runtime_patches.iter().enumerate() {
        if !is_domain_path(&patch.manager) {
            let path = FieldPath::of(["spec", "runtimePatches"]);
            let message = format!(
                "must be a domain and a path, such as example.com/queue; found `{}`",
                patch.manager
            );
            problems.push(Problem::job(path.index(at).field("manager"), message));
        }
        let manager: Arc<str> = patch.manager.as_str().into();
        let source = |field: &FieldPath| Source::Patch {
            manager: manager.clone(),
            field: job.written(field),
        };
        write_metadata(patch, record, &mut patched, &source);
        if let Some(spec) = &patch.spec {
            let base = patched.spec.as_deref().unwrap_or(template);
            match merge_one(patch, spec, base) {
                Ok(merged) => {
                    let names = Names::new(spec, &JOB_SET_SPEC);
                    let source = |path: Option<&FieldPath>| match path {
                        Some(path) => source(&in_patch(patch, &names, path)),
                        None => source(&patch.path),
                    };
                    let journal = &mut patched.journal;
                    let mut wrong = changes::write(base, &merged.spec, record, journal, &source);
                    wrong.extend(steps(record));
                    if wrong.is_empty() {
                        patched.warnings.extend(merged.warnings);
                        patched.spec = Some(Arc::new(merged.spec));
                    } else {
                        let merged = Names::new(&merged.spec, &JOB_SET_SPEC);
                        let wrong = wrong.into_iter();
                        problems.extend(wrong.map(|one| blame(patch, &names, &merged, one)));
                    }
                }
                Err(found) => problems.extend(found),
            }
        }
        Problem::in_time(deadline, || format!("{} was merged", patch.path))?;
    }
    if problems.is_empty() {
        Ok(patched)
    } else {
        Err(problems)
    }
}

/// The template with one more patch.
struct Merged {
    spec: Value,
    warnings: Vec<Warning>,
}

fn merge_one(patch: &RuntimePatch, spec: &Value, base: &Value) -> Result<Merged, Vec<Problem>> {
    let at = patch.path.field("spec");
    let mut problems = check::items(spec, &at);
    problems.extend(entries::check_patch(spec, &at));
    let found = targets::find(base, spec, &at);
    let mut warnings = Vec::new();
    if patch.manager == names::KUEUE_MANAGER {
        // Kueue computes its patch from the live runtime, so a later removal from the runtime must not fail the TrainJob.
        warnings.extend(found.missing.into_iter().map(|(path, message)| Warning {
            about: InputObject::TrainJob,
            field: Some(path.to_string()),
            message: format!("is ignored: {message}"),
            plugin: None,
        }));
    } else {
        let missing = found.missing.into_iter();
        problems.extend(missing.map(|(path, message)| Problem::job(path, message)));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let merged =
        merge::strategic(base, &found.patch).map_err(|error| vec![unmergeable(&error, &at)])?;
    let spec = merge::fix(base, &found.patch, merged);
    Ok(Merged { spec, warnings })
}

/// Writes the labels and annotations of a patch to the JobSet.
fn write_metadata(
    patch: &RuntimePatch,
    record: &mut Record,
    Patched {
        journal, warnings, ..
    }: &mut Patched,
    source: &dyn Fn(&FieldPath) -> Source,
) {
    for (field, name, texts) in [
        (Field::Labels, "labels", &patch.labels),
        (Field::Annotations, "annotations", &patch.annotations),
    ] {
        let at = patch.path.fields(["metadata", name]);
        for (key, value) in texts {
            let place = EntryRef {
                scope: EntryScope::Job,
                field,
                key: key.as_str().into(),
            };
            if field == Field::Annotations && names::is_mark(key) {
                warnings.push(mark(InputObject::TrainJob, &at.key(key)));
                continue;
            }
            let held = record.entry(place.scope, field, key);
            if held.is_some_and(|entry| entry.datum.as_text() == Some(value)) {
                continue;
            }
            let datum = Some(value.as_str().into());
            let change = record.write(place, datum, Owner::Patch);
            journal.add(change, source(&at.key(key)));
        }
    }
}

/// Returns the warning of an annotation of the JobSet that only the controller writes.
pub(super) fn mark(about: InputObject, field: &FieldPath) -> Warning {
    Warning {
        about,
        field: Some(field.to_string()),
        message: "is an annotation that only the controller writes, and is ignored; remove it"
            .to_owned(),
        plugin: None,
    }
}

/// Returns the field of a patch for a path of the JobSet, with names.
fn in_patch(patch: &RuntimePatch, spec: &Names<'_>, path: &FieldPath) -> FieldPath {
    let at = FieldPath::of(["spec"]);
    let below = path.moved(&at, &FieldPath::root()).unwrap_or_default();
    let below = spec.by_positions(&below);
    patch.path.join(&at).join(&below)
}

/// Moves a problem of the patched template to the patch, because the template did not have it before.
fn blame(patch: &RuntimePatch, spec: &Names<'_>, merged: &Names<'_>, problem: Problem) -> Problem {
    let Problem::Field { path, message, .. } = problem else {
        return problem;
    };
    let Some(below) = path.moved(&template_spec(), &FieldPath::root()) else {
        return Problem::job(patch.path.clone(), message);
    };
    let named = merged.by_names(&below);
    let path = in_patch(patch, spec, &FieldPath::of(["spec"]).join(&named));
    Problem::job(path, format!("{message} (in the template with this patch)"))
}

/// Returns the path of the JobSet's spec in a runtime.
fn template_spec() -> FieldPath {
    FieldPath::of(["spec", "template", "spec"])
}

fn unmergeable(error: &MergeError, at: &FieldPath) -> Problem {
    let message = format!("needs `{}`, which identifies the item to patch", error.key);
    match error.side {
        Side::Patch => Problem::job(at.join(&error.path), message),
        Side::Base => Problem::runtime(template_spec().join(&error.path), message),
    }
}
