//! Files and plugins of one run, and what becomes of each TrainJob.

use std::sync::Arc;

use trainyard_api::{Inputs, names};
use trainyard_render::{Catalog, Job, Rendered, Renderer};

use crate::{
    cli::{InputArgs, LoadArgs},
    output::Progress,
    plugins::Loaded,
    report::{self, Failure},
};

/// A TrainJob with what it became.
pub(crate) struct Done<'a> {
    pub(crate) job: &'a Job,
    pub(crate) rendered: Rendered,
}

/// Reads the files of a run.
pub(crate) fn read(args: &InputArgs) -> Result<Catalog, Failure> {
    let inputs = Inputs::read(&args.filename, std::io::stdin()).map_err(|errors| errors.into_iter().collect::<Failure>())?;
    let catalog = Catalog::new(inputs, &args.namespace).map_err(|errors| errors.into_iter().collect::<Failure>())?;
    if catalog.jobs.is_empty() {
        return Err(["there is no TrainJob in the input; give one with -f"].into_iter().collect());
    }
    Ok(catalog)
}

/// Reads the files and renders every TrainJob; `each` gets them in the order of the input, once all went well.
pub(crate) fn render_all(
    input: &InputArgs,
    load: &LoadArgs,
    each: impl FnOnce(&[Done<'_>]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let catalog = read(input);
    let loaded = Loaded::load(load);
    let (catalog, loaded) = match (catalog, loaded) {
        (Ok(catalog), Ok(loaded)) => (catalog, loaded),
        (Err(mut failure), Err(other)) => {
            failure.absorb(other);
            return Err(failure);
        }
        (Err(failure), _) | (_, Err(failure)) => return Err(failure),
    };
    let renderer = Arc::clone(&loaded.renderer);
    let mine: Vec<&Job> = catalog.jobs.iter().filter(|job| is_mine(job)).collect();
    let progress = Progress::new("rendering", mine.len());
    let results = loaded.run_each(&mine, |job| {
        let rendered = render_one(&renderer, job, &catalog);
        progress.step();
        rendered
    });
    progress.finish();
    let mut failure = Failure::default();
    let mut done = Vec::with_capacity(mine.len());
    for (job, result) in mine.iter().zip(results) {
        match result {
            Ok(rendered) => {
                rendered.warnings.iter().for_each(|warning| report::warn(job.locate_warning(warning)));
                done.push(Done { job, rendered });
            }
            Err(problems) => problems.iter().for_each(|problem| failure.add(job.locate(problem))),
        }
    }
    failure.or_ok(())?;
    each(&done)
}

fn render_one(
    renderer: &Renderer,
    job: &Job,
    catalog: &Catalog,
) -> Result<Rendered, Vec<trainyard_render::Problem>> {
    renderer.render(&job.job, &job.runtime, &job.namespace, catalog)
}

/// Whether this controller would reconcile the TrainJob; another one's is left out, with a warning.
fn is_mine(job: &Job) -> bool {
    let mine = job.job.managed_by == names::MANAGED_BY_TRAINER;
    if !mine {
        report::warn(format!(
            "{}: spec.managedBy: is {}: this cluster's controller makes nothing of it, so nothing is printed for it",
            job.place(),
            job.job.managed_by
        ));
    }
    mine
}
