//! `trainyard plan`.

use clap::Args;
use serde::Serialize;
use trainyard_model::{
    claims::Claims,
    manifest::NodeSet,
    plan::{Generation, Slot},
    plugin::Plugin,
};
use trainyard_render::Active;

use crate::{
    cli::{InputArgs, LoadArgs, ReportFormat},
    load::Loaded,
    output::{self, Table},
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
    because: Vec<String>,
    /// Writes that a TrainJob's own values may bring to one place.
    possible_clashes: Vec<String>,
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
    if args.input.filename.is_empty() {
        let loaded = Loaded::load(&args.load)?;
        let generation = loaded.renderer.generation();
        let plugins: Vec<&Plugin> = generation.plugins().map(|plugin| &**plugin).collect();
        return print(
            args,
            &[report(
                None,
                generation.overview(),
                &plugins,
                generation,
                args.claims,
            )],
        );
    }
    let Run {
        catalog,
        loaded,
        mut failure,
    } = run::read_and_load(&args.input, &args.load)?;
    let generation = loaded.renderer.generation();
    let mut plans: Vec<(String, Vec<Active>)> = Vec::new();
    for job in &catalog.jobs {
        match loaded.renderer.plan(&job.job, &job.runtime) {
            Ok(plan) => plans.push((format!("{}/{}", job.namespace, job.job.metadata.name), plan)),
            Err(problems) => problems
                .iter()
                .for_each(|problem| failure.add(run::locate(job, problem))),
        }
    }
    failure.or_ok(())?;
    let reports: Vec<_> = plans
        .iter()
        .map(|(job, plan)| {
            let plugins: Vec<&Plugin> = plan.iter().map(|active| &*active.plugin).collect();
            let order = plugins.iter().map(|plugin| Slot::of(plugin)).collect();
            report(
                Some(job.clone()),
                vec![order],
                &plugins,
                generation,
                args.claims,
            )
        })
        .collect();
    print(args, &reports)
}

fn report<'a>(
    train_job: Option<String>,
    orders: Vec<Vec<Slot>>,
    plugins: &[&'a Plugin],
    generation: &Generation,
    claims: bool,
) -> PlanReport<'a> {
    let has = |name: &str| plugins.iter().any(|plugin| *plugin.id.name == *name);
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
        because: generation
            .edges()
            .iter()
            .filter(|e| has(&e.first) && has(&e.then))
            .map(ToString::to_string)
            .collect(),
        possible_clashes: generation
            .possible_clashes()
            .iter()
            .filter(|clash| has(&clash.first) && has(&clash.second))
            .map(ToString::to_string)
            .collect(),
    }
}

fn print(args: &PlanArgs, reports: &[PlanReport<'_>]) -> Result<(), Failure> {
    match args.output {
        ReportFormat::Json => output::json(&reports),
        ReportFormat::Table => {
            let texts: Vec<_> = reports.iter().map(lines).collect();
            output::lines(texts.join(&String::new()))
        }
    }
}

fn lines(report: &PlanReport<'_>) -> Vec<String> {
    let mut out = Vec::new();
    match &report.train_job {
        Some(job) => out.push(format!("TrainJob {job}")),
        None => out.push("All loaded plugins".to_owned()),
    }
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

    use std::sync::Arc;

    use trainyard_model::{manifest::Manifest, plugin::Settings};

    use super::*;

    #[test]
    fn pod_sets_that_num_nodes_sets_stand_among_the_claims() {
        let manifest = br#"{"name": "mpi", "version": "1.0.0", "contract": "1.0.0", "activeWhen": "mlPolicy.mpi",
            "phases": ["transform"], "nodeSets": [{"podSet": "node"}, {"podSet": "launcher", "when": "/runs"}]}"#;
        let manifest = Manifest::parse(manifest).unwrap();
        let mpi = Arc::new(Plugin::new(manifest, "digest", Settings::built_in()).unwrap());
        let generation = Generation::new([mpi.clone()]).unwrap();
        let told = |claims| report(None, Vec::new(), &[&mpi], &generation, claims);
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
        let all = report(None, generation.overview(), &[&a, &b], &generation, false);
        assert!(
            lines(&all).iter().any(|line| line.starts_with(
                "possible clash: a writes `labels[$config./label]`, b writes `labels[team]`"
            )),
            "{:?}",
            lines(&all)
        );
        let one = report(None, generation.overview(), &[&a], &generation, false);
        assert!(one.possible_clashes.is_empty());
    }
}
