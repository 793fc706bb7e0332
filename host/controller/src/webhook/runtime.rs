//! The checks of runtimes.

use serde_json::Value;
use trainyard_api::{Runtime, TrainJob, names, runtime::RuntimeKind};
use trainyard_render::{Problem, Renderer};

use super::{
    stored::{is_deleted, text},
    verdict::Verdict,
};
use crate::watch::{ClusterRuntimeObject, Decode as _, RuntimeObject};

/// Whether a request changes what TrainJobs are rendered from. A runtime that is being deleted is not checked.
pub(super) fn is_changed(new: &Value, old: Option<&Value>) -> bool {
    let parts = |object: &Value| {
        let parts = ["/spec", "/metadata/labels", "/metadata/annotations"];
        parts.map(|pointer| object.pointer(pointer).cloned())
    };
    !is_deleted(new) && old.is_none_or(|old| parts(old) != parts(new))
}

/// Checks a runtime as `trainyard validate` does. A plugin that is not loaded is a warning, because it may be loaded before the runtime is
/// used.
pub(super) fn check(
    kind: RuntimeKind,
    (new, is_created): (&Value, bool),
    namespace: &str,
    renderer: &Renderer,
) -> Verdict {
    let refused = |error: String| Verdict::of_errors(&[error], Vec::new());
    let stored = text(new);
    let decoded = match kind {
        RuntimeKind::Namespaced => RuntimeObject::decode(&stored, 0),
        RuntimeKind::Cluster => ClusterRuntimeObject::decode(&stored, 0),
    };
    let read = decoded.map_err(|error| error.to_string());
    let runtime = match read.and_then(|state| state.read()) {
        Ok(read) => read.runtime,
        Err(error) => return refused(error),
    };
    let forms = runtime.conversion.warnings.iter();
    let mut warnings: Vec<_> = forms.map(ToString::to_string).collect();
    warnings.extend(deprecated(&runtime).filter(|_| is_created));
    let Some(job) = TrainJob::of_runtime(&runtime) else {
        return Verdict::of_errors(&[], warnings);
    };
    let problems = renderer.runtime_problems(&job, &runtime, namespace);
    let (later, errors): (Vec<_>, Vec<_>) = problems
        .iter()
        .partition(|problem| matches!(problem, Problem::NotLoaded { .. }));
    let sentence = |problem: &Problem| problem.description(&job, &runtime);
    warnings.extend(later.into_iter().map(sentence));
    let errors: Vec<_> = errors.into_iter().map(sentence).collect();
    Verdict::of_errors(&errors, warnings)
}

/// Returns a warning if a label marks the runtime as deprecated, as the reference does.
fn deprecated(runtime: &Runtime) -> Option<String> {
    let label = runtime.metadata.labels.get(names::SUPPORT_LABEL)?;
    (label == names::SUPPORT_DEPRECATED).then(|| {
        format!(
            "{} `{}` is deprecated (label {}); TrainJobs that use it get a warning",
            runtime.kind,
            runtime.metadata.name,
            names::SUPPORT_LABEL
        )
    })
}
