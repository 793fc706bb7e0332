//! `trainyard plan`.

use std::{collections::BTreeSet, sync::Arc};

use clap::Args;
use serde::Serialize;
use trainyard_model::{
    claims::Claims,
    manifest::NodeSet,
    plan::{Generation, Slot},
    plugin::Plugin,
};

use crate::{
    cli::{InputArgs, LoadArgs, ReportFormat},
    load::Loaded,
    output::{self, Held, List, Table},
    report::Failure,
    run::{self, Run},
};

/// What `plan` takes.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    load: LoadArgs,
    /// Also list what each plugin reads, creates and writes.
    #[arg(long)]
    claims: bool,
    /// The form of the output.
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Table)]
    output: ReportFormat,
}

/// A plan as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlanReport<'a> {
    /// None for the plan of all that is loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    train_job: Option<String>,
    /// The order; members of one union that stand in for each other side by side.
    orders: Vec<Vec<Vec<String>>>,
    plugins: Vec<PluginReport<'a>>,
    /// Why one runs before another.
    because: Vec<&'a str>,
    /// Writes that a TrainJob's own values may bring to one place.
    possible_clashes: Vec<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PluginReport<'a> {
    name: &'a str,
    version: &'a str,
    digest: &'a str,
    active_when: String,
    phases: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    claims: Option<&'a Claims>,
    /// The pod sets that `numNodes` counts by this plugin.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    node_sets: &'a [NodeSet],
}

pub(crate) fn run(args: &PlanArgs) -> Result<(), Failure> {
    let mut held = Held::new(List::of_reports(args.output));
    let mut hold = |report: &PlanReport<'_>| {
        let text = output::report(report, |report| output::cleaned(lines(report)), args.output)?;
        held.add(title(report), &text)
    };
    if args.input.filename.is_empty() {
        let loaded = Loaded::load(&args.load)?;
        let generation = loaded.renderer.generation();
        let plugins: Vec<&Plugin> = generation.plugins().map(|plugin| &**plugin).collect();
        let relations = Relations::new(generation);
        let order = generation.overview();
        hold(&report(None, order, &plugins, &relations, args.claims))?;
        return held.print();
    }
    let Run {
        catalog,
        loaded,
        mut failure,
    } = run::read_and_load(&args.input, &args.load)?;
    let relations = Relations::new(loaded.renderer.generation());
    for job in &catalog.jobs {
        match loaded.renderer.plan(&job.job, &job.runtime) {
            Ok(plan) if failure.is_empty() => {
                let plugins: Vec<&Plugin> = plan.iter().map(|active| &*active.plugin).collect();
                let order = plugins.iter().map(|plugin| Slot::of(plugin)).collect();
                let name = format!("{}/{}", job.namespace, job.job.metadata.name);
                hold(&report(
                    Some(name),
                    vec![order],
                    &plugins,
                    &relations,
                    args.claims,
                ))?;
            }
            Ok(_) => {}
            Err(problems) => problems
                .iter()
                .for_each(|problem| failure.add(run::locate(job, problem))),
        }
    }
    failure.or_ok(())?;
    held.print()
}

/// What orders the loaded plugins and what may bring them together, with the names of the two: told of those of each TrainJob.
struct Relations {
    because: Vec<(Arc<str>, Arc<str>, String)>,
    possible_clashes: Vec<(Arc<str>, Arc<str>, String)>,
}

impl Relations {
    fn new(generation: &Generation) -> Self {
        let edges = generation.edges().iter();
        let clashes = generation.possible_clashes().into_iter();
        Self {
            because: edges
                .map(|edge| (edge.first.clone(), edge.then.clone(), edge.to_string()))
                .collect(),
            possible_clashes: clashes
                .map(|clash| (clash.first.clone(), clash.second.clone(), clash.to_string()))
                .collect(),
        }
    }
}

fn report<'a>(
    train_job: Option<String>,
    orders: Vec<Vec<Slot>>,
    plugins: &[&'a Plugin],
    relations: &'a Relations,
    claims: bool,
) -> PlanReport<'a> {
    let active: BTreeSet<&str> = plugins.iter().map(|plugin| &*plugin.id.name).collect();
    let of_both = |relations: &'a [(Arc<str>, Arc<str>, String)]| {
        let both = relations
            .iter()
            .filter(|(a, b, _)| active.contains(&**a) && active.contains(&**b));
        both.map(|(_, _, sentence)| sentence.as_str()).collect()
    };
    let names = |slot: Slot| slot.names.iter().map(ToString::to_string).collect();
    PlanReport {
        train_job,
        orders: orders
            .into_iter()
            .map(|order| order.into_iter().map(names).collect())
            .collect(),
        plugins: plugins
            .iter()
            .map(|plugin| PluginReport {
                name: &plugin.id.name,
                version: &plugin.id.version,
                digest: &plugin.id.digest,
                active_when: plugin.manifest.active_when.to_string(),
                phases: plugin
                    .manifest
                    .phases
                    .iter()
                    .map(|phase| phase.name())
                    .collect(),
                claims: claims.then_some(&plugin.manifest.claims),
                node_sets: if claims {
                    &plugin.manifest.node_sets
                } else {
                    &[]
                },
            })
            .collect(),
        because: of_both(&relations.because),
        possible_clashes: of_both(&relations.possible_clashes),
    }
}

fn title(report: &PlanReport<'_>) -> String {
    match &report.train_job {
        Some(job) => format!("TrainJob {job}"),
        None => "All loaded plugins".to_owned(),
    }
}

fn lines(report: &PlanReport<'_>) -> Vec<String> {
    let mut out = vec![title(report)];
    for order in &report.orders {
        let slots: Vec<String> = order
            .iter()
            .map(|names| {
                if names.len() > 1 {
                    format!("{{{}}}", names.join(" | "))
                } else {
                    names.join("")
                }
            })
            .collect();
        let order = if slots.is_empty() {
            "no plugin is active".to_owned()
        } else {
            slots.join(" -> ")
        };
        out.push(format!("order: {order}"));
    }
    for because in &report.because {
        out.push(format!("  {because}"));
    }
    for clash in &report.possible_clashes {
        out.push(format!("possible clash: {clash}"));
    }
    if !report.plugins.is_empty() {
        let mut table = Table::new(&["plugin", "version", "active when", "phases", "digest"]);
        for plugin in &report.plugins {
            let phases = plugin.phases.join(",");
            table.row([
                plugin.name,
                plugin.version,
                &plugin.active_when,
                &phases,
                plugin.digest,
            ]);
        }
        out.extend(table.lines());
    }
    for plugin in &report.plugins {
        for (touch, path) in plugin.claims.into_iter().flat_map(Claims::iter) {
            out.push(format!("{} {touch}s {path}", plugin.name));
        }
        for set in plugin.node_sets {
            out.push(format!("{} lets numNodes set {set}", plugin.name));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use trainyard_model::{manifest::Manifest, plugin::Settings};

    use super::*;

    #[test]
    fn pod_sets_that_num_nodes_sets_stand_among_the_claims() {
        let manifest = br#"{"name": "mpi", "version": "1.0.0", "contract": "1.0.0", "activeWhen": "mlPolicy.mpi",
            "phases": ["transform"], "nodeSets": [{"podSet": "node"}, {"podSet": "launcher", "when": "/runs"}]}"#;
        let manifest = Manifest::parse(manifest).unwrap();
        let mpi = Arc::new(Plugin::new(manifest, "digest", Settings::built_in()).unwrap());
        let generation = Generation::new([mpi.clone()]).unwrap();
        let relations = Relations::new(&generation);
        let told = |claims| report(None, Vec::new(), &[&mpi], &relations, claims);
        let all = lines(&told(true));
        for line in [
            "mpi lets numNodes set pod-sets[node].count",
            "mpi lets numNodes set pod-sets[launcher].count if `/runs` of its configuration is true",
        ] {
            assert!(all.iter().any(|shown| shown == line), "{all:#?}");
        }
        assert!(!lines(&told(false)).concat().contains("numNodes"));
        let json = serde_json::to_value(told(true)).unwrap();
        let shown = json.pointer("/plugins/0/nodeSets/0/podSet");
        assert_eq!(shown.and_then(|name| name.as_str()), Some("node"));
    }

    #[test]
    fn writes_that_a_train_job_may_bring_together_are_told() {
        let plugin = |name: &str, path: &str| {
            let manifest = format!(
                r#"{{"name": "{name}", "version": "1.0.0", "contract": "1.0.0", "activeWhen": "plugins",
                    "phases": ["transform"], "claims": {{"writes": ["{path}"]}}}}"#
            );
            let manifest = Manifest::parse(manifest.as_bytes()).unwrap();
            Arc::new(Plugin::new(manifest, "digest", Settings::built_in()).unwrap())
        };
        let a = plugin("a", "labels[$config./label]");
        let b = plugin("b", "labels[team]");
        let generation = Generation::new([a.clone(), b.clone()]).unwrap();
        let relations = Relations::new(&generation);
        let all = report(None, generation.overview(), &[&a, &b], &relations, false);
        assert!(
            lines(&all).iter().any(|line| line.starts_with(
                "possible clash: a writes `labels[$config./label]`, b writes `labels[team]`"
            )),
            "{:?}",
            lines(&all)
        );
        let one = report(None, generation.overview(), &[&a], &relations, false);
        assert!(one.possible_clashes.is_empty());
    }
}
