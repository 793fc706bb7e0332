//! A TrainJob of the command line's input, and the locations of its problems.

use std::sync::Arc;

use trainyard_api::{FieldPath, Located, Location, Runtime, TrainJob, names};

use crate::{
    PendingLookup,
    problem::{InputObject, Problem, Warning, with_field},
};

/// A TrainJob of the input with its namespace and runtime.
#[derive(Clone)]
pub struct InputJob {
    pub train_job: TrainJob,
    /// Its namespace, or that of the run if it has none.
    pub namespace: String,
    pub runtime: Arc<Runtime>,
    pub(crate) location: Location,
    pub(crate) runtime_location: Location,
}

impl InputJob {
    /// Returns the problem with its location in the input.
    #[must_use]
    pub fn locate(&self, problem: &Problem) -> Located {
        self.located(
            problem.about(),
            problem.field().as_deref(),
            problem.sentence(),
        )
    }

    /// Returns a lookup without an answer, with the location of the TrainJob in the input.
    #[must_use]
    pub fn locate_lookup(&self, lookup: &PendingLookup) -> Located {
        Located {
            location: self.location.clone(),
            message: lookup.to_string(),
        }
    }

    /// Returns the warning with its location in the input.
    #[must_use]
    pub fn locate_warning(&self, warning: &Warning) -> Located {
        self.located(warning.about, warning.field.as_deref(), warning.sentence())
    }

    fn located(&self, about: InputObject, field: Option<&str>, sentence: String) -> Located {
        let location = match about {
            InputObject::TrainJob => self.location.clone(),
            InputObject::Runtime => self.runtime_location.clone(),
        };
        let field = field.map(|field| about.spelled(field, &self.train_job, &self.runtime));
        let path = field.as_deref().and_then(|field| field.parse().ok());
        match path.filter(|path: &FieldPath| !path.is_root()) {
            Some(path) => Located {
                location: location.at(path),
                message: sentence,
            },
            // A plugin may name anything.
            None => Located {
                location,
                message: with_field(field, sentence),
            },
        }
    }

    /// Returns a warning if another controller reconciles the TrainJob.
    #[must_use]
    pub fn of_another(&self) -> Option<Located> {
        let is_ours = self.train_job.managed_by == names::MANAGED_BY_TRAINER;
        (!is_ours).then(|| Located {
            location: Location {
                // The line is that of the TrainJob.
                line_of: Some(FieldPath::root()),
                ..self
                    .location
                    .clone()
                    .at(FieldPath::of(["spec", "managedBy"]))
            },
            message: format!(
                "is {}, so another controller manages this TrainJob; it is skipped",
                self.train_job.managed_by
            ),
        })
    }

    /// Returns the location of the TrainJob in the input.
    #[must_use]
    pub const fn location(&self) -> &Location {
        &self.location
    }

    /// Returns the location of the runtime in the input.
    #[must_use]
    pub const fn runtime_location(&self) -> &Location {
        &self.runtime_location
    }
}
