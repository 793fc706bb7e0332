//! The path of a walk through a document, without allocations until an error needs it.

use crate::path::{FieldPath, Segment};

/// The path of a value in a document, as a linked list on the stack of the walk.
#[derive(Clone, Copy)]
pub struct StackPath<'a> {
    parent: Option<&'a StackPath<'a>>,
    part: Part<'a>,
}

#[derive(Clone, Copy)]
enum Part<'a> {
    Root,
    Field(&'a str),
    Fields(&'a [&'a str]),
    Index(usize),
    Key(&'a str),
}

impl<'a> StackPath<'a> {
    /// The path of the document itself.
    pub const ROOT: StackPath<'static> = StackPath {
        parent: None,
        part: Part::Root,
    };

    /// The path of a field of this object: `.name`.
    #[must_use]
    pub fn field(&'a self, name: &'a str) -> StackPath<'a> {
        self.with(Part::Field(name))
    }

    /// The path of nested fields below this path.
    #[must_use]
    pub fn fields(&'a self, names: &'a [&'a str]) -> StackPath<'a> {
        self.with(Part::Fields(names))
    }

    /// The path of an item of this list: `[2]`.
    #[must_use]
    pub fn index(&'a self, index: usize) -> StackPath<'a> {
        self.with(Part::Index(index))
    }

    /// The path of the value of a key of this map: `[key]`.
    #[must_use]
    pub fn key(&'a self, key: &'a str) -> StackPath<'a> {
        self.with(Part::Key(key))
    }

    /// The path from the root of the document.
    #[must_use]
    pub fn path(&self) -> FieldPath {
        let field = |name: &str| Segment::Field(name.to_owned());
        let mut steps = Vec::new();
        let mut here = Some(self);
        while let Some(at) = here {
            match at.part {
                Part::Root => {}
                Part::Field(name) => steps.push(field(name)),
                Part::Fields(names) => steps.extend(names.iter().rev().map(|name| field(name))),
                Part::Index(index) => steps.push(Segment::Index(index)),
                Part::Key(key) => steps.push(Segment::Key(key.to_owned())),
            }
            here = at.parent;
        }
        steps.into_iter().rev().collect()
    }

    fn with(&'a self, part: Part<'a>) -> StackPath<'a> {
        StackPath {
            parent: Some(self),
            part,
        }
    }
}
