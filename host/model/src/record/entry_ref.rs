//! References to the entries of a record, and changes of them.

use std::{fmt, sync::Arc};

use super::{ContainerId, Datum, Entry, Field, Owner, Record, ordered::Position};
use crate::text::{clean, write_literal};

/// What an entry belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryScope {
    /// The TrainJob.
    Job,
    /// The pod set at a position.
    PodSet(u32),
    /// A container.
    Container(ContainerId),
}

/// Identifies one entry of a record, whether or not it exists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryRef {
    /// What the entry belongs to.
    pub scope: EntryScope,
    /// The field.
    pub field: Field,
    /// The key; empty if the field holds one value.
    pub key: Arc<str>,
}

/// A change of one entry.
#[derive(Clone, Debug)]
pub struct Change {
    /// The entry.
    pub entry: EntryRef,
    /// The old entry. `None` if there was none.
    pub old: Option<Entry>,
    /// The new value. `None` if the entry was removed.
    pub new: Option<Datum>,
    /// Who changed it.
    pub owner: Owner,
    position: Position,
}

impl Record {
    /// Sets or removes (`None`) the value of an entry. Returns `None` if the pod set or container does not exist, or if there was
    /// nothing to remove.
    pub fn write(&mut self, entry: EntryRef, new: Option<Datum>, owner: Owner) -> Option<Change> {
        let fields = self.fields_mut(entry.scope)?;
        let (position, old) = fields.set(entry.field, &entry.key, new.clone(), owner)?;
        Some(Change {
            entry,
            old,
            new,
            owner,
            position,
        })
    }

    /// Undoes changes, the last one first, so the record is as it was before them.
    pub fn undo(&mut self, changes: impl DoubleEndedIterator<Item = Change>) {
        for change in changes.rev() {
            if let Some(fields) = self.fields_mut(change.entry.scope) {
                fields.undo(change.entry.field, change.position, change.old);
            }
        }
    }

    /// Returns the path of an entry, with names instead of positions.
    #[must_use]
    pub fn path(&self, entry: &EntryRef) -> EntryPath {
        let (pod_set, container) = match entry.scope {
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
            field: entry.field,
            key: entry.key.clone(),
        }
    }
}

/// The path of an entry by names, as errors and `explain` print it. Keys come from guests, and are cleaned when they are printed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryPath {
    /// The pod set's name.
    pub pod_set: Option<Arc<str>>,
    /// The container's list and name.
    pub container: Option<(Field, Arc<str>)>,
    /// The field.
    pub field: Field,
    /// The key; empty if the field holds one value.
    pub key: Arc<str>,
}

impl EntryPath {
    /// Returns the path without its key.
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

/// A name followed by a literal key.
fn keyed(f: &mut fmt::Formatter<'_>, name: impl fmt::Display, key: &str) -> fmt::Result {
    write!(f, "{name}[")?;
    write_literal(f, &clean(key))?;
    f.write_str("]")
}
