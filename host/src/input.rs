//! Files and plugins of one run, and what becomes of each TrainJob.

use trainyard_api::{Inputs, names};
use trainyard_render::{Catalog, Job, Rendered};

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

/// Reads the files of a run and loads its plugins; what is wrong with either is told in one run.
pub(crate) fn read_and_load(
    input: &InputArgs,
    load: &LoadArgs,
) -> Result<(Catalog, Loaded, Failure), Failure> {
    let (catalog, mut failure) = read(input);
    match Loaded::load(load) {
        Ok(loaded) => Ok((catalog, loaded, failure)),
        Err(refused) => {
            failure.absorb(refused);
            Err(failure)
        }
    }
}

/// Reads the files of a run. The failure beside the catalog holds what is wrong so far: the TrainJobs that are in order
/// can still be judged.
fn read(args: &InputArgs) -> (Catalog, Failure) {
    let inputs = Inputs::read(&args.filename, std::io::stdin());
    let (catalog, errors) = Catalog::new(inputs, &args.namespace);
    catalog.warnings.iter().for_each(report::warn);
    let mut failure: Failure = errors.into_iter().collect();
    if catalog.jobs.is_empty() && failure.is_empty() {
        failure.add("there is no TrainJob in the input; give one with -f");
    }
    (catalog, failure)
}

/// Reads the files and renders every TrainJob; `each` gets them in the order of the input, once all went well.
pub(crate) fn render_all(
    input: &InputArgs,
    load: &LoadArgs,
    each: impl FnOnce(&[Done<'_>]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (catalog, loaded, mut failure) = read_and_load(input, load)?;
    let mine: Vec<&Job> = catalog.jobs.iter().filter(|job| is_mine(job)).collect();
    let progress = Progress::new("rendering", mine.len());
    let results = loaded.run_each(&mine, |job| {
        let rendered = loaded
            .renderer
            .render(&job.job, &job.runtime, &job.namespace, &catalog);
        progress.step();
        rendered
    });
    progress.finish();
    let mut done = Vec::with_capacity(mine.len());
    for (job, result) in mine.iter().zip(results) {
        match result {
            Ok(rendered) => {
                rendered
                    .warnings
                    .iter()
                    .for_each(|warning| report::warn(job.locate_warning(warning)));
                done.push(Done { job, rendered });
            }
            Err(problems) => problems
                .iter()
                .for_each(|problem| failure.add(job.locate(problem))),
        }
    }
    failure.or_ok(())?;
    each(&done)
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
