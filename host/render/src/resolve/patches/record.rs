//! What a patch changes, written into the record.

use trainyard_api::FieldPath;
use trainyard_model::record::{Change, Field, Owner, Place, PlaceScope, Record};

use crate::{
    place::path_of,
    resolve::template::{CONTAINER_FIELDS, POD_SET_FIELDS},
};

/// Makes the record hold what the patched template's holds. What both hold keeps its owner.
///
/// A patch adds no pod set and no container, so that both records have the same.
pub(super) fn write(
    record: &mut Record,
    patched: &Record,
    reason: &dyn Fn(&FieldPath) -> String,
) -> Vec<Change> {
    let mut changes = Vec::new();
    for (position, new) in (0u32..).zip(&patched.pod_sets) {
        if let Some(set) = record.pod_sets.get_mut(position as usize) {
            set.ancestor.clone_from(&new.ancestor);
        }
        let mut recorder = Recorder {
            record,
            patched,
            reason,
            changes: &mut changes,
        };
        let scope = PlaceScope::PodSet(position);
        recorder.fields(POD_SET_FIELDS, scope, scope);
        for (old, new) in recorder.containers(position) {
            recorder.fields(CONTAINER_FIELDS, old, new);
        }
    }
    changes
}

struct Recorder<'a> {
    record: &'a mut Record,
    patched: &'a Record,
    reason: &'a dyn Fn(&FieldPath) -> String,
    changes: &'a mut Vec<Change>,
}

impl Recorder<'_> {
    /// The containers of a pod set, each with itself in the patched record.
    fn containers(&self, pod_set: u32) -> Vec<(PlaceScope, PlaceScope)> {
        let lists = [Field::InitContainers, Field::Containers].into_iter();
        let all = lists.flat_map(|list| self.record.containers(pod_set, list));
        all.filter_map(|id| {
            let name = &self.record.container(id)?.name;
            let new = self.patched.container_named(pod_set, name)?;
            Some((PlaceScope::Container(id), PlaceScope::Container(new)))
        })
        .collect()
    }

    fn fields(&mut self, fields: &[Field], scope: PlaceScope, patched: PlaceScope) {
        for field in fields {
            let entries = |record: &Record, scope| {
                let fields = record.fields(scope);
                fields.map_or_else(Vec::new, |fields| fields.all(*field).to_vec())
            };
            let (old, new) = (entries(self.record, scope), entries(self.patched, patched));
            let held = |key: &str| old.iter().find(|entry| *entry.key == *key);
            let kept = |key: &str| new.iter().any(|entry| *entry.key == *key);
            let removed = old.iter().filter(|entry| !kept(&entry.key));
            let set = new
                .iter()
                .filter(|entry| held(&entry.key).is_none_or(|held| held.datum != entry.datum));
            let changed = set.map(|entry| (entry.key.clone(), Some(entry.datum.clone())));
            for (key, datum) in changed.chain(removed.map(|entry| (entry.key.clone(), None))) {
                let place = Place {
                    scope,
                    field: *field,
                    key,
                };
                let path = path_of(self.record, &place);
                let reason = path.map(|path| (self.reason)(&path).into());
                let change = self.record.write(place, datum, Owner::Patch, reason);
                self.changes.extend(change);
            }
        }
    }
}
