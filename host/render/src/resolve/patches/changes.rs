//! Writes the changes by a patch to the record, and those of fields that the record does not have, such as tolerations and security contexts,
//! to the journal, for `explain`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use trainyard_api::{FieldPath, StackPath, ancestor::Ancestor, merge::differences, path::Segment};
use trainyard_model::record::{Entry, EntryRef, EntryScope, Field, Fields, Level, Owner, Record};

use crate::{
    journal::{Journal, Source, SpecChange},
    json::{get_at, items, text},
    place::path_of,
    problem::Problem,
    record_path::POD_TEMPLATE,
    resolve::template::{REPLICATED_JOBS, TemplateReader},
};

/// The lists of containers, in the order in which they are read.
const LISTS: [Field; 2] = [Field::InitContainers, Field::Containers];

/// Writes what changed between two specs. Unchanged values of the record keep their owner. Returns the problems of the changed fields.
///
/// A patch cannot add a replicated job or a container, so both specs have the same ones.
pub(super) fn write(
    before: &Value,
    after: &Value,
    record: &mut Record,
    journal: &mut Journal,
    source: &dyn Fn(Option<&FieldPath>) -> Source,
) -> Vec<Problem> {
    let mut fields: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for difference in differences(before, after) {
        if let Some((scope, field)) = recorded(record, &difference.path) {
            fields.entry(scope).or_default().insert(field);
            continue;
        }
        let path = FieldPath::of(["spec"]).join(&difference.path);
        journal.record_spec([SpecChange {
            source: source(Some(&path)),
            path,
            from: difference.from,
            to: difference.to,
        }]);
    }
    let mut changes = Changes {
        fields,
        record,
        journal,
        source,
        reader: TemplateReader::new(after),
    };
    changes.write();
    changes.reader.problems
}

/// Returns the field of the record at a path of the spec, or above it.
fn recorded(record: &Record, path: &FieldPath) -> Option<(EntryScope, Field)> {
    let [Segment::Field(jobs), job, job_path @ ..] = path.segments() else {
        return None;
    };
    let pod = below(job_path, &POD_TEMPLATE).filter(|_| jobs == "replicatedJobs")?;
    let set = record.pod_set_named(&job.text())?;
    let in_container = LISTS.into_iter().find_map(|list| {
        let (name, path) = below(pod, list.keys())?.split_first()?;
        let id = record.container_named(set, &name.text())?;
        Some((EntryScope::Container(id), Level::Container, path))
    });
    let (scope, level, path) =
        in_container.unwrap_or((EntryScope::PodSet(set), Level::PodSet, pod));
    let mut fields = Field::in_templates(level);
    let field = fields.find(|field| below(path, field.keys()).is_some())?;
    Some((scope, field))
}

/// Returns the rest of a path after these fields.
fn below<'s>(segments: &'s [Segment], fields: &[&str]) -> Option<&'s [Segment]> {
    let fits = |(segment, field): (&Segment, &&str)| matches!(segment, Segment::Field(name) if name == field);
    let (start, rest) = segments.split_at_checked(fields.len())?;
    start.iter().zip(fields).all(fits).then_some(rest)
}

/// The fields of the record that a patch changes.
struct Changes<'a, 'v> {
    fields: BTreeMap<EntryScope, BTreeSet<Field>>,
    record: &'a mut Record,
    journal: &'a mut Journal,
    source: &'a dyn Fn(Option<&FieldPath>) -> Source,
    /// The reader of the patched spec.
    reader: TemplateReader<'v>,
}

impl<'v> Changes<'_, 'v> {
    fn write(&mut self) {
        let at = StackPath::ROOT.fields(REPLICATED_JOBS);
        let jobs = items(self.reader.spec, "replicatedJobs");
        for ((index, job), position) in jobs.iter().enumerate().zip(0u32..) {
            let at = at.index(index);
            let at = at.fields(&POD_TEMPLATE);
            if let Some(set) = self.record.pod_sets.get_mut(index) {
                set.ancestor = Ancestor::of(job).map(|ancestor| ancestor.step.into());
            }
            let Some(pod) = get_at(job, &POD_TEMPLATE) else {
                continue;
            };
            self.write_scope(EntryScope::PodSet(position), pod, &at);
            for list in LISTS {
                let at = at.fields(list.keys());
                let containers = get_at(pod, list.keys()).and_then(Value::as_array);
                for (index, container) in containers.into_iter().flatten().enumerate() {
                    let id = self
                        .record
                        .container_named(position, text(container, "name"));
                    if let Some(id) = id {
                        self.write_scope(EntryScope::Container(id), container, &at.index(index));
                    }
                }
            }
        }
    }

    /// Writes the changed fields of one pod template or container.
    fn write_scope(&mut self, scope: EntryScope, json: &'v Value, at: &StackPath<'_>) {
        let fields = self.fields.remove(&scope);
        let mut new = Fields::default();
        let mut changed = Vec::new();
        for field in fields.into_iter().flatten() {
            self.reader.load_field(&mut new, field, json, at);
            let Some(old) = self.record.fields(scope) else {
                return;
            };
            let (old, new) = (old.all(field), new.all(field));
            let is_set = |entry: &&Entry| {
                old.get(&*entry.key)
                    .is_none_or(|held| held.datum != entry.datum)
            };
            let is_removed = |entry: &&Entry| new.get(&*entry.key).is_none();
            let set = new.iter().filter(is_set);
            let set = set.map(|entry| (field, entry.key.clone(), Some(entry.datum.clone())));
            let removed = old.iter().filter(is_removed);
            let removed = removed.map(|entry| (field, entry.key.clone(), None));
            changed.extend(set.chain(removed));
        }
        for (field, key, datum) in changed {
            let entry = EntryRef { scope, field, key };
            let source = (self.source)(path_of(self.record, &entry).as_ref());
            let change = self.record.write(entry, datum, Owner::Patch);
            self.journal.add(change, source);
        }
    }
}
