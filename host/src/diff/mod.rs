//! `trainyard diff`: what would fail, or differ from the reference, if Trainyard replaced it.

mod cluster;
mod compare;
mod keys;
mod live;
mod objects;
mod report;
mod rows;
mod source;
mod subject;
mod text;

use std::process::ExitCode;

use clap::Args;

use self::{
    cluster::Cluster, compare::Comparison, objects::Outcome, report::DiffReport, source::Source,
};
use crate::{
    args::{InputArgs, LoadArgs, ReportFormat},
    cluster::ClusterArgs,
    load::LoadedPlugins,
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
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Table)]
    output: ReportFormat,
    #[command(flatten)]
    load: LoadArgs,
}

/// Runs the command, prints its errors and returns the exit code.
pub(crate) fn run(args: &DiffArgs) -> ExitCode {
    match diff(args) {
        Ok(outcome) => ending::exit_with(outcome.code()),
        Err(failure) => ending::exit_with_errors(&failure, Outcome::NotCompared.code()),
    }
}

fn diff(args: &DiffArgs) -> Result<Outcome, ErrorList> {
    let loaded = LoadedPlugins::load(&args.load)?;
    let report = if args.input.filename.is_empty() {
        let (cluster, source) = Cluster::read(args)?;
        compared(args, &loaded, source, Some(&cluster))?
    } else {
        compared(args, &loaded, source::of_files(&args.input)?, None)?
    };
    match args.output {
        ReportFormat::Json => output::json(&report)?,
        ReportFormat::Table => output::lines(text::lines(&report, args.summary))?,
    }
    Ok(report.outcome)
}

fn compared(
    args: &DiffArgs,
    loaded: &LoadedPlugins,
    source: Source,
    cluster: Option<&Cluster>,
) -> Result<DiffReport, ErrorList> {
    let comparison = Comparison::new(source, args.input.namespace(), cluster)?;
    comparison.run(loaded, args.input.limit.timeout)
}
