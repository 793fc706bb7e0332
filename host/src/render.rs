//! `trainyard render`.

use clap::Args;

use crate::{
    cli::{InputArgs, LoadArgs, ObjectFormat},
    output,
    report::{self, Failure},
    run::{self, Done},
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
    run::render_all(&args.input, &args.load, |done| {
        done.iter().for_each(|done| warn_of_deadline(done));
        let objects = done
            .iter()
            .flat_map(|done| {
                let beside = done.rendered.objects.iter().map(|object| &object.value);
                beside.chain([&done.rendered.job_set])
            })
            .cloned()
            .collect();
        output::objects(objects, args.output)
    })
}

/// A deadline is kept by whoever reconciles the TrainJob: no field of a JobSet says it.
fn warn_of_deadline(done: &Done<'_>) {
    if let Some(seconds) = done.job.job.active_deadline_seconds {
        report::warn(format!(
            "{}: spec.activeDeadlineSeconds: a JobSet has no such field: the controller ends the TrainJob after {seconds} s, and nobody does where what is printed is applied by hand",
            done.job.place()
        ));
    }
}
