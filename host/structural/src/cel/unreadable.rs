//! Values that are valid, but that a server cannot convert for a rule.

use cel::common::{types::Type, value::Val};

static UNREADABLE: Type = Type::new_unspecified_type("unreadable");

/// A value that cannot be used: a rule that reads it fails.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unreadable;

impl Val for Unreadable {
    fn get_type(&self) -> &Type {
        &UNREADABLE
    }

    fn cel_type() -> &'static Type {
        &UNREADABLE
    }

    fn clone_as_boxed<'w>(&self) -> Box<dyn Val + 'w>
    where
        Self: 'w,
    {
        Box::new(*self)
    }
}
