//! Which fields rules read.

use std::collections::BTreeSet;

/// The fields of `self` and `oldSelf` that the rules of one place read. Other fields are not converted for them.
#[derive(Clone, Debug, Default)]
pub(super) struct Reads {
    all: bool,
    fields: BTreeSet<String>,
}

impl Reads {
    /// Whether the rules read the field, by its name in CEL.
    pub(super) fn needs(&self, field: &str) -> bool {
        self.all || self.fields.contains(field)
    }

    /// Adds a field, by its name in CEL.
    pub(super) fn add(&mut self, field: &str) {
        self.fields.insert(field.to_owned());
    }

    /// Adds all fields, for a rule that uses `self` as a whole.
    pub(super) fn read_all(&mut self) {
        self.all = true;
    }
}
