//! An object after conversion and admission.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    dialect::{self, Conversion, DialectWarning},
    fields::{FieldError, FieldErrors},
    location::{Located, Location, ObjectId},
    object::Object,
    path::FieldPath,
    runtime::{Runtime, RuntimeKind},
    size::check_size,
    trainjob::TrainJob,
};

/// The maximum number of errors that are listed for one object.
const MAX_ERRORS: usize = 100;

/// The message for further errors.
const MORE: &str = "has more errors, which are not listed; correct those above first";

/// An object in the form of the current release, with its errors and warnings.
#[derive(Clone, Debug, PartialEq)]
pub struct Admitted {
    /// The object, as a cluster would store it.
    pub object: Object,
    /// Its namespace; `None` for a cluster-scoped kind of Trainyard.
    pub namespace: Option<String>,
    /// Warnings for its author.
    pub warnings: Vec<Located>,
    /// Errors for which it is refused. An object with errors is not read further.
    pub errors: Vec<Located>,
    /// Whether it is larger than a cluster stores. Such an object is not checked further.
    pub too_large: bool,
    /// The conversion of old forms.
    conversion: Conversion,
    /// The fields that were set by defaults of the schema.
    pub defaulted: Arc<[FieldPath]>,
}

impl Admitted {
    /// Converts the object's old forms, unless it is larger than a cluster stores. `namespace` is the namespace of objects without one. The
    /// schema is not applied.
    pub fn new(mut object: Object, namespace: &str) -> Self {
        let size = if dialect::reads(&object.value) {
            check_size(&object.value)
        } else {
            Ok(0)
        };
        let mut conversion = Conversion::default();
        if size.is_ok() {
            conversion = dialect::convert(&mut object.value);
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
            conversion,
            defaulted: Arc::default(),
        };
        if let Err(error) = size {
            admitted.refuse_field(&FieldPath::root(), error.to_string());
        }
        let location = admitted.location();
        let warning = |warning: &DialectWarning| Located {
            location: location.clone().at(warning.path.clone()),
            message: warning.message.clone(),
        };
        admitted.warnings = admitted.conversion.warnings.iter().map(warning).collect();
        let errors = admitted.conversion.errors.clone();
        admitted.refuse(&errors);
        admitted
    }

    /// Removes the warnings about forms that a cluster's API server refuses, and returns them as errors.
    pub fn take_file_forms(&mut self) -> Vec<Located> {
        let forms = self.conversion.warnings.iter();
        let forms = forms.zip(std::mem::take(&mut self.warnings));
        let (only_in_files, others): (Vec<_>, Vec<_>) =
            forms.partition(|(form, _)| form.only_in_files);
        self.warnings = others.into_iter().map(|(_, warning)| warning).collect();
        let error = |(_, warning): (_, Located)| Located {
            message: format!(
                "{} (the API server refuses this form; --allow-old-forms accepts it in files)",
                warning.message
            ),
            ..warning
        };
        only_in_files.into_iter().map(error).collect()
    }

    /// Returns the object's location in the input.
    pub fn location(&self) -> Location {
        Location {
            object: Some(ObjectId {
                kind: self.object.kind.clone(),
                namespace: self.namespace.clone(),
                name: self.object.metadata.name.clone(),
            }),
            ..Location::from(&self.object.source)
        }
    }

    /// Returns the location of a field, as the object's author wrote it.
    pub fn location_of(&self, path: &FieldPath) -> Location {
        self.location().at(self.written(path))
    }

    /// Returns the field that the object's author wrote, for a field of the converted object.
    pub fn written(&self, path: &FieldPath) -> FieldPath {
        self.conversion.written(path)
    }

    /// Adds an error of a field.
    pub fn refuse_field(&mut self, path: &FieldPath, message: impl Into<String>) {
        self.refuse_at(self.location_of(path), message);
    }

    /// Adds an error whose message names the field, as the author wrote it.
    pub fn refuse_naming(&mut self, written: FieldPath, message: impl Into<String>) {
        let location = Location {
            line_of: Some(written),
            ..self.location()
        };
        self.refuse_at(location, message);
    }

    fn refuse_at(&mut self, location: Location, message: impl Into<String>) {
        let (location, message) = match self.errors.len() {
            0..MAX_ERRORS => (location, message.into()),
            MAX_ERRORS => (self.location(), MORE.to_owned()),
            _ => return,
        };
        self.errors.push(Located { location, message });
    }

    /// Reads the object as a TrainJob. `None` if it has errors; those of the reader are added.
    pub fn train_job(&mut self) -> Option<TrainJob> {
        let job = self.read(TrainJob::read)?;
        Some(TrainJob {
            conversion: self.conversion.clone(),
            defaulted: self.defaulted.clone(),
            ..job
        })
    }

    /// Reads the object as a runtime. `None` if it has errors; those of the reader are added.
    pub fn runtime(&mut self) -> Option<Runtime> {
        let runtime = self.read(Runtime::read)?;
        Some(Runtime {
            conversion: self.conversion.clone(),
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
