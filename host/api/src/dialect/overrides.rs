//! `podSpecOverrides` (v2.0), `podTemplateOverrides` (v2.1), and a TrainJob's own `labels` and `annotations` (up to v2.1)
//! become entries of `runtimePatches` under a manager's name that is kept for them.
//!
//! An entry holds a replicated job once. Overrides were applied in the order of their list, so that one that comes back to
//! a replicated job begins the next entry: what the order meant is what the patches' order means. The entries stand before
//! those of other managers, which were never there when the old fields were current, and are replaced as a whole when the
//! object comes again with the old field: a second apply is no second wish.

use serde_json::{Map, Value, json};

use super::{Modernized, bounds, mix, spec};
use crate::fields::{FieldProblem, describe};
use crate::names;
use crate::path::FieldPath;

/// An old list of overrides.
struct Dialect {
    field: &'static str,
    since: &'static str,
    /// Whether the pod spec's fields stand beside `targetJobs`, and not under `spec`.
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

/// The JobSet's metadata, by the old fields.
const METADATA: [&str; 2] = ["labels", "annotations"];

/// Entries of `runtimePatches` that are being made, each with the pieces that moved into it.
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

pub(super) fn convert(job: &mut Map<String, Value>, modernized: &mut Modernized) {
    let mut patches = Patches::default();
    let is_there = |name: &str| job.get(name).is_some_and(|value| !value.is_null());
    let [flat, nested] = &DIALECTS;
    if is_there(flat.field) && is_there(nested.field) {
        job.shift_remove(flat.field);
        job.shift_remove(nested.field);
        let problem = FieldProblem::Excludes(nested.field);
        return modernized.refuse(spec().field(flat.field), problem);
    }
    for name in METADATA {
        if let Some(map) = job.shift_remove(name).filter(|map| !map.is_null())
            && bounds::metadata(name, &map, modernized)
        {
            patches.metadata(name, map, modernized);
        }
    }
    for dialect in &DIALECTS {
        if let Some(list) = job
            .shift_remove(dialect.field)
            .filter(|list| !list.is_null())
        {
            patches.overrides(dialect, list, modernized);
        }
    }
    if !patches.entries.is_empty() && modernized.errors.is_empty() {
        patches.write(job, modernized);
    }
}

impl Patches {
    /// The entry at a place, made where there is none.
    fn entry(&mut self, at: usize) -> Option<&mut Entry> {
        if self.entries.len() <= at {
            self.entries.resize_with(at + 1, Entry::default);
        }
        self.entries.get_mut(at)
    }

    fn metadata(&mut self, name: &'static str, map: Value, modernized: &mut Modernized) {
        let now = template().field("metadata").field(name);
        let before = spec().field(name);
        modernized.warn(
            before.clone(),
            format!("is read as `trainingRuntimeSpec.template.metadata.{name}` of an entry of spec.runtimePatches; write that"),
        );
        if let Some(entry) = self.entry(0) {
            entry.metadata.insert(name.to_owned(), map);
            entry.moved.push((now, before));
        }
    }

    fn overrides(&mut self, dialect: &Dialect, list: Value, modernized: &mut Modernized) {
        let path = spec().field(dialect.field);
        let Value::Array(list) = list else {
            let found = describe(&list);
            return modernized.refuse(
                path,
                FieldProblem::Type {
                    expected: "a list",
                    found,
                },
            );
        };
        modernized.warn(
            path.clone(),
            format!(
                "is a field of {}, read as entries of spec.runtimePatches by the manager `{}`; write those",
                dialect.since,
                names::OVERRIDES_MANAGER
            ),
        );
        if !bounds::overrides(&list, &path, modernized) {
            return;
        }
        for (at, one) in list.into_iter().enumerate() {
            match one {
                Value::Object(one) => self.one(dialect, one, &path.index(at), modernized),
                other => {
                    let found = describe(&other);
                    let problem = FieldProblem::Type {
                        expected: "an object",
                        found,
                    };
                    modernized.refuse(path.index(at), problem);
                }
            }
        }
    }

    fn one(
        &mut self,
        dialect: &Dialect,
        mut one: Map<String, Value>,
        path: &FieldPath,
        modernized: &mut Modernized,
    ) {
        let targets = targets(one.shift_remove("targetJobs"), path, modernized);
        let patch = if dialect.flat {
            json!({ "spec": one })
        } else {
            Value::Object(one)
        };
        for (name, written) in targets {
            self.add(&name, written, &patch, path, dialect.flat);
        }
    }

    /// Adds a patch of the pods of a replicated job to the first entry behind which nothing patches it.
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

    /// Puts the entries before those of other managers, in the place of those that were made before.
    fn write(self, job: &mut Map<String, Value>, modernized: &mut Modernized) {
        let old = job.shift_remove("runtimePatches");
        let others = match old {
            Some(Value::Array(list)) => list,
            None | Some(Value::Null) => Vec::new(),
            // Of a wrong type: the schema says so.
            Some(other) => {
                job.insert("runtimePatches".to_owned(), other);
                return;
            }
        };
        let theirs = others.iter().filter(|other| !is_ours(other)).count();
        if !bounds::entries(self.entries.len() + theirs, modernized) {
            job.insert("runtimePatches".to_owned(), Value::Array(others));
            return;
        }
        let patches = spec().field("runtimePatches");
        let mut list = Vec::new();
        for (at, entry) in self.entries.into_iter().enumerate() {
            let below = patches.index(at);
            let moved = entry.moved.iter();
            let moved = moved.map(|(now, before)| (below.join(now), before.clone()));
            modernized.moved.extend(moved);
            list.push(entry.patch(at));
        }
        let converted = list.len();
        for (at, other) in others
            .into_iter()
            .enumerate()
            .filter(|(_, other)| !is_ours(other))
        {
            modernized
                .moved
                .insert(patches.index(list.len()), patches.index(at));
            list.push(other);
        }
        let (ours, others) = list.split_at(converted);
        mix::check(ours, others, modernized);
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

/// The place in an entry of `runtimePatches` where everything stands.
fn template() -> FieldPath {
    FieldPath::root()
        .field("trainingRuntimeSpec")
        .field("template")
}

/// Whether an entry of `runtimePatches` is one that this module made.
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

/// The names of the replicated jobs that an override is for, each with the place where it stands.
fn targets(
    list: Option<Value>,
    path: &FieldPath,
    modernized: &mut Modernized,
) -> Vec<(String, FieldPath)> {
    let path = path.field("targetJobs");
    let list = match list {
        Some(Value::Array(list)) if !list.is_empty() => list,
        None | Some(Value::Null | Value::Array(_)) => {
            modernized.refuse(path, FieldProblem::Required);
            return Vec::new();
        }
        Some(other) => {
            let found = describe(&other);
            modernized.refuse(
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
            // Twice in one list is once.
            Some(name) if names.iter().any(|(known, _)| known == name) => {}
            Some(name) => names.push((name.to_owned(), path)),
            None => modernized.refuse(path, FieldProblem::Required),
        }
    }
    names
}
