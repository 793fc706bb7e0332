//! The path of a field in an object, spelled as Kubernetes spells it.

use std::{
    borrow::{Borrow, Cow},
    fmt,
    str::FromStr,
};

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

impl Segment {
    /// The name, the key, or the position in digits.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Field(text) | Self::Key(text) => text.into(),
            Self::Index(at) => at.to_string().into(),
        }
    }
}

impl FieldPath {
    /// The object itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// The field that is found through these fields, from the root.
    pub fn of<I: IntoIterator<Item: AsRef<str>>>(fields: I) -> Self {
        Self::root().fields(fields)
    }

    /// The field that is found through these fields, from here.
    pub fn fields<I: IntoIterator<Item: AsRef<str>>>(&self, fields: I) -> Self {
        let fields = fields.into_iter();
        let fields = fields.map(|name| Segment::Field(name.as_ref().to_owned()));
        Self(self.0.iter().cloned().chain(fields).collect())
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

    /// The starts of this path, from the root to the path itself, each as its steps.
    pub fn starts(&self) -> impl Iterator<Item = &[Segment]> {
        (0..=self.0.len()).filter_map(|end| self.0.get(..end))
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

/// A map by paths can be asked for the steps of one.
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

/// A text that is no path of a field.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{text}` is no path of a field, as spec.trainer.env[2].name or metadata.labels[app]: {problem}"
)]
pub struct PathError {
    text: String,
    problem: &'static str,
}

impl FromStr for FieldPath {
    type Err = PathError;

    /// Reads what [`fmt::Display`] writes, and keys in quotes; a number in brackets is an index. The empty text is the
    /// object itself.
    fn from_str(text: &str) -> Result<Self, PathError> {
        let wrong = |problem| PathError {
            text: text.to_owned(),
            problem,
        };
        let mut segments = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let is_first = segments.is_empty();
            let (segment, behind) = match rest.strip_prefix('[') {
                Some(inside) => bracket(inside),
                None => field(rest, is_first),
            }
            .map_err(wrong)?;
            segments.push(segment);
            rest = behind;
        }
        Ok(Self(segments))
    }
}

/// A step with what stands behind it, or what is wrong.
type Step<'t> = Result<(Segment, &'t str), &'static str>;

fn field(text: &str, is_first: bool) -> Step<'_> {
    let name = match (text.strip_prefix('.'), is_first) {
        (Some(name), false) => name,
        (None, true) => text,
        (Some(_), true) => return Err("a dot has no field before it"),
        (None, false) => return Err("only `.` and `[` may follow a `]`"),
    };
    let end = name.find(['.', '[', ']']).unwrap_or(name.len());
    let (name, behind) = name.split_at(end);
    if name.is_empty() {
        return Err("a dot has no field behind it");
    }
    if behind.starts_with(']') {
        return Err("a `]` has no `[`");
    }
    Ok((Segment::Field(name.to_owned()), behind))
}

/// What stands behind a `[`: a position, a key, or a key in quotes.
fn bracket(inside: &str) -> Step<'_> {
    const OPEN: &str = "a `[` has no `]`";
    let quote = inside.chars().next().filter(|c| matches!(c, '"' | '\''));
    let Some(quote) = quote else {
        let (key, behind) = inside.split_once(']').ok_or(OPEN)?;
        if key.is_empty() || key.contains('[') {
            return Err("in brackets stands a position or a name");
        }
        let segment = match key.parse() {
            Ok(index) => Segment::Index(index),
            Err(_) => Segment::Key(key.to_owned()),
        };
        return Ok((segment, behind));
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
    let behind = rest.as_str().strip_prefix(']').ok_or(OPEN)?;
    Ok((Segment::Key(key), behind))
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
