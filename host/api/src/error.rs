//! What is wrong with the input of a run, and where.

use std::fmt;
use std::io;

use thiserror::Error;

use crate::fields::FieldProblem;
use crate::object::{ObjectId, Source};
use crate::path::{FieldPath, Segment};
use crate::yaml::{self, DocumentText};

/// A place in the input: as much of file, document, object and field as is known. It is printed with the line of the field, or else
/// with the number of the document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Place {
    /// The file as the user named it.
    pub file: String,
    /// The document's number in the file, from 1; None where the file itself is meant.
    pub document: Option<usize>,
    /// The places in lists (`kind: List`) that lead to the object.
    pub items: Vec<usize>,
    /// The object.
    pub object: Option<ObjectId>,
    /// The field in the object; the root where the object as a whole is meant.
    pub field: FieldPath,
    /// The field whose line is printed, if it is another one: some sentences name their field themselves.
    pub line_of: Option<FieldPath>,
    /// The text of the document, by which the line is found.
    pub text: DocumentText,
}

impl Place {
    /// A whole file.
    pub fn file(file: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            ..Self::default()
        }
    }

    /// The line of the field in its file, if the text of its document is known.
    fn line(&self) -> Option<usize> {
        let items = self.items.iter();
        let to_object =
            items.flat_map(|at| [Segment::Field("items".to_owned()), Segment::Index(*at)]);
        let field = self.line_of.as_ref().unwrap_or(&self.field);
        let steps: Vec<_> = to_object.chain(field.segments().iter().cloned()).collect();
        self.text.line(&steps)
    }

    /// The same place with a field.
    #[must_use]
    pub fn at(mut self, field: FieldPath) -> Self {
        self.field = field;
        self
    }
}

impl From<&Source> for Place {
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

impl fmt::Display for Place {
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

/// One thing that is wrong with the input.
#[derive(Debug, Error)]
#[error("{place}: {problem}")]
pub struct InputError {
    /// Where.
    pub place: Place,
    /// What.
    pub problem: InputProblem,
}

/// What is to be said of the input, an error or a warning, with its place.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {message}")]
pub struct Located {
    /// File, document, object and field.
    pub place: Place,
    /// The sentence.
    pub message: String,
}

impl Located {
    /// The sentence with its field, where file and object are known.
    pub fn in_object(&self) -> String {
        let field = &self.place.field;
        match field.is_root() {
            true => self.message.clone(),
            false => format!("{field}: {}", self.message),
        }
    }
}

impl From<InputError> for Located {
    fn from(error: InputError) -> Self {
        Self {
            place: error.place,
            message: error.problem.to_string(),
        }
    }
}

/// What can be wrong with the input.
#[derive(Debug, Error)]
pub enum InputProblem {
    /// The file or folder can't be read.
    #[error("can't be read: {0}")]
    Read(#[from] io::Error),
    /// A folder, FIFO, socket or device.
    #[error("is not a regular file; give a file, or a link to one")]
    NotAFile,
    /// There are more errors than are listed.
    #[error("there are more errors, which are not listed; correct those above first")]
    More,
    /// The file is larger than Trainyard reads.
    #[error("is larger than {limit} bytes, the maximum for this file; split or shorten it")]
    TooLarge {
        /// The bound in bytes.
        limit: u64,
    },
    /// The file is no text.
    #[error("is not UTF-8 text{}; save it as UTF-8", if *.utf16 { " (it starts like UTF-16)" } else { "" })]
    NotUtf8 {
        /// Whether it begins with the byte order mark of UTF-16.
        utf16: bool,
    },
    /// A folder holds nothing to read.
    #[error("contains no .yaml, .yml or .json file; subfolders are not read")]
    EmptyFolder,
    /// `-` was given more than once.
    #[error("can be read only once; give \"-\" once")]
    StandardInputTwice,
    /// A document is no YAML and no JSON.
    #[error("line {}, column {}: {}", .0.line, .0.column, .0.kind)]
    Yaml(yaml::Error),
    /// The objects of the run take too much memory.
    #[error("{0}")]
    Memory(yaml::ErrorKind),
    /// A document is not a Kubernetes object.
    #[error("is not a Kubernetes object, but {0}; an object has apiVersion, kind and metadata")]
    NotAnObject(String),
    /// A document is a Kustomization, and not in a folder whose other files it lists.
    #[error(
        "is a Kustomization, which only lists other files; give its folder, or pipe the output of `kubectl kustomize` into `-f -`"
    )]
    Kustomization,
    /// A field of an object is wrong.
    #[error("{0}")]
    Field(FieldProblem),
}

/// All that is wrong with the input of one run, in the order of the input. Never empty.
#[derive(Debug, Error)]
#[error("{}", lines(.0))]
pub struct InputErrors(pub Vec<InputError>);

fn lines(errors: &[InputError]) -> String {
    errors
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

impl IntoIterator for InputErrors {
    type Item = InputError;
    type IntoIter = std::vec::IntoIter<InputError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
