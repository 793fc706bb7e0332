//! Problems of a TrainJob or its runtime, with the field to correct.

use std::{borrow::Cow, fmt};

use thiserror::Error;
use trainyard_api::{FieldPath, Runtime, TrainJob, path::PathError};
use trainyard_model::{
    deadline::{Deadline, Overdue},
    pipeline::{PhaseError, TooManyLookups},
    plan::PlanError,
    plugin::{CallFailure, Phase},
    plugin_info::PluginId,
    session::{CallError, Diagnostic},
    value::Failure,
};

use crate::record_path::job_set_path;

/// The object that a problem or warning is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InputObject {
    TrainJob,
    Runtime,
}

impl InputObject {
    /// Adds the runtime's kind and name to a sentence about the runtime.
    fn with_object(self, sentence: String, runtime: &Runtime) -> String {
        match self {
            Self::TrainJob => sentence,
            Self::Runtime => format!("{} {}: {sentence}", runtime.kind, runtime.metadata.name),
        }
    }

    /// Returns the field as the user wrote it, which differs if it has a form of an earlier release. A plugin may name anything; text
    /// that is not a path is returned unchanged.
    pub(crate) fn spelled(self, field: &str, job: &TrainJob, runtime: &Runtime) -> String {
        let written = |path: FieldPath| match self {
            Self::TrainJob => job.written(&path),
            Self::Runtime => runtime.written(&path),
        };
        match field.parse() {
            Ok(path) => written(path).to_string(),
            Err(PathError { .. }) => field.to_owned(),
        }
    }
}

/// Returns the sentence after the field that it is about.
pub(crate) fn with_field(field: Option<String>, sentence: String) -> String {
    match field {
        Some(field) => format!("{field}: {sentence}"),
        None => sentence,
    }
}

/// A reason why a TrainJob cannot be rendered.
#[derive(Debug, Error)]
pub enum Problem {
    /// A field has an invalid value.
    #[error("{path}: {message}")]
    Field {
        /// The object with the field.
        about: InputObject,
        /// The field.
        path: FieldPath,
        /// The problem, and what to do.
        message: String,
    },
    /// The runtime, or a field of the TrainJob, activates a plugin that is not loaded.
    #[error("{path}: {message}")]
    NotLoaded {
        /// The object with the field.
        about: InputObject,
        /// The field.
        path: FieldPath,
        /// The missing plugin, and why it was skipped or which plugins are loaded.
        message: String,
        /// Whether none of the skipped plugins can be the missing one.
        is_unknown: bool,
    },
    /// A plugin that would be active without being named was skipped.
    #[error("{0}")]
    PluginSkipped(String),
    /// A plugin refuses the TrainJob.
    #[error("{failure} (plugin {plugin} in {phase})")]
    Refused {
        /// The object with the field.
        about: InputObject,
        plugin: PluginId,
        phase: Phase,
        /// The field and message from the plugin.
        failure: Failure,
    },
    /// A plugin's call failed.
    #[error(transparent)]
    Call(#[from] Box<CallError>),
    /// Plugins looked up too many objects.
    #[error(transparent)]
    TooManyLookups(#[from] TooManyLookups),
    /// The active plugins have no order for this TrainJob.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Rendering took too long. It may succeed when the machine is less busy.
    #[error(
        "rendering {overdue}; last step: {step}; make the TrainJob and its runtime smaller, or raise `controller.renderTimeout` in the controller's configuration or `--timeout` on the command line"
    )]
    Overdue {
        /// The time limit.
        overdue: Overdue,
        /// The last step that was done.
        step: String,
    },
    /// Plugins together produced an invalid pod.
    #[error("{place}: {message}")]
    Invariant {
        /// The place in the record.
        place: String,
        /// The conflict, and what wrote the conflicting values.
        message: String,
    },
}

impl Problem {
    pub(crate) fn job(path: FieldPath, message: impl Into<String>) -> Self {
        Self::Field {
            about: InputObject::TrainJob,
            path,
            message: message.into(),
        }
    }

    pub(crate) fn refused(plugin: &PluginId, phase: Phase, failure: &Failure) -> Self {
        let (about, field) = place(failure.field.as_deref());
        Self::Refused {
            about,
            plugin: plugin.clone(),
            phase,
            failure: Failure {
                message: failure.message.clone(),
                field,
            },
        }
    }

    pub(crate) fn runtime(path: FieldPath, message: impl Into<String>) -> Self {
        Self::Field {
            about: InputObject::Runtime,
            path,
            message: message.into(),
        }
    }

    /// Returns the object to correct.
    #[must_use]
    pub fn about(&self) -> InputObject {
        match self {
            Self::Field { about, .. } => *about,
            Self::NotLoaded { about, .. } | Self::Refused { about, .. } => *about,
            _ => InputObject::TrainJob,
        }
    }

    /// Whether the TrainJob needs a plugin that was neither loaded nor skipped.
    #[must_use]
    pub const fn is_unknown_plugin(&self) -> bool {
        matches!(
            self,
            Self::NotLoaded {
                is_unknown: true,
                ..
            }
        )
    }

    /// Fails if the deadline passed; `step` is the last step that was done.
    pub(crate) fn in_time(
        deadline: &Deadline,
        step: impl FnOnce() -> String,
    ) -> Result<(), Vec<Self>> {
        let overdue = |overdue| {
            let step = step();
            vec![Self::Overdue { overdue, step }]
        };
        deadline.check().map_err(overdue)
    }

    /// Whether rendering the same TrainJob may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Overdue { .. } => true,
            Self::Call(error) => error.cause.is_transient(),
            _ => false,
        }
    }

    /// Returns the plugin that it is about.
    #[must_use]
    pub fn plugin(&self) -> Option<&PluginId> {
        match self {
            Self::Refused { plugin, .. } | Self::TooManyLookups(TooManyLookups { plugin, .. }) => {
                Some(plugin)
            }
            Self::Call(error) => Some(&error.plugin),
            Self::Field { .. }
            | Self::NotLoaded { .. }
            | Self::PluginSkipped(_)
            | Self::Plan(_)
            | Self::Overdue { .. }
            | Self::Invariant { .. } => None,
        }
    }

    /// Returns the field in its current form. A plugin may name any field.
    #[must_use]
    pub fn field(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Field { path, .. } | Self::NotLoaded { path, .. } => {
                Some(path.to_string().into())
            }
            Self::Refused { failure, .. } => failure.field.as_deref().map(Cow::Borrowed),
            _ => None,
        }
    }

    /// Returns the problem, with the field as the user wrote it.
    #[must_use]
    pub fn description(&self, job: &TrainJob, runtime: &Runtime) -> String {
        let field = self.field();
        let field = field.map(|field| self.about().spelled(&field, job, runtime));
        with_field(field, self.sentence())
    }

    /// Returns the problem for an Event of the TrainJob, which names the runtime if the field is the runtime's.
    #[must_use]
    pub fn for_event(&self, job: &TrainJob, runtime: &Runtime) -> String {
        self.about()
            .with_object(self.description(job, runtime), runtime)
    }

    /// Returns the problem without its field.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Field { message, .. } | Self::NotLoaded { message, .. } => message.clone(),
            Self::Refused {
                plugin,
                phase,
                failure,
                ..
            } => format!("{} (plugin {plugin} in {phase})", failure.message),
            other => other.to_string(),
        }
    }
}

impl From<PhaseError> for Problem {
    fn from(error: PhaseError) -> Self {
        match error {
            PhaseError::Call(error) => match &error.cause {
                CallFailure::Refused(failure) => Self::refused(&error.plugin, error.phase, failure),
                _ => Self::Call(error),
            },
            PhaseError::Reported(reported) => {
                Self::refused(&reported.plugin, reported.phase, &reported.failure)
            }
            PhaseError::TooManyLookups(error) => error.into(),
            PhaseError::Overdue {
                overdue,
                plugin,
                phase,
            } => Self::Overdue {
                overdue,
                step: format!("plugin {plugin} was about to be called in {phase}"),
            },
        }
    }
}

/// Returns the object of a field that a plugin names. Some fields exist only in runtimes. For others, such as metadata, the prefix `runtime.`
/// selects the runtime. A place of the record, which the host names if it cannot use a value, is the runtime's field.
fn place(field: Option<&str>) -> (InputObject, Option<String>) {
    let Some(field) = field else {
        return (InputObject::TrainJob, None);
    };
    if let Some(field) = field.strip_prefix("runtime.") {
        return (InputObject::Runtime, Some(field.to_owned()));
    }
    if let Some(path) = runtime_path(field) {
        return (InputObject::Runtime, Some(path));
    }
    let in_runtime = [
        "spec.mlPolicy",
        "spec.podGroupPolicy",
        "spec.plugins",
        "spec.template",
    ];
    let is_runtimes = in_runtime.iter().any(|prefix| field.starts_with(prefix));
    let about = match is_runtimes {
        true => InputObject::Runtime,
        false => InputObject::TrainJob,
    };
    (about, Some(field.to_owned()))
}

/// Returns the runtime's field for a place of the record, such as `pod-sets[node].raw[runtimeClassName]`.
fn runtime_path(place: &str) -> Option<String> {
    let path = place.starts_with("pod-sets[").then(|| place.parse())?;
    let in_job_set = job_set_path(&path.ok()?)?;
    Some(
        FieldPath::of(["spec", "template"])
            .join(&in_job_set)
            .to_string(),
    )
}

/// A warning about a TrainJob that is rendered nevertheless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The object that it is about.
    pub about: InputObject,
    pub field: Option<String>,
    pub message: String,
    /// The plugin that reported it. `None` if the host did.
    pub plugin: Option<PluginId>,
}

impl Warning {
    /// Returns the warning, with the field as the user wrote it.
    #[must_use]
    pub fn description(&self, job: &TrainJob, runtime: &Runtime) -> String {
        let field = self.field.as_deref();
        let field = field.map(|field| self.about.spelled(field, job, runtime));
        with_field(field, self.sentence())
    }

    /// Returns the warning for an Event of the TrainJob, which names the runtime if the field is the runtime's.
    #[must_use]
    pub fn for_event(&self, job: &TrainJob, runtime: &Runtime) -> String {
        self.about
            .with_object(self.description(job, runtime), runtime)
    }

    /// Returns the warning without its field.
    #[must_use]
    pub fn sentence(&self) -> String {
        match &self.plugin {
            Some(plugin) => format!("{} (plugin {plugin})", self.message),
            None => self.message.clone(),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.sentence())
    }
}

impl From<&Diagnostic> for Warning {
    fn from(reported: &Diagnostic) -> Self {
        let (about, field) = place(reported.failure.field.as_deref());
        Self {
            about,
            field,
            message: reported.failure.message.clone(),
            plugin: Some(reported.plugin.clone()),
        }
    }
}
