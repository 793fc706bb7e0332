//! `trainyard diff`: what would fail, or differ from the reference, if Trainyard replaced it.

mod back;
mod cluster;
mod compare;
mod keys;
mod live;
mod objects;
mod releases;
mod report;
mod rows;
mod source;
mod subject;
mod text;

use std::process::ExitCode;

use clap::Args;

use self::{
    back::BackReport, cluster::Cluster, compare::Comparison, objects::Outcome, report::DiffReport,
    source::Source,
};
use crate::{
    args::{InputArgs, LoadArgs, ReportFormat},
    cluster::ClusterArgs,
    load::{self, LoadedPlugins},
    output,
    report::{self as ending, ErrorList},
};

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Print only the counts of each row, and not what differs in each TrainJob.
    #[arg(long)]
    summary: bool,
    /// Print what the Kubeflow Trainer would do to TrainJobs if it replaced Trainyard: those that use what it does not know, and those
    /// whose objects it would touch.
    #[arg(long, conflicts_with = "summary")]
    back: bool,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Table)]
    output: ReportFormat,
    #[command(flatten)]
    load: LoadArgs,
}

/// Runs the command, prints its errors and returns the exit code.
pub(crate) fn run(args: &DiffArgs) -> ExitCode {
    match diff(args) {
        Ok(code) => ending::exit_with(code),
        Err(failure) => ending::exit_with_errors(&failure, Outcome::NotCompared.code()),
    }
}

/// Returns the exit code.
fn diff(args: &DiffArgs) -> Result<u8, ErrorList> {
    if args.back {
        return back(args);
    }
    // A cluster is read after errors of the plugins, because it takes long.
    let (loaded, cluster, source) = match args.input.filename.is_empty() {
        true => {
            let loaded = LoadedPlugins::load(&args.load)?;
            let (cluster, source) = read(args)?;
            (loaded, cluster, source)
        }
        false => {
            let (cluster, source) = read(args)?;
            let loaded = LoadedPlugins::load_with(&args.load, &source.policy_plugins)?;
            (loaded, cluster, source)
        }
    };
    let report = compared(args, &loaded, source, cluster.as_ref())?;
    match args.output {
        ReportFormat::Json => output::json(&report)?,
        ReportFormat::Table => output::lines(text::lines(&report, args.summary))?,
    }
    Ok(report.outcome.code())
}

fn back(args: &DiffArgs) -> Result<u8, ErrorList> {
    let (_, source) = read(args)?;
    let policy = load::policy(
        &args.load,
        &args.load.plugins.policy,
        &source.policy_plugins,
    )?;
    let report = BackReport::new(&source, &policy.facts().accelerators);
    match args.output {
        ReportFormat::Json => output::json(&report)?,
        ReportFormat::Table => output::lines(report.lines())?,
    }
    Ok(report.code())
}

/// Reads files, or a cluster if there are none.
fn read(args: &DiffArgs) -> Result<(Option<Cluster>, Source), ErrorList> {
    if args.input.filename.is_empty() {
        let (cluster, source) = Cluster::read(args)?;
        return Ok((Some(cluster), source));
    }
    Ok((None, source::of_files(&args.input)?))
}

fn compared(
    args: &DiffArgs,
    loaded: &LoadedPlugins,
    source: Source,
    cluster: Option<&Cluster>,
) -> Result<DiffReport, ErrorList> {
    let accelerators = &loaded.renderer.facts().accelerators;
    let comparison = Comparison::new(source, args.input.namespace(), cluster, accelerators)?;
    comparison.run(loaded, args.input.limit.timeout)
}
