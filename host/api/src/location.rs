//! Locations in the input of a run: file, line, document, object and field.

use std::fmt;

use thiserror::Error;

use crate::{
    path::{FieldPath, Segment},
    yaml::DocumentText,
};

/// The name of standard input in messages.
pub const STANDARD_INPUT: &str = "standard input";

/// The document from which an object was read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// The file as the user named it; "standard input" for `-`.
    pub file: String,
    /// The number of the document in the file, from 1. Empty documents are counted.
    pub document: usize,
    /// The indices, from 0, in the lists that contain the object; usually empty.
    pub items: Vec<usize>,
    /// The text of the document.
    pub text: DocumentText,
}

impl Source {
    /// Returns a document of a file.
    pub fn new(file: impl Into<String>, document: usize) -> Self {
        Self {
            file: file.into(),
            document,
            items: Vec::new(),
            text: DocumentText::default(),
        }
    }

    /// Returns an item of the list that is read from this source.
    #[must_use]
    pub fn item(&self, index: usize) -> Self {
        let mut source = self.clone();
        source.items.push(index);
        source
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Location::from(self).fmt(f)
    }
}

/// The kind, namespace and name of an object, printed as `TrainJob ml/bert`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    pub kind: String,
    /// Its namespace, if it has one.
    pub namespace: Option<String>,
    pub name: String,
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// A location in the input: file, document, object and field, as far as they are known. It is printed with the line of the field, or
/// else with the number of the document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Location {
    /// The file as the user named it.
    pub file: String,
    /// The number of the document in the file, from 1; `None` for the file as a whole.
    pub document: Option<usize>,
    /// The indices in the lists (`kind: List`) that contain the object.
    pub items: Vec<usize>,
    pub object: Option<ObjectId>,
    /// The field of the object; the root for the object as a whole.
    pub field: FieldPath,
    /// The field whose line is printed if `field` is not set, because the message names the field itself.
    pub line_of: Option<FieldPath>,
    /// The text of the document, in which the line is found.
    pub text: DocumentText,
}

impl Location {
    /// Returns the location of a whole file.
    pub fn file(file: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            ..Self::default()
        }
    }

    /// Returns the line of the field, if the text of its document is known.
    pub fn line(&self) -> Option<usize> {
        self.text.line(&self.steps())
    }

    /// Returns the text of the field, if it is a scalar without quotes and the text of its document is known.
    #[must_use]
    pub fn plain_scalar(&self) -> Option<&str> {
        self.text.plain_scalar(&self.steps())
    }

    /// Returns the steps to the field from the root of the document.
    fn steps(&self) -> Vec<Segment> {
        let items = self.items.iter();
        let to_object =
            items.flat_map(|at| [Segment::Field("items".to_owned()), Segment::Index(*at)]);
        let field = self.line_of.as_ref().unwrap_or(&self.field);
        to_object.chain(field.segments().iter().cloned()).collect()
    }

    /// Returns the location of a field.
    #[must_use]
    pub fn at(mut self, field: FieldPath) -> Self {
        self.field = field;
        self
    }
}

impl From<&Source> for Location {
    fn from(source: &Source) -> Self {
        Self {
            file: source.file.clone(),
            document: Some(source.document),
            items: source.items.clone(),
            text: source.text.clone(),
            ..Self::default()
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        match (self.line(), self.document) {
            (Some(line), _) => write!(f, ":{line}")?,
            (None, Some(document)) => write!(f, ": document {document}")?,
            (None, None) => {}
        }
        for item in &self.items {
            write!(f, ": items[{item}]")?;
        }
        if let Some(object) = &self.object {
            write!(f, ": {object}")?;
        }
        if !self.field.is_root() {
            write!(f, ": {}", self.field)?;
        }
        Ok(())
    }
}

/// An error or a warning, with its location in the input.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{location}: {message}")]
pub struct Located {
    pub location: Location,
    pub message: String,
}

impl Located {
    /// Returns the message with its field, for readers who know the file and the object.
    pub fn in_object(&self) -> String {
        let field = &self.location.field;
        match field.is_root() {
            true => self.message.clone(),
            false => format!("{field}: {}", self.message),
        }
    }
}
