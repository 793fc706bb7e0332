//! Errors and warnings in their parts, for programs that read a report.

use std::{fmt, sync::Arc};

use serde::Serialize;
use trainyard_api::{Located, Location, error::InputError};
use trainyard_bundle::{BundleError, PackError};
use trainyard_config::{ConfigError, ConfigProblem};
use trainyard_controller::{ControllerError, rbac::Note, spans::SpanExportError};
use trainyard_model::{
    plan::PlanError,
    text::{MAX_LINE, clean_to},
};
use trainyard_render::NoSuchField;
use trainyard_sandbox::{LoadError, SetupError};
use trainyard_schema::documents::DocumentError;

/// An error or a warning. Its `Display` is the line that is printed.
pub(crate) trait Finding: fmt::Display {
    /// Returns its parts, as far as they are known.
    fn parts(&self) -> Parts {
        Parts::of(self)
    }
}

/// The parts of an error or a warning.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Parts {
    /// The file as the user named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// The line in the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<ObjectParts>,
    /// The path of the field, as the object's author wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// What is wrong, and what to do.
    message: String,
}

/// The object that an error or a warning is about.
#[derive(Clone, Debug, Serialize)]
struct ObjectParts {
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    name: String,
}

impl Parts {
    /// Returns a message about which nothing else is known.
    pub(crate) fn of(message: impl fmt::Display) -> Self {
        Self {
            message: cleaned(message),
            ..Self::default()
        }
    }

    /// Returns the parts of a message about a location.
    pub(crate) fn at(location: &Location, message: impl fmt::Display) -> Self {
        let object = location.object.as_ref().map(|object| ObjectParts {
            kind: cleaned(&object.kind),
            namespace: object.namespace.as_ref().map(cleaned),
            name: cleaned(&object.name),
        });
        let field = match location.field.is_root() {
            // The message names the field too.
            true => location.line_of.as_ref(),
            false => Some(&location.field),
        };
        Self {
            file: Some(cleaned(&location.file)),
            line: location.line(),
            object,
            field: field.filter(|field| !field.is_root()).map(cleaned),
            message: cleaned(message),
        }
    }

    /// Sets the line, unless the location has one.
    fn or_line(mut self, line: Option<usize>) -> Self {
        self.line = self.line.or(line);
        self
    }
}

fn cleaned(part: impl fmt::Display) -> String {
    clean_to(&part.to_string(), MAX_LINE)
}

impl Finding for Located {
    fn parts(&self) -> Parts {
        Parts::at(&self.location, &self.message)
    }
}

impl Finding for InputError {
    fn parts(&self) -> Parts {
        Parts::at(&self.location, &self.problem).or_line(self.problem.line())
    }
}

impl Finding for ConfigError {
    fn parts(&self) -> Parts {
        let line = match &self.problem {
            ConfigProblem::Input(problem) => problem.line(),
            _ => None,
        };
        Parts::at(&self.location, &self.problem).or_line(line)
    }
}

impl Finding for str {}
impl Finding for String {}
impl Finding for std::io::Error {}
impl Finding for BundleError {}
impl Finding for ControllerError {}
impl Finding for SpanExportError {}
impl Finding for DocumentError {}
impl Finding for LoadError {}
impl Finding for NoSuchField {}
impl Finding for Note {}
impl Finding for PackError {}
impl Finding for PlanError {}
impl Finding for SetupError {}

impl<F: Finding> Finding for Arc<F> {
    fn parts(&self) -> Parts {
        (**self).parts()
    }
}

impl<F: Finding + ?Sized> Finding for &F {
    fn parts(&self) -> Parts {
        (**self).parts()
    }
}
