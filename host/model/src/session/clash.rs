//! Conflicts between plugins of one TrainJob that their claims do not show. The findings do not depend on which legal order the plugins
//! ran in.

use std::collections::BTreeMap;

use super::{Committed, Emitted, Session};
use crate::{
    plugin_info::PluginId,
    record::{EntryPath, EntryRef},
};

/// Two plugins changed the same entry without a declared order. `first` is the first by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteConflict {
    /// One of them.
    pub first: PluginId,
    /// The other.
    pub second: PluginId,
    /// The entry; the first one by path if there are several.
    pub place: EntryPath,
    /// The number of further entries that both changed.
    pub more: usize,
}

/// Two plugins emitted the same object. `first` is the first by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateObject {
    /// One of them.
    pub first: PluginId,
    /// The other.
    pub second: PluginId,
    /// The object's kind.
    pub kind: String,
    /// The object's name.
    pub name: String,
}

impl Session {
    /// Finds the pairs of plugins that changed the same entry without an order that `is_declared` knows. The actual
    /// changes are compared, because claims do not show everything, such as what a plugin writes into the containers
    /// that it added.
    #[must_use]
    pub fn find_write_conflicts(
        &self,
        is_declared: impl Fn(&PluginId, &PluginId) -> bool,
    ) -> Vec<WriteConflict> {
        // Most TrainJobs have one plugin that writes.
        if self.committed.len() < 2 {
            return Vec::new();
        }
        let mut by_place: BTreeMap<&EntryRef, Vec<&PluginId>> = BTreeMap::new();
        for Committed { plugin, writes } in &self.committed {
            for write in writes {
                let authors = by_place.entry(&write.change.entry).or_default();
                if !authors.contains(&plugin) {
                    authors.push(plugin);
                }
            }
        }
        let mut found: BTreeMap<(&PluginId, &PluginId), WriteConflict> = BTreeMap::new();
        for (place, mut authors) in by_place {
            authors.sort();
            for (first, second) in pairs(&authors).filter(|(a, b)| !is_declared(a, b)) {
                let place = self.record.path(place);
                found
                    .entry((first, second))
                    .and_modify(|find_write_conflicts| {
                        find_write_conflicts.more += 1;
                        if place < find_write_conflicts.place {
                            find_write_conflicts.place = place.clone();
                        }
                    })
                    .or_insert_with(|| WriteConflict {
                        first: first.clone(),
                        second: second.clone(),
                        place,
                        more: 0,
                    });
            }
        }
        found.into_values().collect()
    }

    /// Finds the objects that more than one plugin emitted.
    #[must_use]
    pub fn find_duplicate_objects(&self) -> Vec<DuplicateObject> {
        let mut by_name: BTreeMap<(&str, &str), Vec<&PluginId>> = BTreeMap::new();
        for Emitted { plugin, object } in &self.emitted {
            let authors = by_name
                .entry((object.kind.kind(), object.name.as_str()))
                .or_default();
            if !authors.contains(&plugin) {
                authors.push(plugin);
            }
        }
        let mut found = Vec::new();
        for ((kind, name), mut authors) in by_name {
            authors.sort();
            found.extend(pairs(&authors).map(|(first, second)| DuplicateObject {
                first: first.clone(),
                second: second.clone(),
                kind: kind.to_owned(),
                name: name.to_owned(),
            }));
        }
        found
    }
}

/// Each pair of plugins.
fn pairs<'i, 'a>(
    ids: &'i [&'a PluginId],
) -> impl Iterator<Item = (&'a PluginId, &'a PluginId)> + use<'i, 'a> {
    let firsts = ids.iter().enumerate();
    firsts.flat_map(|(at, first)| ids.iter().skip(at + 1).map(move |second| (*first, *second)))
}
