//! Values that pass for a type, and that a server still cannot hand to a rule.

use cel::common::types::Type;
use cel::common::value::Val;

static UNREADABLE: Type = Type::new_unspecified_type("unreadable");

/// A value that no rule can do anything with: a rule that touches it fails.
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
