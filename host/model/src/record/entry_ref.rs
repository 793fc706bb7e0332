//! Places in a record, and changes to them.

use std::{fmt, sync::Arc};

use super::{ContainerId, Datum, Entry, Field, Owner, Record, ordered::Seat};

/// Whose field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryScope {
    /// The TrainJob's.
    Job,
    /// The pod set's at that position.
    PodSet(u32),
    /// That container's.
    Container(ContainerId),
}

/// One place in a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryRef {
    /// Whose field.
    pub scope: EntryScope,
    /// Which field.
    pub field: Field,
    /// Which of its values; empty where it holds one.
    pub key: Arc<str>,
}

/// A journal's entry: a place, what it held and what it holds now.
#[derive(Clone, Debug)]
pub struct Change {
    /// The entry.
    pub entry: EntryRef,
    /// What it held.
    pub old: Option<Entry>,
    /// What it holds; none where it was removed.
    pub new: Option<Datum>,
    /// Who changed it.
    pub owner: Owner,
    /// Why, in the writer's words.
    pub reason: Option<Arc<str>>,
    seat: Seat,
}

impl Record {
    /// Sets or removes (`None`) the value at a place. None where the pod set or container does not exist, or where
    /// nothing was to remove.
    pub fn write(
        &mut self,
        entry: EntryRef,
        new: Option<Datum>,
        owner: Owner,
        reason: Option<Arc<str>>,
    ) -> Option<Change> {
        let fields = self.fields_mut(entry.scope)?;
        let (seat, old) = fields.set(entry.field, &entry.key, new.clone(), owner)?;
        Some(Change {
            entry,
            old,
            new,
            owner,
            reason,
            seat,
        })
    }

    /// Takes changes back, the last one first: the record is then as it was before the first.
    pub fn undo(&mut self, changes: Vec<Change>) {
        for change in changes.into_iter().rev() {
            if let Some(fields) = self.fields_mut(change.entry.scope) {
                fields.undo(change.entry.field, change.seat, change.old);
            }
        }
    }

    /// The place in words; names stand in for positions.
    #[must_use]
    pub fn path(&self, place: &EntryRef) -> EntryPath {
        let (pod_set, container) = match place.scope {
            EntryScope::Job => (None, None),
            EntryScope::PodSet(at) => (self.pod_set(at).map(|p| p.name.clone()), None),
            EntryScope::Container(id) => {
                let container = self.containers.get(id.0 as usize);
                let pod_set = container
                    .and_then(|c| self.pod_set(c.pod_set))
                    .map(|p| p.name.clone());
                (pod_set, container.map(|c| (c.list, c.name.clone())))
            }
        };
        EntryPath {
            pod_set,
            container,
            field: place.field,
            key: place.key.clone(),
        }
    }
}

/// A place by names: how errors, `explain` and people speak of it. Keys come from guests, and are printed cleaned.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryPath {
    /// The pod set's name.
    pub pod_set: Option<Arc<str>>,
    /// The container's list and name.
    pub container: Option<(Field, Arc<str>)>,
    /// The field.
    pub field: Field,
    /// The key; empty where the field holds one value.
    pub key: Arc<str>,
}

impl EntryPath {
    /// The path without its key, to which other words of a claim's key can be set.
    pub fn stem(&self) -> impl fmt::Display {
        fmt::from_fn(|f| {
            if let Some(pod_set) = &self.pod_set {
                keyed(f, "pod-sets", pod_set)?;
                f.write_str(".")?;
            }
            if let Some((list, name)) = &self.container {
                keyed(f, list.name(), name)?;
                f.write_str(".")?;
            }
            f.write_str(self.field.name())
        })
    }
}

impl fmt::Display for EntryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stem = self.stem();
        if self.field.is_keyed() {
            keyed(f, stem, &self.key)
        } else {
            stem.fmt(f)
        }
    }
}

/// A name with a literal key behind it.
fn keyed(f: &mut fmt::Formatter<'_>, name: impl fmt::Display, key: &str) -> fmt::Result {
    write!(f, "{name}[")?;
    crate::claims::write_literal(f, &crate::text::clean(key))?;
    f.write_str("]")
}
