//! Renders the TrainJobs of a bundle.

use std::sync::Arc;

use trainyard_api::{Admitted, Object, Runtime, Source, TrainJob};
use trainyard_bundle::{Bundle, BundleProblem, InputKind, JobEntry};
use trainyard_controller::reconcile::Snapshot;
use trainyard_model::{deadline::Deadline, lookup::Lookups, text::clean};
use trainyard_render::{Rendered, Renderer};
use trainyard_schema::Admission;

use super::shown;
use crate::report::ErrorList;

/// Reads a TrainJob and its runtime in the same way as when they were recorded, and renders them.
pub(super) fn rendered(
    bundle: &mut Bundle,
    entry: &JobEntry,
    renderer: &Renderer,
    deadline: &Deadline,
) -> Result<Rendered, ErrorList> {
    let refused = |error: &dyn std::fmt::Display| ErrorList::from_iter([error.to_string()]);
    let job = read_job(bundle, entry)?;
    let runtime = read_runtime(bundle, entry)?;
    let lookups = bundle
        .take_json(&entry.lookups)
        .map_err(|error| refused(&error))?;
    let lookups: Lookups = serde_json::from_value(lookups).map_err(|error| {
        let (name, problem) = (clean(&entry.lookups), clean(&error.to_string()));
        refused(&bundle.error(BundleProblem::Json { name, problem }))
    })?;
    let lookups = Arc::new(lookups);
    let rendered = renderer.render(&job, &runtime, &entry.namespace, &lookups, deadline);
    rendered.map_err(|stopped| {
        let name = format!("{}: TrainJob {}", bundle.file, shown(entry));
        let lines = stopped.lines().into_iter();
        lines.map(|line| format!("{name}: {line}")).collect()
    })
}

fn read_job(bundle: &mut Bundle, entry: &JobEntry) -> Result<TrainJob, ErrorList> {
    let job = admitted(bundle, &entry.train_job, entry, Admitted::train_job)?;
    if job.metadata.name == entry.name {
        return Ok(job);
    }
    Err(ErrorList::from_iter([format!(
        "{}: `{}`: contains TrainJob `{}`, but the index names it `{}`",
        bundle.file,
        clean(&entry.train_job),
        clean(&job.metadata.name),
        clean(&entry.name)
    )]))
}

fn read_runtime(bundle: &mut Bundle, entry: &JobEntry) -> Result<Arc<Runtime>, ErrorList> {
    if entry.from == InputKind::Cluster {
        let value = bundle.take_json(&entry.runtime);
        let value = value.map_err(|error| ErrorList::from_iter([error]))?;
        let place = format!("{}: `{}`", bundle.file, clean(&entry.runtime));
        let snapshot = Snapshot::new(value);
        return match snapshot {
            Ok(snapshot) => Ok(snapshot.runtime),
            Err(problem) => Err(ErrorList::from_iter([format!("{place}: {problem}")])),
        };
    }
    admitted(bundle, &entry.runtime, entry, Admitted::runtime).map(Arc::new)
}

/// Admits an object of the bundle like an API server, and parses it.
fn admitted<T>(
    bundle: &mut Bundle,
    name: &str,
    entry: &JobEntry,
    read: impl FnOnce(&mut Admitted) -> Option<T>,
) -> Result<T, ErrorList> {
    let object = object(bundle, name)?;
    let mut admitted = Admission::default()
        .admit(object, None, &entry.namespace)
        .map_err(|error| ErrorList::from_iter([error]))?;
    read(&mut admitted).ok_or_else(|| ErrorList::from_iter(admitted.errors))
}

/// Reads an object of the bundle.
fn object(bundle: &mut Bundle, name: &str) -> Result<Object, ErrorList> {
    let value = bundle.take_json(name);
    let value = value.map_err(|error| ErrorList::from_iter([error]))?;
    let source = Source::new(format!("{}:{}", bundle.file, clean(name)), 1);
    Object::read(source, value).map_err(|errors| ErrorList::from_iter(errors.0))
}
