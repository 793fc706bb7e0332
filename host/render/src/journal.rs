//! The journal of a rendering: all changes between the runtime's template and the JobSet, in order, each with its source. `assemble` writes
//! the changes, and `explain` reports their sources.

use std::sync::Arc;

use serde_json::Value;
use trainyard_api::FieldPath;
use trainyard_model::{
    call::Write,
    plugin_info::PluginId,
    record::{Change, EntryRef, Field},
    session::Committed,
};

/// The source of a change.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// A field of the runtime, by the host's rules.
    Runtime { field: FieldPath },
    /// A field of a runtime patch, as the user wrote it.
    Patch { manager: Arc<str>, field: FieldPath },
    /// A field of the TrainJob.
    TrainJob { field: FieldPath },
    /// `numNodes` at this field of the TrainJob or the runtime, assigned to a pod set by the `nodeSets` of a plugin.
    NodeSets { plugin: PluginId, field: FieldPath },
    /// A plugin, with the reason that it gave.
    Plugin {
        plugin: PluginId,
        reason: Option<Arc<str>>,
    },
}

impl Source {
    /// Returns the field of the runtime patch. `None` if the source is not a patch.
    pub(crate) const fn patch_field(&self) -> Option<&FieldPath> {
        match self {
            Self::Patch { field, .. } => Some(field),
            _ => None,
        }
    }

    /// Returns the field of the TrainJob that has the value. `None` if the source is another object or a plugin.
    pub(crate) const fn train_job_field(&self) -> Option<&FieldPath> {
        match self {
            Self::Patch { field, .. } | Self::TrainJob { field } => Some(field),
            _ => None,
        }
    }
}

/// A change of the record.
#[derive(Debug)]
pub(crate) struct JournalEntry {
    pub(crate) change: Change,
    pub(crate) source: Source,
}

impl JournalEntry {
    /// Whether the host changed the number of pods or jobs of a pod set.
    pub(crate) const fn is_count(&self) -> bool {
        let is_count = matches!(self.change.entry.field, Field::Count | Field::Replicas);
        is_count && !matches!(self.source, Source::Patch { .. } | Source::Plugin { .. })
    }
}

/// A change of a field of the JobSet's spec that the record does not model, such as a toleration or a security context.
#[derive(Debug)]
pub(crate) struct SpecChange {
    /// The path in the JobSet, with names.
    pub(crate) path: FieldPath,
    /// The old value. `None` if there was none.
    pub(crate) from: Option<Value>,
    /// The new value. `None` if it was removed.
    pub(crate) to: Option<Value>,
    pub(crate) source: Source,
}

/// All changes of one rendering, in order.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    entries: Vec<JournalEntry>,
    spec_changes: Vec<SpecChange>,
}

impl Journal {
    /// Adds a change of the record, if there is one.
    pub(crate) fn add(&mut self, change: Option<Change>, source: Source) {
        let entry = change.map(|change| JournalEntry { change, source });
        self.entries.extend(entry);
    }

    /// Adds changes of fields that the record does not model.
    pub(crate) fn record_spec(&mut self, changes: impl IntoIterator<Item = SpecChange>) {
        self.spec_changes.extend(changes);
    }

    /// Adds the writes of plugins.
    pub(crate) fn record_plugins(&mut self, committed: Vec<Committed>) {
        for Committed { plugin, writes } in committed {
            self.entries.reserve(writes.len());
            for write in writes {
                let source = Source::Plugin {
                    plugin: plugin.clone(),
                    reason: write.reason,
                };
                self.add(Some(write.change), source);
            }
        }
    }

    /// Returns the changes of the record by plugins.
    pub(crate) fn by_plugins(&self) -> impl Iterator<Item = Write> {
        self.entries.iter().filter_map(|entry| match &entry.source {
            Source::Plugin { reason, .. } => Some(Write {
                change: entry.change.clone(),
                reason: reason.clone(),
            }),
            _ => None,
        })
    }

    pub(crate) fn entries(&self) -> &[JournalEntry] {
        &self.entries
    }

    pub(crate) fn spec_changes(&self) -> &[SpecChange] {
        &self.spec_changes
    }

    /// Returns the entries of the record that changed.
    pub(crate) fn changed(&self) -> impl Iterator<Item = &EntryRef> {
        self.entries.iter().map(|entry| &entry.change.entry)
    }

    /// Returns the changes of the record by runtime patches, each with the field of the patch.
    pub(crate) fn by_patches(&self) -> impl Iterator<Item = (&Change, &FieldPath)> {
        let entries = self.entries.iter();
        entries.filter_map(|entry| Some((&entry.change, entry.source.patch_field()?)))
    }
}
