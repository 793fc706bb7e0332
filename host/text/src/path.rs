//! The path of a field in an object, spelled as Kubernetes spells it.

use std::{
    borrow::{Borrow, Cow},
    fmt,
    str::FromStr,
};

use thiserror::Error;

/// The path of a field from the root of its object: `spec.trainer.env[2].name`, `metadata.labels[app]`.
///
/// Methods that extend a path return a copy, because most callers extend one path several times. A walk through a whole document uses a
/// [`StackPath`](crate::StackPath) instead.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Vec<Segment>);

/// One step of a [`FieldPath`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// A field of an object: `.name`.
    Field(String),
    /// An item of a list: `[2]`, from 0.
    Index(usize),
    /// A key of a map with arbitrary keys: `[app]`.
    Key(String),
}

impl Segment {
    /// Returns the name, the key, or the position in digits.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Field(text) | Self::Key(text) => text.into(),
            Self::Index(at) => at.to_string().into(),
        }
    }
}

impl FieldPath {
    /// Returns the path of the object itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Returns the path of nested fields, from the root.
    pub fn of<I: IntoIterator<Item: AsRef<str>>>(fields: I) -> Self {
        Self::root().fields(fields)
    }

    /// Returns the path of nested fields below this path.
    pub fn fields<I: IntoIterator<Item: AsRef<str>>>(&self, fields: I) -> Self {
        let fields = fields.into_iter();
        let fields = fields.map(|name| Segment::Field(name.as_ref().to_owned()));
        Self(self.0.iter().cloned().chain(fields).collect())
    }

    /// Returns the path of the field `name` of this object.
    pub fn field(&self, name: impl Into<String>) -> Self {
        self.with(Segment::Field(name.into()))
    }

    /// Returns the path of the item `index`, from 0, of this list.
    pub fn index(&self, index: usize) -> Self {
        self.with(Segment::Index(index))
    }

    /// Returns the path of the value of `key` in this map.
    pub fn key(&self, key: impl Into<String>) -> Self {
        self.with(Segment::Key(key.into()))
    }

    /// Returns whether this is the path of the object itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the steps from the root.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Returns the path that is at `below` from this path.
    pub fn join(&self, below: &Self) -> Self {
        Self([self.0.as_slice(), &below.0].concat())
    }

    /// Returns the steps of each prefix of this path, from the root to the path itself.
    pub fn starts(&self) -> impl Iterator<Item = &[Segment]> {
        (0..=self.0.len()).filter_map(|end| self.0.get(..end))
    }

    /// Returns this path with the prefix `from` replaced by `to`; `None` if it does not have the prefix.
    pub fn moved(&self, from: &Self, to: &Self) -> Option<Self> {
        let below = self.0.strip_prefix(from.0.as_slice())?;
        Some(Self([&to.0, below].concat()))
    }

    /// Returns the path at a JSON pointer (RFC 6901) below this path.
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

/// A map with paths as keys can be searched for a slice of steps.
impl Borrow<[Segment]> for FieldPath {
    fn borrow(&self) -> &[Segment] {
        &self.0
    }
}

impl FromIterator<Segment> for FieldPath {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Self {
        Self(segments.into_iter().collect())
    }
}

/// A text that is not a field path.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{text}` is not a field path, such as spec.trainer.env[2].name or metadata.labels[app]: {problem}"
)]
pub struct PathError {
    text: String,
    problem: &'static str,
}

impl FromStr for FieldPath {
    type Err = PathError;

    /// Parses the output of [`fmt::Display`]. Keys can also be quoted, and have to be if they are numbers, contain a bracket or begin with a
    /// quote: an API server prints them without quotes, and so does [`fmt::Display`]. A number in brackets is an index. The empty text is the
    /// path of the object itself.
    fn from_str(text: &str) -> Result<Self, PathError> {
        let wrong = |problem| PathError {
            text: text.to_owned(),
            problem,
        };
        let mut segments = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let is_first = segments.is_empty();
            let (segment, after) = match rest.strip_prefix('[') {
                Some(inside) => bracket(inside),
                None => field(rest, is_first),
            }
            .map_err(wrong)?;
            segments.push(segment);
            rest = after;
        }
        Ok(Self(segments))
    }
}

/// A segment and the text after it, or what is wrong.
type ParsedSegment<'t> = Result<(Segment, &'t str), &'static str>;

fn field(text: &str, is_first: bool) -> ParsedSegment<'_> {
    let name = match (text.strip_prefix('.'), is_first) {
        (Some(name), false) => name,
        (None, true) => text,
        (Some(_), true) => return Err("a dot has no field before it"),
        (None, false) => return Err("only `.` and `[` may follow a `]`"),
    };
    let end = name.find(['.', '[', ']']).unwrap_or(name.len());
    let (name, after) = name.split_at(end);
    if name.is_empty() {
        return Err("a dot has no field after it");
    }
    if after.starts_with(']') {
        return Err("a `]` has no `[`");
    }
    Ok((Segment::Field(name.to_owned()), after))
}

/// Parses the text after a `[`: a position, a key, or a key in quotes.
fn bracket(inside: &str) -> ParsedSegment<'_> {
    const OPEN: &str = "a `[` has no `]`";
    let quote = inside.chars().next().filter(|c| matches!(c, '"' | '\''));
    let Some(quote) = quote else {
        let (key, after) = inside.split_once(']').ok_or(OPEN)?;
        if key.is_empty() || key.contains('[') {
            return Err("brackets must contain a position or a name");
        }
        let segment = match key.parse() {
            Ok(index) => Segment::Index(index),
            Err(_) => Segment::Key(key.to_owned()),
        };
        return Ok((segment, after));
    };
    let mut key = String::new();
    let mut rest = inside.chars();
    rest.next();
    loop {
        match rest.next().ok_or("a quote is not closed")? {
            '\\' => key.push(rest.next().ok_or(OPEN)?),
            c if c == quote => break,
            c => key.push(c),
        }
    }
    let after = rest.as_str().strip_prefix(']').ok_or(OPEN)?;
    Ok((Segment::Key(key), after))
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
