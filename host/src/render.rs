//! `trainyard render`.

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use trainyard_render::{Job, Rendered};

use crate::{
    bundle::InputKind,
    cli::{ObjectFormat, RunArgs},
    output::{self, Held, List},
    record::{self, Recording, Written},
    report::{self, Failure},
    run::{self, Originals},
    stats::Stats,
};

/// What `render` takes.
#[derive(Debug, Args)]
pub(crate) struct RenderArgs {
    #[command(flatten)]
    run: RunArgs,
    /// The form of the output.
    #[arg(short, long, value_enum, default_value_t = ObjectFormat::Yaml)]
    output: ObjectFormat,
    /// Also write all that was rendered from, with what came of it, to a file that `trainyard replay` renders once more: the
    /// TrainJobs with their runtimes, what plugins read of other objects, and the plugins with what the policy file sets.
    #[arg(long, value_name = "BUNDLE", value_hint = clap::ValueHint::FilePath)]
    record: Option<PathBuf>,
    /// Print to standard error what each plugin call used: fuel, bytes over the contract's imports, writes and time. See `limits` of the
    /// policy file.
    #[arg(long)]
    stats: bool,
}

pub(crate) fn run(args: &RenderArgs) -> Result<(), Failure> {
    let stats = args.stats.then(Arc::<Stats>::default);
    let rendered = render(args, stats.as_ref());
    // A call that used up a limit is among them, so that they are printed if it fails, too.
    if let Some(stats) = stats {
        stats.print();
    }
    rendered
}

fn render(args: &RenderArgs, stats: Option<&Arc<Stats>>) -> Result<(), Failure> {
    let list = List::of_objects(args.output);
    let mut held = Held::new(list);
    let texts = |rendered: &Rendered| {
        let beside = rendered.objects.iter().map(|object| &object.value);
        let objects = beside.chain([&rendered.job_set]);
        let texts = objects.map(|object| output::object(object, args.output));
        texts.collect::<Result<Vec<_>, _>>()
    };
    let mut deadlines = Vec::new();
    let mut hold = |job: &Job, texts: Result<Vec<String>, Failure>| {
        let texts = texts?;
        deadlines.extend(deadline(job));
        texts
            .iter()
            .try_for_each(|text| held.add(job.location(), text))
    };
    let failure = match &args.record {
        None => {
            let make = |_: &Job, rendered: &Rendered| texts(rendered);
            let run = run::read_and_load(&args.run.input, &args.run.load)?.measured(stats);
            run::render_run(run, args.run.keep_going, make, hold)?.failure
        }
        Some(bundle) => {
            let make = |job: &Job, rendered: &Rendered, originals: &Originals| {
                (texts(rendered), recording(job, rendered, originals))
            };
            let mut recordings = Vec::new();
            let keep = |job: &Job, (texts, recording)| {
                recordings.extend(recording);
                hold(job, texts)
            };
            let done = run::render_all_as_written(&args.run, stats, make, keep)?;
            record::write(bundle, &done.loaded, recordings)?;
            done.failure
        }
    };
    deadlines.iter().for_each(report::warn);
    run::print(held, failure, args.run.keep_going)
}

/// What is recorded of a TrainJob. `None` if its file is not known any more, which does not happen.
fn recording(job: &Job, rendered: &Rendered, originals: &Originals) -> Option<Recording> {
    let written = Written {
        namespace: &job.namespace,
        name: &job.job.metadata.name,
        from: InputKind::Files,
        train_job: originals.at(job.location())?,
        runtime: originals.at(job.runtime_location())?,
    };
    Some(Recording::of(&written, rendered))
}

/// The controller ends a TrainJob at its deadline, which no field of a JobSet holds.
fn deadline(job: &Job) -> Option<String> {
    let seconds = job.job.active_deadline_seconds?;
    Some(format!(
        "{}: spec.activeDeadlineSeconds: a JobSet has no such field, so the output does not show it; the controller ends the TrainJob after {seconds} s",
        job.location()
    ))
}
