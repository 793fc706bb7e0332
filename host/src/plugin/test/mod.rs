//! `trainyard plugin test`: renders the cases of a plugin, and compares the results with the expected files.

mod expected;
mod report;

use clap::Args;

use self::{
    expected::{Comparison, write},
    report::TestReport,
};
use super::{
    cases::{CasesArgs, Reach, Rendering, Skipped},
    watch,
};
use crate::{
    args::ReportFormat,
    output,
    report::{ErrorList, note},
};

/// Arguments of `plugin test`.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    #[command(flatten)]
    cases: CasesArgs,
    /// Write the expected files instead of comparing with them. Nothing is written if a case could not be rendered.
    #[arg(long)]
    update: bool,
    /// Run again whenever a source, a case or a PolicyPlugin changes, until Ctrl-C.
    #[arg(long, conflicts_with = "update")]
    watch: bool,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Table)]
    output: ReportFormat,
}

/// What is kept of a rendering.
struct TestedRendering {
    case: String,
    runtime: Option<&'static str>,
    rendered: usize,
    refused: usize,
    skipped: Vec<Skipped>,
    comparison: Comparison,
    reach: Reach,
}

pub(super) fn run(args: &TestArgs) -> Result<(), ErrorList> {
    if args.watch {
        return watch::run(&args.cases.sources());
    }
    let cases = args.cases.load()?;
    let name = &cases.plugin.id.name;
    let tested = cases.render(|rendering: Rendering<'_>| TestedRendering {
        case: rendering.case.name.clone(),
        runtime: rendering.runtime,
        rendered: rendering.jobs.len(),
        refused: rendering.refused,
        comparison: Comparison::of(&rendering),
        reach: Reach::of(&rendering, name),
        skipped: rendering.skipped,
    })?;
    if args.update {
        let changes = tested.iter().map(|tested| &tested.comparison);
        let changed = write(changes)?;
        note(format!(
            "{} written or removed; review them before you commit them",
            output::counted(changed, "expected file")
        ));
    }
    let report = TestReport::new(&cases.plugin, cases.cases.len(), tested, args.update);
    match args.output {
        ReportFormat::Json => output::json(&report)?,
        ReportFormat::Table => output::lines(report.lines())?,
    }
    report.result()
}
