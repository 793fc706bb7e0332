//! `podSpecOverrides` (v2.0), `podTemplateOverrides` (v2.1), and a TrainJob's own `labels` and `annotations` (up to v2.1)
//! become entries of `runtimePatches` with a reserved manager.
//!
//! An entry has each replicated job once. Overrides were applied in the order of their list, so a second override of a replicated job
//! starts the next entry, which is applied later. The entries are inserted before those of other managers, which did not exist
//! together with the old fields. They are replaced as a whole when the object is applied again with the old field.

use serde_json::{Map, Value, json};

use super::{Conversion, bounds, mix, spec};
use crate::{
    fields::{FieldProblem, describe},
    names,
    path::FieldPath,
};

/// An old list of overrides.
struct Dialect {
    field: &'static str,
    since: &'static str,
    /// Whether the pod spec's fields are beside `targetJobs`, and not under `spec`.
    flat: bool,
}

const DIALECTS: [Dialect; 2] = [
    Dialect {
        field: "podSpecOverrides",
        since: "v2.0",
        flat: true,
    },
    Dialect {
        field: "podTemplateOverrides",
        since: "v2.1",
        flat: false,
    },
];

/// The old fields for the JobSet's metadata.
const METADATA: [&str; 2] = ["labels", "annotations"];

/// The entries of `runtimePatches` that are built, each with the parts that were moved into it.
#[derive(Default)]
struct Patches {
    entries: Vec<Entry>,
}

#[derive(Default)]
struct Entry {
    metadata: Map<String, Value>,
    jobs: Vec<Value>,
    moved: Vec<(FieldPath, FieldPath)>,
}

pub(super) fn convert(job: &mut Map<String, Value>, conversion: &mut Conversion) {
    let mut patches = Patches::default();
    let is_there = |name: &str| job.get(name).is_some_and(|value| !value.is_null());
    let [flat, nested] = &DIALECTS;
    if is_there(flat.field) && is_there(nested.field) {
        job.shift_remove(flat.field);
        job.shift_remove(nested.field);
        let problem = FieldProblem::Excludes(nested.field);
        return conversion.refuse(spec().field(flat.field), problem);
    }
    for name in METADATA {
        if let Some(map) = job.shift_remove(name).filter(|map| !map.is_null())
            && bounds::metadata(name, &map, conversion)
        {
            patches.metadata(name, map, conversion);
        }
    }
    for dialect in &DIALECTS {
        if let Some(list) = job
            .shift_remove(dialect.field)
            .filter(|list| !list.is_null())
        {
            patches.overrides(dialect, list, conversion);
        }
    }
    if !patches.entries.is_empty() && conversion.errors.is_empty() {
        patches.write(job, conversion);
    }
}

impl Patches {
    /// Returns an entry, which is added if it does not exist.
    fn entry(&mut self, at: usize) -> Option<&mut Entry> {
        if self.entries.len() <= at {
            self.entries.resize_with(at + 1, Entry::default);
        }
        self.entries.get_mut(at)
    }

    fn metadata(&mut self, name: &'static str, map: Value, conversion: &mut Conversion) {
        let now = template().field("metadata").field(name);
        let before = spec().field(name);
        conversion.warn(
            before.clone(),
            format!("is read as `trainingRuntimeSpec.template.metadata.{name}` of an entry of spec.runtimePatches; write that instead"),
        );
        if let Some(entry) = self.entry(0) {
            entry.metadata.insert(name.to_owned(), map);
            entry.moved.push((now, before));
        }
    }

    fn overrides(&mut self, dialect: &Dialect, list: Value, conversion: &mut Conversion) {
        let path = spec().field(dialect.field);
        let Value::Array(list) = list else {
            let found = describe(&list);
            return conversion.refuse(
                path,
                FieldProblem::Type {
                    expected: "a list",
                    found,
                },
            );
        };
        conversion.warn(
            path.clone(),
            format!(
                "is a field of Kubeflow Trainer {}, and is read as entries of spec.runtimePatches with the manager `{}`; write those instead",
                dialect.since,
                names::OVERRIDES_MANAGER
            ),
        );
        if !bounds::overrides(&list, &path, conversion) {
            return;
        }
        for (at, one) in list.into_iter().enumerate() {
            match one {
                Value::Object(one) => self.one(dialect, one, &path.index(at), conversion),
                other => {
                    let found = describe(&other);
                    let problem = FieldProblem::Type {
                        expected: "an object",
                        found,
                    };
                    conversion.refuse(path.index(at), problem);
                }
            }
        }
    }

    fn one(
        &mut self,
        dialect: &Dialect,
        mut one: Map<String, Value>,
        path: &FieldPath,
        conversion: &mut Conversion,
    ) {
        let targets = targets(one.shift_remove("targetJobs"), path, conversion);
        let patch = if dialect.flat {
            json!({ "spec": one })
        } else {
            Value::Object(one)
        };
        for (name, written) in targets {
            self.add(&name, written, &patch, path, dialect.flat);
        }
    }

    /// Adds a patch of the pods of a replicated job to the first entry after all patches of the same replicated job.
    fn add(
        &mut self,
        target: &str,
        written: FieldPath,
        patch: &Value,
        before: &FieldPath,
        flat: bool,
    ) {
        let has = |entry: &Entry| entry.jobs.iter().any(|job| job["name"] == *target);
        let next = self
            .entries
            .iter()
            .rposition(has)
            .map_or(0, |last| last + 1);
        if let Some(entry) = self.entry(next) {
            let job = template()
                .field("spec")
                .field("replicatedJobs")
                .index(entry.jobs.len());
            entry.moved.push((job.field("name"), written));
            let pods = job.field("template").field("spec").field("template");
            let now = if flat { pods.field("spec") } else { pods };
            entry.moved.push((now, before.clone()));
            entry
                .jobs
                .push(json!({"name": target, "template": {"spec": {"template": patch}}}));
        }
    }

    /// Inserts the entries before those of other managers, and removes those of an earlier conversion.
    fn write(self, job: &mut Map<String, Value>, conversion: &mut Conversion) {
        let old = job.shift_remove("runtimePatches");
        let others = match old {
            Some(Value::Array(list)) => list,
            None | Some(Value::Null) => Vec::new(),
            // The schema refuses its type.
            Some(other) => {
                job.insert("runtimePatches".to_owned(), other);
                return;
            }
        };
        let theirs = others.iter().filter(|other| !is_ours(other)).count();
        if !bounds::entries(self.entries.len() + theirs, conversion) {
            job.insert("runtimePatches".to_owned(), Value::Array(others));
            return;
        }
        let patches = spec().field("runtimePatches");
        let mut list = Vec::new();
        for (at, entry) in self.entries.into_iter().enumerate() {
            let below = patches.index(at);
            let moved = entry.moved.iter();
            let moved = moved.map(|(now, before)| (below.join(now), before.clone()));
            conversion.moved.extend(moved);
            list.push(entry.patch(at));
        }
        let converted = list.len();
        for (at, other) in others
            .into_iter()
            .enumerate()
            .filter(|(_, other)| !is_ours(other))
        {
            conversion
                .moved
                .insert(patches.index(list.len()), patches.index(at));
            list.push(other);
        }
        let (ours, others) = list.split_at(converted);
        mix::check(ours, others, conversion);
        job.insert("runtimePatches".to_owned(), Value::Array(list));
    }
}

impl Entry {
    fn patch(self, at: usize) -> Value {
        let mut template = Map::new();
        if !self.metadata.is_empty() {
            template.insert("metadata".to_owned(), Value::Object(self.metadata));
        }
        if !self.jobs.is_empty() {
            template.insert("spec".to_owned(), json!({ "replicatedJobs": self.jobs }));
        }
        let manager = match at {
            0 => names::OVERRIDES_MANAGER.to_owned(),
            _ => format!("{}-{}", names::OVERRIDES_MANAGER, at + 1),
        };
        json!({"manager": manager, "trainingRuntimeSpec": {"template": template}})
    }
}

/// The path of the template in an entry of `runtimePatches`.
fn template() -> FieldPath {
    FieldPath::root()
        .field("trainingRuntimeSpec")
        .field("template")
}

/// Returns whether an entry of `runtimePatches` was created by this module.
fn is_ours(entry: &Value) -> bool {
    let manager = entry
        .get("manager")
        .and_then(Value::as_str)
        .unwrap_or_default();
    match manager.strip_prefix(names::OVERRIDES_MANAGER) {
        Some("") => true,
        Some(rest) => rest
            .strip_prefix('-')
            .is_some_and(|n| n.parse::<u32>().is_ok()),
        None => false,
    }
}

/// Returns the names of the replicated jobs of an override, each with its path.
fn targets(
    list: Option<Value>,
    path: &FieldPath,
    conversion: &mut Conversion,
) -> Vec<(String, FieldPath)> {
    let path = path.field("targetJobs");
    let list = match list {
        Some(Value::Array(list)) if !list.is_empty() => list,
        None | Some(Value::Null | Value::Array(_)) => {
            conversion.refuse(path, FieldProblem::Required);
            return Vec::new();
        }
        Some(other) => {
            let found = describe(&other);
            conversion.refuse(
                path,
                FieldProblem::Type {
                    expected: "a list",
                    found,
                },
            );
            return Vec::new();
        }
    };
    let mut names: Vec<(String, FieldPath)> = Vec::new();
    for (at, target) in list.iter().enumerate() {
        let path = path.index(at).field("name");
        match target.get("name").and_then(Value::as_str) {
            // Duplicates are ignored.
            Some(name) if names.iter().any(|(known, _)| known == name) => {}
            Some(name) => names.push((name.to_owned(), path)),
            None => conversion.refuse(path, FieldProblem::Required),
        }
    }
    names
}
