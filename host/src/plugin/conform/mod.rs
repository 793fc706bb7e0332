//! `trainyard plugin conform`: tries what a plugin of good quality does, and reports it.
//!
//! `scenarios` changes the input as users do, `own_values` sets what the plugin sets, of the `kinds` that users can set, `orders` changes the
//! order of plugins, `nodes` finds missed nodes, `runtimes` counts the shipped runtimes, `component` looks at the file, and `report` has the
//! checks and prints them.

mod component;
mod kinds;
mod nodes;
mod orders;
mod own_values;
mod report;
mod runtimes;
mod scenarios;

use std::{collections::BTreeMap, sync::Arc};

use clap::{Args, ValueEnum};
use trainyard_model::{names::without_digests, plugin_info::PluginInfo};

use self::{
    nodes::NodeWrites,
    report::{Check, CheckName, ConformReport, Tried},
    runtimes::ShippedRuntimes,
    scenarios::Scenario,
};
use super::cases::{Cases, CasesArgs, Prepared, Rendering, Run, Variant};
use crate::{
    output::{self, counted},
    report::ErrorList,
};

/// Arguments of `plugin conform`.
#[derive(Debug, Args)]
pub(crate) struct ConformArgs {
    #[command(flatten)]
    cases: CasesArgs,
    /// Checks that may fail, such as `paths,rebuild` for a tool that puts paths of its own into each file. The report says so.
    #[arg(long, value_enum, value_name = "CHECK", value_delimiter = ',')]
    allow: Vec<CheckName>,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = ConformFormat::Table)]
    output: ConformFormat,
}

/// The output format of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ConformFormat {
    /// A table.
    Table,
    /// JSON.
    Json,
    /// A Markdown table, for a README or a release.
    Markdown,
}

/// The most cases that are rendered in scenarios, in other orders and with values of users. Cases that are expected to be refused are not
/// among them.
const MOST_CASES: usize = 3;

/// What is kept of a rendering.
struct Rendered {
    /// The case and the runtime, in words.
    name: String,
    /// The shipped runtime. `None` for the runtimes of the case.
    shipped: Option<&'static str>,
    /// Why a TrainJob was not rendered with the shipped runtime.
    skipped: Option<String>,
    /// The results, without digests.
    files: BTreeMap<&'static str, String>,
    refused: usize,
    rendered: usize,
    /// Why the host ended calls of the plugin.
    ended: Vec<String>,
    /// The names of the active plugins, of each TrainJob.
    plans: Vec<Vec<Arc<str>>>,
    nodes: NodeWrites,
    /// The plugin's warnings without a field.
    without_field: Vec<String>,
    /// The warnings, without digests.
    warnings: Vec<String>,
    /// What the plugin sets that users may set.
    values: Vec<own_values::OwnValue>,
}

impl Rendered {
    fn new(run: &Run<'_>, rendering: &Rendering<'_>, plugin: &PluginInfo) -> Self {
        let name = &*plugin.id.name;
        let plans = rendering.jobs.iter().map(|job| {
            let plan = job.rendered.plan.iter();
            plan.map(|active| active.plugin.id.name.clone()).collect()
        });
        let warnings = rendering.jobs.iter().flat_map(|job| &job.rendered.warnings);
        let without_field = warnings.filter(|warning| {
            let by = warning.plugin.as_ref();
            warning.field.is_none() && by.is_some_and(|by| *by.name == *name)
        });
        Self {
            name: run.name(),
            shipped: rendering.runtime,
            skipped: rendering.skipped.first().map(|job| job.reason.clone()),
            files: rendering.files(),
            refused: rendering.refused,
            rendered: rendering.jobs.len(),
            ended: rendering.ended.clone(),
            plans: plans.collect(),
            nodes: NodeWrites::of(rendering, plugin),
            without_field: without_field
                .map(|warning| without_digests(&warning.sentence()))
                .collect(),
            warnings: own_values::warnings(rendering),
            values: own_values::of(rendering, name),
        }
    }
}

impl Run<'_> {
    /// Returns the case and the runtime, in words.
    fn name(&self) -> String {
        match self.shipped {
            Some(runtime) => format!("case {} with {}", self.case.name(), runtime.name),
            None => format!("case {}", self.case.name()),
        }
    }
}

pub(super) fn run(args: &ConformArgs) -> Result<(), ErrorList> {
    let cases = args.cases.load()?;
    let plugin = &cases.plugin;
    let prepared = cases.prepare()?;
    let runs = prepared
        .iter()
        .flat_map(|case| Run::of_case(case, &Variant::SAME));
    let runs: Vec<_> = runs.collect();
    let keep = |run: &Run<'_>, rendering: Rendering<'_>| Rendered::new(run, &rendering, plugin);
    let first = cases.render_runs(&runs, keep)?;
    let again = cases.render_runs(&runs, keep)?;
    let few: Vec<&Prepared<'_>> = prepared
        .iter()
        .filter(|case| !case.is_refused())
        .take(MOST_CASES)
        .collect();
    let shipped = shipped_runtimes(&first);
    let mut checks = vec![repeated(&first, &again), runtimes_check(&first, &shipped)];
    let all_scenarios = scenarios::scenarios();
    let in_scenarios = in_scenarios(&cases, &few, &all_scenarios, &first)?;
    checks.push(nodes::check(first.iter().chain(&in_scenarios)));
    checks.push(of_each(
        CheckName::Warnings,
        first.iter().chain(&in_scenarios),
        |one| &one.without_field,
    ));
    checks.push(orders::check(&cases, &few, &all_scenarios)?);
    checks.push(of_each(CheckName::Scenarios, &in_scenarios, |one| {
        &one.ended
    }));
    checks.extend(own_values::checks(&cases, &runs, &first)?);
    let usage = cases.usage();
    checks.push(limits(&usage.most));
    checks.push(claims(plugin, |at| usage.has_used(at)));
    checks.extend(component::checks(&args.cases, &cases)?);
    let all = first.iter().chain(&again).chain(&in_scenarios);
    let renderings = all.map(|one| one.rendered + one.refused).sum();
    let tried = Tried {
        cases: cases.cases.len(),
        renderings,
        calls: usage.calls,
        shipped_runtimes: shipped,
    };
    let report = ConformReport::new(plugin, tried, checks, &args.allow);
    match args.output {
        ConformFormat::Table => output::lines(report.lines())?,
        ConformFormat::Json => output::json(&report)?,
        ConformFormat::Markdown => output::lines(report.markdown())?,
    }
    report.result()
}

/// Returns a check that fails for each of the problems that renderings have.
fn of_each<'r>(
    name: CheckName,
    all: impl IntoIterator<Item = &'r Rendered>,
    problems: impl Fn(&'r Rendered) -> &'r [String],
) -> Check {
    let all: Vec<_> = all.into_iter().collect();
    let failures = all.iter().flat_map(|one| {
        let problems = problems(one).iter();
        problems.map(|problem| format!("{}: {problem}", one.name))
    });
    let done: usize = all.iter().map(|one| one.rendered).sum();
    let refused: usize = all.iter().map(|one| one.refused).sum();
    if done + refused == 0 {
        return Check::unneeded(name, "no case can be tried");
    }
    let tried = format!("{}, {refused} refused", counted(done + refused, "TrainJob"));
    Check::new(name, tried, failures.collect())
}

fn repeated(first: &[Rendered], again: &[Rendered]) -> Check {
    let pairs = first.iter().zip(again);
    let differ = pairs.filter(|(first, again)| first.files != again.files);
    let failures = differ.map(|(first, _)| format!("{}: the second result differs", first.name));
    let tried = counted(first.len(), "rendering");
    Check::new(CheckName::Repeat, tried, failures.collect())
}

/// Counts the shipped runtimes with which cases were rendered.
fn shipped_runtimes(all: &[Rendered]) -> ShippedRuntimes {
    let of_shipped = all.iter().filter_map(|one| {
        let is_rendered = one.rendered + one.refused > 0;
        Some((one.shipped?, is_rendered, one.skipped.as_deref()))
    });
    ShippedRuntimes::of(of_shipped)
}

/// Checks that the host ended no call with a runtime.
fn runtimes_check(all: &[Rendered], shipped: &ShippedRuntimes) -> Check {
    let check = of_each(CheckName::Runtimes, all, |one| &one.ended);
    match shipped.untried() {
        None => check.also_tried(&format!("with {shipped}")),
        Some(why) => check.or_untried(&format!("with {why}")),
    }
}

/// Renders a few cases in each scenario. `first` has the renderings as they are.
fn in_scenarios(
    cases: &Cases,
    few: &[&Prepared<'_>],
    scenarios: &[Scenario],
    first: &[Rendered],
) -> Result<Vec<Rendered>, ErrorList> {
    let mut all = Vec::new();
    for scenario in scenarios {
        let variant = Variant {
            renderer: None,
            edit: &|objects| scenario.apply(objects),
        };
        let runs = few.iter().flat_map(|case| Run::of_case(case, &variant));
        let runs: Vec<_> = runs.collect();
        all.extend(cases.render_runs(&runs, |run, rendering| {
            let mut rendered = Rendered::new(run, &rendering, &cases.plugin);
            let mut usual = first.iter().filter(|one| one.name == rendered.name);
            if let Some(usual) = usual.next()
                && scenario.keeps_nodes
                && rendered.rendered == usual.rendered
            {
                rendered.nodes.miss_nodes_of(&usual.nodes);
            }
            rendered.name = format!("{}, {}", rendered.name, scenario.name);
            rendered
        })?);
    }
    Ok(all)
}

/// Checks that no call used more than half of a limit.
fn limits(most: &BTreeMap<&'static str, (u64, u64)>) -> Check {
    let is_near = |(_, (used, limit)): &(&&str, &(u64, u64))| *used > *limit / 2;
    let near = most.iter().filter(is_near);
    let failures = near.map(|(limit, (used, most))| {
        format!("a call used {used} of `limits.{limit}`, which is {most}; use less, or tell operators which limit to set")
    });
    let share = |(used, limit): &(u64, u64)| used.saturating_mul(100) / (*limit).max(1);
    let largest = most.iter().max_by_key(|(_, used)| share(used));
    let tried =
        largest.map(|(limit, used)| format!("at most {}% of a limit ({limit})", share(used)));
    Check::new(
        CheckName::Limits,
        tried.unwrap_or_default(),
        failures.collect(),
    )
}

/// Checks that calls used each claim.
fn claims(plugin: &PluginInfo, has_used: impl Fn(usize) -> bool) -> Check {
    let claims = plugin.manifest.claims.iter().enumerate();
    let unused = claims.filter(|(at, _)| !has_used(*at));
    let failures = unused.map(|(_, (verb, path))| {
        format!(
            "no call used `{path}` of `claims.{}`; remove it, or add a case that needs it",
            verb.list()
        )
    });
    let tried = counted(plugin.manifest.claims.iter().count(), "claim");
    Check::new(CheckName::Claims, tried, failures.collect())
}
