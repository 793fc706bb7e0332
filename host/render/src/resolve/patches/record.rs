//! Writes the changes by a patch to the record.

use trainyard_api::FieldPath;
use trainyard_model::record::{Entry, EntryRef, EntryScope, Field, Level, Owner, Record};

use crate::{
    journal::{Journal, Source},
    place::path_of,
};

/// Updates the record to that of the patched template. Unchanged values keep their owner.
///
/// A patch cannot add a pod set or a container, so both records have the same ones.
pub(super) fn write(
    record: &mut Record,
    patched: &Record,
    journal: &mut Journal,
    source: &dyn Fn(Option<&FieldPath>) -> Source,
) {
    for (position, new) in (0u32..).zip(&patched.pod_sets) {
        if let Some(set) = record.pod_sets.get_mut(position as usize) {
            set.ancestor.clone_from(&new.ancestor);
        }
        let mut recorder = Recorder {
            record,
            patched,
            journal,
            source,
        };
        let scope = EntryScope::PodSet(position);
        recorder.fields(Level::PodSet, scope, scope);
        for (old, new) in recorder.containers(position) {
            recorder.fields(Level::Container, old, new);
        }
    }
}

struct Recorder<'a> {
    record: &'a mut Record,
    patched: &'a Record,
    journal: &'a mut Journal,
    source: &'a dyn Fn(Option<&FieldPath>) -> Source,
}

impl Recorder<'_> {
    /// Returns the containers of a pod set in both records.
    fn containers(&self, pod_set: u32) -> Vec<(EntryScope, EntryScope)> {
        let lists = [Field::InitContainers, Field::Containers].into_iter();
        let all = lists.flat_map(|list| self.record.containers(pod_set, list));
        all.filter_map(|id| {
            let name = &self.record.container(id)?.name;
            let new = self.patched.container_named(pod_set, name)?;
            Some((EntryScope::Container(id), EntryScope::Container(new)))
        })
        .collect()
    }

    fn fields(&mut self, level: Level, scope: EntryScope, patched: EntryScope) {
        let found = [(&*self.record, scope), (self.patched, patched)];
        let [Some(old), Some(new)] = found.map(|(record, scope)| record.fields(scope)) else {
            return;
        };
        let mut changed = Vec::new();
        for field in Field::in_templates(level) {
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
            self.journal.record(change, source);
        }
    }
}
