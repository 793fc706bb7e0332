//! Any Kubernetes object: its source, its header and its value.

use serde_json::{Map, Value};

use crate::{
    StringMap,
    error::{InputError, InputErrors, InputProblem},
    fields::{FieldError, FieldErrors, FieldProblem, Fields, describe},
    location::{Location, ObjectId, Source},
    names,
    nulls::drop_nulls,
    path::FieldPath,
};

/// An object's metadata.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metadata {
    pub name: String,
    /// Its namespace, if set. The default is the caller's; a ClusterTrainingRuntime never has one.
    pub namespace: Option<String>,
    /// Its UID, if it comes from a cluster.
    pub uid: Option<String>,
    pub labels: StringMap,
    pub annotations: StringMap,
    /// All other fields, unchanged.
    pub rest: Map<String, Value>,
}

impl Metadata {
    /// The fields of this struct.
    const TYPED: [&str; 5] = ["name", "namespace", "uid", "labels", "annotations"];

    /// Returns the path of an annotation in its object.
    #[must_use]
    pub fn path_of_annotation(name: &str) -> FieldPath {
        FieldPath::of(["metadata", "annotations"]).key(name)
    }

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

/// An object as it was read, without nulls.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
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
    /// Reads the header of a value. Nulls are dropped first, as by an API server.
    ///
    /// # Errors
    /// The value is not a mapping, or apiVersion, kind or metadata are missing or have a wrong type. All errors are returned.
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
                location: Location::from(&source),
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
            // It is cluster-scoped, but some clients set a namespace.
            metadata.namespace = None;
        }
        // Other fields are read by the reader of the kind.
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

    /// Returns the API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
    }

    /// Returns the version in its group.
    pub fn version(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or(&self.api_version, |(_, version)| version)
    }

    /// Returns whether the object has this `apiVersion` and `kind`.
    pub fn is(&self, api_version: &str, kind: &str) -> bool {
        self.api_version == api_version && self.kind == kind
    }

    /// Returns kind, namespace and name.
    pub fn id(&self) -> ObjectId {
        let metadata = &self.metadata;
        ObjectId {
            kind: self.kind.clone(),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
        }
    }

    /// Returns the object's location in the input.
    pub fn location(&self) -> Location {
        Location {
            object: Some(self.id()),
            ..Location::from(&self.source)
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
    let location = Location {
        object,
        ..Location::from(source)
    };
    let at = |FieldError { path, problem }: FieldError| {
        let location = location.clone().at(path);
        let problem = match location.plain_scalar() {
            Some(text) if problem.needs_quotes() => {
                InputProblem::Unquoted(problem, text.to_owned())
            }
            _ => InputProblem::Field(problem),
        };
        InputError { location, problem }
    };
    InputErrors(errors.0.into_iter().map(at).collect())
}
