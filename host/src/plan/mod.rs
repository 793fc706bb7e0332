//! `trainyard plan`.

mod against;
mod cluster;
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

pub(crate) use self::report::DisabledReport;
use self::report::{PlanReport, Relations};
use crate::{
    args::RunArgs,
    cluster::ClusterArgs,
    input::{self, Input},
    load::LoadedPlugins,
    output::{self, BufferedList, List},
    replicas::ReplicaArgs,
    report::ErrorList,
};

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Also list what each plugin reads, creates and writes, and its grants. HTML always includes them.
    #[arg(long)]
    claims: bool,
    /// Show what would change if this plugin were added, or replaced the loaded plugin with the same name: its declarations and whom they
    /// break, its position, missing grants, conflicts, cycles and possible clashes. With -f, also show which fields and warnings of the
    /// TrainJobs would change, and of TrainJobs that only name a runtime, for each runtime without one that is accepted now. The exit code
    /// is 1 if the plugin or a TrainJob would be refused.
    #[arg(long, value_name = "NEW.wasm", value_hint = clap::ValueHint::FilePath)]
    against: Option<PathBuf>,
    /// Show what would change with the PolicyPlugins of this file or directory in place of those of --policy and -f, for the loaded plugins or for
    /// the plugin of --against. Can be repeated.
    #[arg(long, value_name = "FILE|DIR", value_hint = clap::ValueHint::AnyPath)]
    against_policy: Vec<PathBuf>,
    /// Compare the plan of the plugins that are loaded here with the plans of a cluster's controller, by their digests in its metrics. The exit
    /// code is 1 if they differ. Needs the permissions to list the controller's pods and to get pods/proxy.
    #[arg(long = "cluster", conflicts_with_all = ["filename", "against", "against_policy", "claims"])]
    in_cluster: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    replicas: ReplicaArgs,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = PlanFormat::Table)]
    output: PlanFormat,
}

/// The output format of plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PlanFormat {
    /// A table.
    Table,
    /// JSON.
    Json,
    /// The order as a Mermaid flowchart.
    Mermaid,
    /// A self-contained HTML page with the graph, claims, grants and possible clashes.
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

pub(crate) fn run(args: &PlanArgs) -> Result<(), ErrorList> {
    let (file, policy) = (args.against.as_deref(), args.against_policy.as_slice());
    if file.is_some() || !policy.is_empty() {
        return against::run(args, file, policy);
    }
    if args.in_cluster {
        return cluster::run(args);
    }
    let mut buffered = BufferedList::new(args.output.list());
    let mut number = 0;
    let mut hold = |report: &PlanReport<'_>| {
        let text = match args.output {
            PlanFormat::Table => output::cleaned(table::lines(report)),
            PlanFormat::Json => output::pretty(report)?,
            PlanFormat::Mermaid => mermaid::text(report, number),
            PlanFormat::Html => page::section(report, number),
        };
        number += 1;
        buffered.add(report.title(), &text)
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
        return buffered.print();
    }
    let Input {
        catalog,
        loaded,
        has_only_policies,
        mut failure,
        ..
    } = input::read_and_load_any(&args.run.input, &args.run.load, None)?;
    let relations = Relations::new(
        loaded.renderer.generation(),
        &loaded.renderer.facts().facts,
        claims,
    );
    if has_only_policies && failure.is_empty() {
        hold(&relations.of_all(&loaded.disabled))?;
        return buffered.print();
    }
    for job in &catalog.jobs {
        let planned = loaded
            .renderer
            .plan(&job.train_job, &job.runtime, &job.namespace);
        match planned {
            Ok(plan) if keep_going || failure.is_empty() => {
                let name = format!("{}/{}", job.namespace, job.train_job.metadata.name);
                hold(&relations.of_job(name, &plan))?;
            }
            Ok(_) => {}
            Err(problems) => problems
                .iter()
                .for_each(|problem| failure.add(input::locate(job, problem))),
        }
    }
    input::print(buffered, failure, keep_going)
}
