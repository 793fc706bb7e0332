use std::sync::Arc;

use super::{
    Datum, Field, Owner,
    ordered::{Keyed, Ordered, Position},
};

/// An entry of a field.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its key; empty if the field holds one value.
    pub key: Arc<str>,
    /// The value.
    pub datum: Datum,
    /// Who set it last.
    pub owner: Owner,
    /// Who added it, which determines its position.
    pub home: Owner,
}

impl Keyed for Entry {
    type Key = Arc<str>;

    fn key(&self) -> &Arc<str> {
        &self.key
    }
}

/// The entries of one field, in order and by key.
pub type Entries = Ordered<Entry>;

/// The entries of a field that nobody wrote.
static NONE: Entries = Entries::new();

/// The result of [`Fields::set`]: the position of the entry, and the old entry.
pub(super) type SetResult = (Position, Option<Entry>);

/// The fields of one level. Copies share the entries of a field until one of them changes it, because a plugin writes few of the fields that
/// its copy of the record has.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    lists: Vec<(Field, Arc<Entries>)>,
}

impl Fields {
    /// All entries of a field.
    #[must_use]
    pub fn all(&self, field: Field) -> &Entries {
        self.lists
            .iter()
            .find(|(f, _)| *f == field)
            .map_or(&NONE, |(_, entries)| &**entries)
    }

    /// The entry of that key.
    #[must_use]
    pub fn get(&self, field: Field, key: &str) -> Option<&Entry> {
        self.all(field).get(key)
    }

    /// The value of a field that holds one.
    #[must_use]
    pub fn one(&self, field: Field) -> Option<&Datum> {
        self.all(field).first().map(|entry| &entry.datum)
    }

    /// Adds an entry of the runtime. If a key is repeated, the last value counts, at the position of the first.
    pub fn load(&mut self, field: Field, key: &str, datum: Datum) {
        let entries = self.entries_mut(field);
        let held = entries
            .position(key)
            .and_then(|position| entries.at_mut(position));
        if let Some(entry) = held {
            entry.datum = datum;
            return;
        }
        let entry = Entry {
            key: key.into(),
            datum,
            owner: Owner::Runtime,
            home: Owner::Runtime,
        };
        entries.push(Owner::Runtime, entry);
    }

    /// Sets or removes (`None`) the entry of a key. `None` if there was nothing to remove.
    pub(super) fn set(
        &mut self,
        field: Field,
        key: &Arc<str>,
        datum: Option<Datum>,
        owner: Owner,
    ) -> Option<SetResult> {
        let entries = self.entries_mut(field);
        let position = entries.position(&**key);
        let Some(datum) = datum else {
            let position = position?;
            return Some((position, entries.remove(position)));
        };
        let entry = |home| Entry {
            key: key.clone(),
            datum,
            owner,
            home,
        };
        match position.and_then(|position| Some((position, entries.at_mut(position)?))) {
            Some((position, held)) => {
                let new = entry(held.home);
                Some((position, Some(std::mem::replace(held, new))))
            }
            None => Some((entries.push(owner, entry(owner)), None)),
        }
    }

    /// Undoes a [`Fields::set`] that returned `position` and `old`. Sets are undone in reverse order.
    pub(super) fn undo(&mut self, field: Field, position: Position, old: Option<Entry>) {
        let entries = self.entries_mut(field);
        match (old, entries.at_mut(position)) {
            (Some(old), Some(held)) => *held = old,
            (Some(old), None) => entries.put(position, old),
            (None, _) => drop(entries.remove(position)),
        }
    }

    fn entries_mut(&mut self, field: Field) -> &mut Entries {
        let at = match self.lists.iter().position(|(f, _)| *f == field) {
            Some(at) => at,
            None => {
                self.lists.push((field, Arc::new(Entries::new())));
                self.lists.len() - 1
            }
        };
        #[expect(
            clippy::indexing_slicing,
            reason = "the list at this index was found or made just above"
        )]
        Arc::make_mut(&mut self.lists[at].1)
    }
}

impl PartialEq for Fields {
    /// Compares entries and their order; empty lists are ignored.
    fn eq(&self, other: &Self) -> bool {
        Field::ALL
            .iter()
            .all(|field| self.all(*field) == other.all(*field))
    }
}
