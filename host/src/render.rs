//! `trainyard render`.

use clap::Args;

use crate::{
    cli::{InputArgs, LoadArgs, ObjectFormat},
    output,
    report::Failure,
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
    run::render_all(&args.input, &args.load, |done| {
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
