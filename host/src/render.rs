//! `trainyard render`.

use clap::Args;
use trainyard_render::{Job, Rendered};

use crate::{
    cli::{InputArgs, LoadArgs, ObjectFormat},
    output::{self, Held, List},
    report::{self, Failure},
    run,
};

/// What `render` takes.
#[derive(Debug, Args)]
pub(crate) struct RenderArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    load: LoadArgs,
    /// The form of the output.
    #[arg(short, long, value_enum, default_value_t = ObjectFormat::Yaml)]
    output: ObjectFormat,
}

pub(crate) fn run(args: &RenderArgs) -> Result<(), Failure> {
    let list = List::of_objects(args.output);
    let mut held = Held::new(list);
    let make = |_: &Job, rendered: &Rendered| {
        let beside = rendered.objects.iter().map(|object| &object.value);
        let objects = beside.chain([&rendered.job_set]);
        let texts = objects.map(|object| output::object(object, args.output));
        texts.collect::<Result<Vec<_>, _>>()
    };
    let jobs = run::render_all(&args.input, &args.load, make, |job, texts| {
        texts?
            .iter()
            .try_for_each(|text| held.add(job.place(), text))
    })?;
    jobs.iter().for_each(warn_of_deadline);
    held.print()
}

/// A deadline is kept by whoever reconciles the TrainJob: no field of a JobSet says it.
fn warn_of_deadline(job: &Job) {
    if let Some(seconds) = job.job.active_deadline_seconds {
        report::warn(format!(
            "{}: spec.activeDeadlineSeconds: a JobSet has no such field: the controller ends the TrainJob after {seconds} s, and nobody does where what is printed is applied by hand",
            job.place()
        ));
    }
}
