//! The path of a field in an object, spelled as Kubernetes spells it.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

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

    /// The field that a JSON pointer (RFC 6901) means below this path.
    #[must_use]
    pub fn below_pointer(&self, pointer: &str) -> Self {
        let step = |path: Self, step: &str| match step.parse() {
            Ok(index) => path.index(index),
            Err(_) => path.field(step.replace("~1", "/").replace("~0", "~")),
        };
        pointer.split('/').skip(1).fold(self.clone(), step)
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

/// A text that is no path of a field.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}` is no path of a field, as spec.trainer.env[2].name or metadata.labels[app]")]
pub struct PathError {
    text: String,
}

impl FromStr for FieldPath {
    type Err = PathError;

    /// Reads what [`fmt::Display`] writes; a number in brackets is an index. The empty text is the object itself.
    fn from_str(text: &str) -> Result<Self, PathError> {
        let wrong = || PathError {
            text: text.to_owned(),
        };
        let mut segments = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix('[') {
                let (key, behind) = inside.split_once(']').ok_or_else(wrong)?;
                segments.push(match key.parse() {
                    _ if key.is_empty() => return Err(wrong()),
                    Ok(index) => Segment::Index(index),
                    Err(_) => Segment::Key(key.to_owned()),
                });
                rest = behind;
            } else {
                let name = match rest.strip_prefix('.') {
                    Some(name) if !segments.is_empty() => name,
                    None if segments.is_empty() => rest,
                    _ => return Err(wrong()),
                };
                let end = name.find(['.', '[', ']']).unwrap_or(name.len());
                let (name, behind) = name.split_at(end);
                if name.is_empty() {
                    return Err(wrong());
                }
                segments.push(Segment::Field(name.to_owned()));
                rest = behind;
            }
        }
        Ok(Self(segments))
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for text in [
            "",
            "spec",
            "spec.trainer.env[2].name",
            "metadata.labels[app.kubernetes.io/name]",
            "metadata.annotations[a].b[0][1]",
        ] {
            let path: FieldPath = text.parse().unwrap();
            assert_eq!(path.to_string(), text);
        }
        let path: FieldPath = "a[0][b]".parse().unwrap();
        assert_eq!(path, FieldPath::root().field("a").index(0).key("b"));
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in ["[", "a[", "a[]", ".a", "a..b", "a.", "a[0]b", "a]"] {
            assert!(text.parse::<FieldPath>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_pointer_is_unescaped() {
        let path = FieldPath::root()
            .field("spec")
            .below_pointer("/a~1b/0/c~0d");
        assert_eq!(path.to_string(), "spec.a/b[0].c~d");
    }
}
