use std::sync::Arc;

use super::{Datum, Field};

/// Who added an entry, or set it last. The order is that in which entries stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// The runtime's author.
    Runtime,
    /// A runtime patch.
    Patch,
    /// The TrainJob's author.
    TrainJob,
    /// A plugin, by its place among the plan's plugins sorted by name.
    Plugin(u16),
}

impl Owner {
    /// As the contract's `env-owner` says it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runtime => "runtime",
            Self::Patch => "patch",
            Self::TrainJob => "trainjob",
            Self::Plugin(_) => "plugin",
        }
    }
}

/// One value of a field.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its key; empty where the field holds one value.
    pub key: Arc<str>,
    /// The value.
    pub datum: Datum,
    /// Who set it last.
    pub owner: Owner,
    /// Who added it: what decides where it stands.
    pub home: Owner,
}

/// The fields of one level.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    lists: Vec<(Field, Vec<Entry>)>,
}

impl Fields {
    /// All entries of a field, in order.
    #[must_use]
    pub fn all(&self, field: Field) -> &[Entry] {
        self.lists
            .iter()
            .find(|(f, _)| *f == field)
            .map_or(&[], |(_, entries)| entries)
    }

    /// The entry of that key.
    #[must_use]
    pub fn get(&self, field: Field, key: &str) -> Option<&Entry> {
        self.all(field).iter().find(|entry| *entry.key == *key)
    }

    /// The value of a field that holds one.
    #[must_use]
    pub fn one(&self, field: Field) -> Option<&Datum> {
        self.all(field).first().map(|entry| &entry.datum)
    }

    /// Adds an entry of the runtime as its author wrote it: the last one of a key counts, at the first one's place.
    pub fn load(&mut self, field: Field, key: &str, datum: Datum) {
        let entries = self.entries_mut(field);
        match entries.iter_mut().find(|entry| *entry.key == *key) {
            Some(entry) => entry.datum = datum,
            None => entries.push(Entry {
                key: key.into(),
                datum,
                owner: Owner::Runtime,
                home: Owner::Runtime,
            }),
        }
    }

    /// Sets or removes (`None`) the entry of a key. Returns where it stands or stood, and what it was.
    pub(super) fn set(
        &mut self,
        field: Field,
        key: &Arc<str>,
        datum: Option<Datum>,
        owner: Owner,
    ) -> (usize, Option<Entry>) {
        let entries = self.entries_mut(field);
        let found = entries.iter().position(|entry| entry.key == *key);
        match (found, datum) {
            (Some(at), Some(datum)) => {
                let old = entries.get_mut(at).map(|entry| {
                    let home = entry.home;
                    std::mem::replace(
                        entry,
                        Entry {
                            key: key.clone(),
                            datum,
                            owner,
                            home,
                        },
                    )
                });
                (at, old)
            }
            (Some(at), None) => (at, Some(entries.remove(at))),
            (None, Some(datum)) => {
                let at = entries
                    .iter()
                    .rposition(|entry| entry.home <= owner)
                    .map_or(0, |last| last + 1);
                entries.insert(
                    at,
                    Entry {
                        key: key.clone(),
                        datum,
                        owner,
                        home: owner,
                    },
                );
                (at, None)
            }
            (None, None) => (0, None),
        }
    }

    /// Takes back a [`Fields::set`] that returned `at` and `old`; in reverse order of the sets.
    pub(super) fn undo(&mut self, field: Field, at: usize, old: Option<Entry>, was_removal: bool) {
        let entries = self.entries_mut(field);
        match (old, was_removal) {
            (Some(old), true) => entries.insert(at.min(entries.len()), old),
            (Some(old), false) => {
                if let Some(entry) = entries.get_mut(at) {
                    *entry = old;
                }
            }
            (None, false) if at < entries.len() => drop(entries.remove(at)),
            (None, _) => {}
        }
    }

    fn entries_mut(&mut self, field: Field) -> &mut Vec<Entry> {
        let at = match self.lists.iter().position(|(f, _)| *f == field) {
            Some(at) => at,
            None => {
                self.lists.push((field, Vec::new()));
                self.lists.len() - 1
            }
        };
        // The index was found or made on the lines above.
        #[expect(
            clippy::indexing_slicing,
            reason = "the list at this index was found or made just above"
        )]
        &mut self.lists[at].1
    }
}

impl PartialEq for Fields {
    /// The same entries in the same order; which empty lists were ever touched does not count.
    fn eq(&self, other: &Self) -> bool {
        Field::ALL
            .iter()
            .all(|field| self.all(*field) == other.all(*field))
    }
}
