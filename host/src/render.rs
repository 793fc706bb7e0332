//! `trainyard render`.

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use trainyard_bundle::InputKind;
use trainyard_render::{InputJob, Rendered};

use crate::{
    args::{ObjectFormat, RunArgs},
    input::{self, Originals},
    output::{self, BufferedList, List},
    recording::{self, RecordedInput, Recording},
    report::{self, ErrorList},
    stats::Stats,
};

/// Arguments of `render`.
#[derive(Debug, Args)]
pub(crate) struct RenderArgs {
    #[command(flatten)]
    run: RunArgs,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = ObjectFormat::Yaml)]
    output: ObjectFormat,
    /// Also write a bundle for `trainyard replay`: the TrainJobs with their runtimes, what plugins read of other objects, the plugins
    /// with the settings of their PolicyPlugins, and the result.
    #[arg(long, value_name = "BUNDLE", value_hint = clap::ValueHint::FilePath)]
    record: Option<PathBuf>,
    /// Print to standard error what each plugin call used: fuel, bytes passed through imports, writes and time. See `limits` in the
    /// plugin's PolicyPlugin.
    #[arg(long)]
    stats: bool,
}

pub(crate) fn run(args: &RenderArgs) -> Result<(), ErrorList> {
    let stats = args.stats.then(Arc::<Stats>::default);
    let rendered = render(args, stats.as_ref());
    // They are also printed on failure, because a call may have used up a limit.
    if let Some(stats) = stats {
        stats.print();
    }
    rendered
}

fn render(args: &RenderArgs, stats: Option<&Arc<Stats>>) -> Result<(), ErrorList> {
    let list = List::of_objects(args.output);
    let mut buffered = BufferedList::new(list);
    let texts = |rendered: &Rendered| {
        let objects = rendered.all_objects();
        let texts = objects.map(|object| output::object(object, args.output));
        texts.collect::<Result<Vec<_>, _>>()
    };
    let mut deadlines = Vec::new();
    let mut hold = |job: &InputJob, texts: Result<Vec<String>, ErrorList>| {
        let texts = texts?;
        deadlines.extend(deadline(job));
        texts
            .iter()
            .try_for_each(|text| buffered.add(job.location(), text))
    };
    let mut originals = args.record.as_ref().map(|_| Originals::default());
    let input = input::read_and_load(&args.run.input, &args.run.load, originals.as_mut())?;
    let make = |job: &InputJob, rendered: &Rendered| {
        let recording = originals
            .as_ref()
            .and_then(|originals| recording(job, rendered, originals));
        (texts(rendered), recording)
    };
    let mut recordings = Vec::new();
    let keep = |job: &InputJob, (texts, recording)| {
        recordings.extend(recording);
        hold(job, texts)
    };
    let done = input::render(input.measured(stats), args.run.keep_going, make, keep)?;
    if let Some(bundle) = &args.record {
        recording::write(bundle, &done.loaded, recordings)?;
    }
    deadlines.iter().for_each(report::warn);
    input::print(buffered, done.failure, args.run.keep_going)
}

/// Returns the record of a TrainJob. `None` if the originals do not contain it.
fn recording(job: &InputJob, rendered: &Rendered, originals: &Originals) -> Option<Recording> {
    let written = RecordedInput {
        namespace: &job.namespace,
        name: &job.train_job.metadata.name,
        from: InputKind::Files,
        train_job: originals.at(job.location())?,
        runtime: originals.at(job.runtime_location())?,
    };
    Some(Recording::of(&written, rendered))
}

/// Returns a warning for a TrainJob with a deadline, which the JobSet does not have.
pub(crate) fn deadline(job: &InputJob) -> Option<String> {
    let seconds = job.train_job.active_deadline_seconds?;
    Some(format!(
        "{}: spec.activeDeadlineSeconds: a JobSet has no such field, so the output does not show it; the controller ends the TrainJob after {seconds} s",
        job.location()
    ))
}
