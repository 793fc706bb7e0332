//! Any Kubernetes object: where it came from, its header, and the whole of it.

use std::fmt;

use serde_json::{Map, Value};

use crate::error::{InputError, InputErrors, InputProblem, Place};
use crate::fields::{FieldError, FieldErrors, FieldProblem, Fields, describe};
use crate::nulls::drop_nulls;
use crate::path::FieldPath;
use crate::yaml::DocumentText;
use crate::{StringMap, names};

/// How the file of standard input is called in messages.
pub const STANDARD_INPUT: &str = "standard input";

/// Where an object came from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// The file as the user named it; "standard input" for `-`.
    pub file: String,
    /// The document in the file, from 1. Empty documents are counted.
    pub document: usize,
    /// The places, from 0, in the lists that the object was unpacked from: empty for nearly all.
    pub items: Vec<usize>,
    /// The text of the document.
    pub text: DocumentText,
}

impl Source {
    /// The document of a file.
    pub fn new(file: impl Into<String>, document: usize) -> Self {
        Self {
            file: file.into(),
            document,
            items: Vec::new(),
            text: DocumentText::default(),
        }
    }

    /// The item of a list that stands here.
    #[must_use]
    pub fn item(&self, index: usize) -> Self {
        let mut source = self.clone();
        source.items.push(index);
        source
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Place::from(self).fmt(f)
    }
}

/// An object by kind, namespace and name, printed as `TrainJob ml/bert`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// Its kind.
    pub kind: String,
    /// Its namespace, where it has one.
    pub namespace: Option<String>,
    /// Its name.
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

/// An object's metadata.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metadata {
    /// Its name.
    pub name: String,
    /// Its namespace, where one is given: the default is the caller's. A ClusterTrainingRuntime never has one.
    pub namespace: Option<String>,
    /// Its UID, where it comes from a cluster.
    pub uid: Option<String>,
    /// Its labels.
    pub labels: StringMap,
    /// Its annotations.
    pub annotations: StringMap,
    /// Every other field, as it was.
    pub rest: Map<String, Value>,
}

impl Metadata {
    /// The fields that have a type here.
    const TYPED: [&str; 5] = ["name", "namespace", "uid", "labels", "annotations"];

    fn read(fields: &mut Fields<'_>, value: &Value) -> Self {
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        let rest = value.as_object().cloned().unwrap_or_default();
        Self {
            name: fields.required_string("name"),
            namespace: filled(fields.string("namespace")),
            uid: filled(fields.string("uid")),
            labels: fields.string_map("labels"),
            annotations: fields.string_map("annotations"),
            rest: rest
                .into_iter()
                .filter(|(key, _)| !Self::TYPED.contains(&key.as_str()))
                .collect(),
        }
    }
}

/// An object as it was given, without nulls.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Where it came from.
    pub source: Source,
    /// Its `apiVersion`.
    pub api_version: String,
    /// Its `kind`.
    pub kind: String,
    /// Its `metadata`.
    pub metadata: Metadata,
    /// The whole object.
    pub value: Value,
}

impl Object {
    /// Reads the header of a value; nulls are dropped first, as an API server does.
    ///
    /// # Errors
    /// The value is no mapping, or apiVersion, kind or metadata are missing or of a wrong type: all of that at once.
    pub fn read(source: Source, mut value: Value) -> Result<Self, InputErrors> {
        drop_nulls(&mut value);
        let has_header = value.get("apiVersion").is_some() || value.get("kind").is_some();
        if !value.is_object() || !has_header {
            let found = match value {
                Value::Object(_) => "a mapping without apiVersion and kind".to_owned(),
                other => describe(&other),
            };
            let problem = InputProblem::NotAnObject(found);
            return Err(InputErrors(vec![InputError {
                place: Place::from(&source),
                problem,
            }]));
        }
        let mut fields = Fields::of(&value, FieldPath::root());
        let api_version = fields.required_string("apiVersion");
        if api_version.split('/').any(str::is_empty) && !api_version.is_empty()
            || api_version.matches('/').count() > 1
        {
            let form = "a version, or a group and a version with / between them";
            fields.fail(
                FieldPath::root().field("apiVersion"),
                FieldProblem::Form {
                    form,
                    found: api_version.clone(),
                },
            );
        }
        let kind = fields.required_string("kind");
        let (mut metadata, mut errors) = read_metadata(&value);
        if kind == names::CLUSTER_TRAINING_RUNTIME && api_version == names::TRAINER_API_VERSION {
            // Cluster-scoped: some clients write a namespace all the same, and it means nothing.
            metadata.namespace = None;
        }
        // Any other field is the business of whoever knows the kind.
        let known = fields.errors();
        errors.splice(0..0, known);
        if errors.is_empty() {
            return Ok(Self {
                source,
                api_version,
                kind,
                metadata,
                value,
            });
        }
        let named = !kind.is_empty() && !metadata.name.is_empty();
        let object = named.then_some(ObjectId {
            kind,
            namespace: metadata.namespace,
            name: metadata.name,
        });
        Err(refuse(&source, object, FieldErrors(errors)))
    }

    /// The API group: empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
    }

    /// The version in its group.
    pub fn version(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or(&self.api_version, |(_, version)| version)
    }

    /// Whether the object is of this `apiVersion` and `kind`.
    pub fn is(&self, api_version: &str, kind: &str) -> bool {
        self.api_version == api_version && self.kind == kind
    }

    /// Kind, namespace and name.
    pub fn id(&self) -> ObjectId {
        let metadata = &self.metadata;
        ObjectId {
            kind: self.kind.clone(),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
        }
    }

    /// The object's place in the input, for an error.
    pub fn place(&self) -> Place {
        Place {
            object: Some(self.id()),
            ..Place::from(&self.source)
        }
    }

    /// The errors of a typed reader, at this object's place.
    pub fn refuse(&self, errors: FieldErrors) -> InputErrors {
        refuse(&self.source, Some(self.id()), errors)
    }
}

fn read_metadata(value: &Value) -> (Metadata, Vec<FieldError>) {
    let path = FieldPath::root().field("metadata");
    let Some(metadata) = value.get("metadata") else {
        let missing = FieldError {
            path: path.field("name"),
            problem: FieldProblem::Required,
        };
        return (Metadata::default(), vec![missing]);
    };
    let mut fields = Fields::of(metadata, path);
    let read = Metadata::read(&mut fields, metadata);
    (read, fields.errors())
}

fn refuse(source: &Source, object: Option<ObjectId>, errors: FieldErrors) -> InputErrors {
    let place = Place {
        object,
        ..Place::from(source)
    };
    let at = |error: FieldError| InputError {
        place: place.clone().at(error.path),
        problem: InputProblem::Field(error.problem),
    };
    InputErrors(errors.0.into_iter().map(at).collect())
}
