//! Paths of values that are walked through.

use trainyard_api::FieldPath;

/// The path to a value, as a list on the stack. A [`FieldPath`] is only created for the few values that are reported.
#[derive(Clone, Copy)]
pub(crate) struct Trail<'t> {
    pub(crate) before: Option<&'t Trail<'t>>,
    pub(crate) step: Step<'t>,
}

#[derive(Clone, Copy)]
pub(crate) enum Step<'t> {
    Member(&'t str),
    Key(&'t str),
    Item(usize),
}

impl<'t> Trail<'t> {
    /// Returns the path of a member of the root.
    pub(crate) const fn root(name: &'t str) -> Self {
        Self {
            before: None,
            step: Step::Member(name),
        }
    }

    /// Returns the path of a member of the value at this path.
    pub(crate) const fn member(&'t self, name: &'t str) -> Self {
        Self {
            before: Some(self),
            step: Step::Member(name),
        }
    }

    /// Returns the path of an entry of the map at this path, whose key may be any text.
    pub(crate) const fn key(&'t self, key: &'t str) -> Self {
        Self {
            before: Some(self),
            step: Step::Key(key),
        }
    }

    /// Returns the path of an item of the list at this path.
    pub(crate) const fn item(&'t self, at: usize) -> Self {
        Self {
            before: Some(self),
            step: Step::Item(at),
        }
    }

    /// Returns the path; the root if there is no trail.
    pub(crate) fn path(trail: Option<&Self>) -> FieldPath {
        let Some(Trail { before, step }) = trail else {
            return FieldPath::root();
        };
        let before = Trail::path(*before);
        match step {
            Step::Member(name) => before.field(*name),
            Step::Key(key) => before.key(*key),
            Step::Item(at) => before.index(*at),
        }
    }
}
