//! `trainyard plan`.

mod against;
mod graph;
mod layout;
mod matrix;
mod mermaid;
mod page;
mod report;
mod svg;
mod table;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use self::report::{PlanReport, Relations};
use crate::{
    cli::RunArgs,
    load::LoadedPlugins,
    output::{self, Held, List},
    report::Failure,
    run::{self, Run},
};

/// What `plan` takes.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Also list what each plugin reads, creates and writes, and what it is granted. A page always has it.
    #[arg(long)]
    claims: bool,
    /// Say what a further plugin, or another version of a loaded one, would change or break: its place, claims beyond its grants,
    /// conflicts, cycles, possible clashes. The exit code is 1 if it would be refused.
    #[arg(long, value_name = "NEW.wasm", conflicts_with = "filename", value_hint = clap::ValueHint::FilePath)]
    against: Option<PathBuf>,
    /// The form of the output.
    #[arg(short, long, value_enum, default_value_t = PlanFormat::Table)]
    output: PlanFormat,
}

/// The form of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PlanFormat {
    /// A table for people.
    Table,
    /// JSON.
    Json,
    /// The graph of the order, as a Mermaid flowchart.
    Mermaid,
    /// A page to look at: the graph, who claims what, grants and possible clashes. It needs no network and no script.
    Html,
}

impl PlanFormat {
    const fn list(self) -> List {
        match self {
            Self::Table => List::PARAGRAPHS,
            Self::Json => List::JSON,
            Self::Mermaid => mermaid::CHART,
            Self::Html => page::PAGE,
        }
    }
}

pub(crate) fn run(args: &PlanArgs) -> Result<(), Failure> {
    if let Some(file) = &args.against {
        return against::run(&args.run.load, file, args.output);
    }
    let mut held = Held::new(args.output.list());
    let mut number = 0;
    let mut hold = |report: &PlanReport<'_>| {
        let text = match args.output {
            PlanFormat::Table => output::cleaned(table::lines(report)),
            PlanFormat::Json => output::pretty(report)?,
            PlanFormat::Mermaid => mermaid::text(report, number),
            PlanFormat::Html => page::section(report, number),
        };
        number += 1;
        held.add(report.title(), &text)
    };
    let keep_going = args.run.keep_going;
    let claims = args.claims || args.output == PlanFormat::Html;
    if args.run.input.filename.is_empty() {
        let loaded = LoadedPlugins::load(&args.run.load)?;
        let relations = Relations::new(
            loaded.renderer.generation(),
            &loaded.renderer.facts().facts,
            claims,
        );
        hold(&relations.of_all(&loaded.disabled))?;
        return held.print();
    }
    let Run {
        catalog,
        loaded,
        mut failure,
    } = run::read_and_load(&args.run.input, &args.run.load)?;
    let relations = Relations::new(
        loaded.renderer.generation(),
        &loaded.renderer.facts().facts,
        claims,
    );
    for job in &catalog.jobs {
        match loaded.renderer.plan(&job.job, &job.runtime) {
            Ok(plan) if keep_going || failure.is_empty() => {
                let name = format!("{}/{}", job.namespace, job.job.metadata.name);
                hold(&relations.of_job(name, &plan))?;
            }
            Ok(_) => {}
            Err(problems) => problems
                .iter()
                .for_each(|problem| failure.add(run::locate(job, problem))),
        }
    }
    run::print(held, failure, keep_going)
}
