//! The path of a field in an object, spelled as Kubernetes spells it.

use std::fmt;

/// The path of a field from the root of its object: `spec.trainer.env[2].name`, `metadata.labels[app]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Vec<Segment>);

/// One step of a [`FieldPath`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// A field of an object: `.name`.
    Field(String),
    /// An item of a list: `[2]`, from 0.
    Index(usize),
    /// A key of a map whose keys are the user's: `[app]`.
    Key(String),
}

impl FieldPath {
    /// The object itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// The field `name` of what this path names.
    pub fn field(&self, name: impl Into<String>) -> Self {
        self.with(Segment::Field(name.into()))
    }

    /// The item at `index`, from 0, of the list that this path names.
    pub fn index(&self, index: usize) -> Self {
        self.with(Segment::Index(index))
    }

    /// The value of `key` in the map that this path names.
    pub fn key(&self, key: impl Into<String>) -> Self {
        self.with(Segment::Key(key.into()))
    }

    /// Whether the path names the object itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The steps, from the root.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// The place that `below` names from here.
    pub fn join(&self, below: &Self) -> Self {
        Self([self.0.as_slice(), &below.0].concat())
    }

    /// The place below `to` that this path is below `from`; None where it is not.
    pub fn moved(&self, from: &Self, to: &Self) -> Option<Self> {
        let below = self.0.strip_prefix(from.0.as_slice())?;
        Some(Self([&to.0, below].concat()))
    }

    fn with(&self, segment: Segment) -> Self {
        let mut segments = Vec::with_capacity(self.0.len() + 1);
        segments.extend_from_slice(&self.0);
        segments.push(segment);
        Self(segments)
    }
}

impl FromIterator<Segment> for FieldPath {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Self {
        Self(segments.into_iter().collect())
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Field(name) if at == 0 => write!(f, "{name}")?,
                Segment::Field(name) => write!(f, ".{name}")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) => write!(f, "[{key}]")?,
            }
        }
        Ok(())
    }
}
