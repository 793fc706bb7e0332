//! A TrainJob as the API server has it.

use trainyard_api::{Admitted, Object, Source, TrainJob};

use crate::reconcile::error::ReconcileError;
use crate::watch::TrainJobState;

/// Reads a TrainJob with its old forms, as the API server has it.
pub(in crate::reconcile) fn read(state: &TrainJobState) -> Result<TrainJob, ReconcileError> {
    let refused = |errors: Vec<String>| ReconcileError::TrainJob(errors);
    let object = state.object().map_err(|problem| refused(vec![problem]))?;
    let object = Object::read(Source::new("", 1), object).map_err(|errors| {
        refused(
            errors
                .0
                .iter()
                .map(|error| error.problem.to_string())
                .collect(),
        )
    })?;
    let mut admitted = Admitted::new(object, "");
    let read = TrainJob::read(&admitted.object);
    if let Err(errors) = &read {
        admitted.refuse(&errors.0);
    }
    let line = |error: &trainyard_api::Located| format!("{}: {}", error.place.field, error.message);
    match read {
        Ok(job) if admitted.errors.is_empty() => Ok(job),
        _ => Err(refused(admitted.errors.iter().map(line).collect())),
    }
}
