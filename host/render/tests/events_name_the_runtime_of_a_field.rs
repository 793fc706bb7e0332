//! An Event of a TrainJob that reports a field of the runtime names the runtime.

use trainyard_model::{contract::handle, plugin::Phase};

use crate::common::{Scripted, catalog, input, refused, render_job, renderer};

/// Reports the field as a warning or an error.
fn reports(field: &'static str, is_error: bool) -> Scripted {
    Scripted::new("a", &[], move |phase, call| {
        let (ctx, field) = (handle::Context(0), Some(field));
        match (phase, is_error) {
            (Phase::Check, true) => call.context_error(ctx, "is wrong", field),
            (Phase::Check, false) => call.context_warn(ctx, "is odd", field),
            _ => Ok(()),
        }
    })
}

#[test]
fn warnings_and_problems_name_it() {
    let by = "(plugin a 1.0.0 (native)";
    for (field, written) in [
        ("spec.trainer.numNodes", "spec.trainer.numNodes"),
        (
            "spec.mlPolicy",
            "ClusterTrainingRuntime runtime: spec.mlPolicy",
        ),
        (
            "runtime.metadata.labels",
            "ClusterTrainingRuntime runtime: metadata.labels",
        ),
    ] {
        let plugins = [reports(field, false)];
        let catalog = catalog(&input(&plugins));
        let job = &catalog.jobs[0];
        let render = |plugins: &[Scripted]| {
            let renderer = renderer(plugins).unwrap();
            render_job(&renderer, job)
        };
        let warnings = render(&plugins).unwrap().warnings;
        let events: Vec<_> = warnings
            .iter()
            .map(|it| it.for_event(&job.train_job, &job.runtime))
            .collect();
        assert_eq!(events, [format!("{written}: is odd {by})")]);

        let problems = refused(render(&[reports(field, true)]).unwrap_err());
        let events: Vec<_> = problems
            .iter()
            .map(|it| it.for_event(&job.train_job, &job.runtime))
            .collect();
        assert_eq!(events, [format!("{written}: is wrong {by} in check)")]);
    }
}
