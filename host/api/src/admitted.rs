//! An object of the input on its way in.

use std::sync::Arc;

use serde_json::Value;

use crate::dialect::{self, DialectWarning, Modernized};
use crate::error::{Located, Place};
use crate::fields::{FieldError, FieldErrors};
use crate::object::{Object, ObjectId};
use crate::path::FieldPath;
use crate::runtime::{Runtime, RuntimeKind};
use crate::size::check_size;
use crate::trainjob::TrainJob;

/// The most errors of one object that are listed.
const MAX_ERRORS: usize = 100;

/// What is said in place of further ones.
const MORE: &str = "has more errors, which are not listed; correct those above first";

/// An object in the form of the current release, with everything that stands against it.
#[derive(Clone, Debug, PartialEq)]
pub struct Admitted {
    /// The object, as a cluster would store it.
    pub object: Object,
    /// The namespace in which it counts; None for a kind of Trainyard's that has none.
    pub namespace: Option<String>,
    /// What its author should know.
    pub warnings: Vec<Located>,
    /// What it is refused for. Nobody reads further in an object that has any.
    pub errors: Vec<Located>,
    /// Whether it is larger than a cluster stores: then nothing in it was looked at.
    pub too_large: bool,
    /// What became of old forms.
    dialect: Modernized,
    /// The fields that the schema of its kind filled in, and that its author did not write.
    pub defaulted: Arc<[FieldPath]>,
}

impl Admitted {
    /// Reads the object's old forms, unless it is larger than a cluster stores; `namespace` is that of objects which name none. No
    /// schema is looked at.
    pub fn new(mut object: Object, namespace: &str) -> Self {
        let size = if dialect::reads(&object.value) {
            check_size(&object.value)
        } else {
            Ok(0)
        };
        let mut dialect = Modernized::default();
        if size.is_ok() {
            dialect = dialect::modernize(&mut object.value);
            if let Some(version) = object.value.get("apiVersion").and_then(Value::as_str) {
                object.api_version = version.to_owned();
            }
        }
        let own = object.metadata.namespace.clone();
        let namespace = match RuntimeKind::of(&object) {
            Some(RuntimeKind::Cluster) => None,
            _ => Some(own.unwrap_or_else(|| namespace.to_owned())),
        };
        let mut admitted = Self {
            object,
            namespace,
            warnings: Vec::new(),
            errors: Vec::new(),
            too_large: size.is_err(),
            dialect,
            defaulted: Arc::default(),
        };
        if let Err(error) = size {
            admitted.refuse_field(&FieldPath::root(), error.to_string());
        }
        let place = admitted.place();
        let warning = |warning: &DialectWarning| Located {
            place: place.clone().at(warning.path.clone()),
            message: warning.message.clone(),
        };
        admitted.warnings = admitted.dialect.warnings.iter().map(warning).collect();
        let errors = admitted.dialect.errors.clone();
        admitted.refuse(&errors);
        admitted
    }

    /// The object's place in the input.
    pub fn place(&self) -> Place {
        Place {
            object: Some(ObjectId {
                kind: self.object.kind.clone(),
                namespace: self.namespace.clone(),
                name: self.object.metadata.name.clone(),
            }),
            ..Place::from(&self.object.source)
        }
    }

    /// The place of a field, as the object's author spelled it.
    pub fn place_of(&self, path: &FieldPath) -> Place {
        self.place().at(self.written(path))
    }

    /// Returns the field that the object's author wrote, for one of the object as it is now.
    pub fn written(&self, path: &FieldPath) -> FieldPath {
        self.dialect.written(path)
    }

    /// Adds an error that is about the field.
    pub fn refuse_field(&mut self, path: &FieldPath, message: impl Into<String>) {
        self.refuse_at(self.place_of(path), message);
    }

    /// Adds an error whose message names the field, as its author spelled it.
    pub fn refuse_naming(&mut self, written: FieldPath, message: impl Into<String>) {
        let place = Place {
            line_of: Some(written),
            ..self.place()
        };
        self.refuse_at(place, message);
    }

    fn refuse_at(&mut self, place: Place, message: impl Into<String>) {
        let (place, message) = match self.errors.len() {
            0..MAX_ERRORS => (place, message.into()),
            MAX_ERRORS => (self.place(), MORE.to_owned()),
            _ => return,
        };
        self.errors.push(Located { place, message });
    }

    /// Reads the object as a TrainJob. `None` if it is refused, by the reader too, whose errors are added.
    pub fn train_job(&mut self) -> Option<TrainJob> {
        let job = self.read(TrainJob::read)?;
        Some(TrainJob {
            dialect: self.dialect.clone(),
            defaulted: self.defaulted.clone(),
            ..job
        })
    }

    /// Reads the object as a runtime. `None` if it is refused, by the reader too, whose errors are added.
    pub fn runtime(&mut self) -> Option<Runtime> {
        let runtime = self.read(Runtime::read)?;
        Some(Runtime {
            dialect: self.dialect.clone(),
            defaulted: self.defaulted.clone(),
            ..runtime
        })
    }

    fn read<T>(&mut self, read: impl FnOnce(&Object) -> Result<T, FieldErrors>) -> Option<T> {
        if !self.errors.is_empty() {
            return None;
        }
        let read = read(&self.object);
        read.map_err(|errors| self.refuse(&errors.0)).ok()
    }

    /// Adds the errors of a typed reader.
    fn refuse(&mut self, errors: &[FieldError]) {
        for error in errors {
            self.refuse_field(&error.path, error.problem.to_string());
        }
    }
}
