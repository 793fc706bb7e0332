//! Prometheus' own engine evaluates each query of the dashboard on the metrics of a controller that reconciled TrainJobs: each panel has data,
//! except for those that show only faults of the cluster.

use std::{collections::BTreeMap, ffi::OsString, fs, process::Command};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{Fate, Test, chart, promtool};

use crate::common::{Controlled, Namespace, Setup, runtime};

/// The runtime `torch`.
pub(crate) struct Runtime;

impl Setup for Runtime {
    fn runtimes() -> Vec<Value> {
        vec![runtime()]
    }

    fn arguments() -> Result<Vec<OsString>> {
        Ok(Vec::new())
    }
}

/// The panels without data until an API server is too slow for Events, a plugin fails, or the cluster declares plugins.
const OF_FAULTS: [&str; 6] = [
    "Dropped Events",
    "Calls that failed",
    "Share of calls that fail, by digest",
    "PolicyPlugins that are not active",
    "Stage of the newest PluginRevision",
    "Replicas without the plugins in use",
];
/// What Prometheus adds to each series of a ServiceMonitor.
const TARGET: &str = r#"job="kubeflow-trainer-metrics",pod="trainyard-0""#;

/// The panels with their queries, in which Grafana has set the variables.
fn queries() -> Result<Vec<(String, String)>> {
    let dashboard = fs::read(chart().join("files/dashboard.json"))?;
    let dashboard: Value = serde_json::from_slice(&dashboard)?;
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().context("no panels")? {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let title = panel["title"].as_str().context("no title")?;
            let query = target["expr"].as_str().context("no query")?;
            let query = query.replace("$__rate_interval", "5m");
            let query = query.replace("$job", "kubeflow-trainer-metrics");
            queries.push((title.to_owned(), query));
        }
    }
    Ok(queries)
}

/// Returns the values of all series, with the labels of the target.
fn series(text: &str) -> BTreeMap<String, &str> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let samples = lines.filter_map(|line| line.rsplit_once(' '));
    let named = samples.map(|(name, value)| {
        let name = match name.strip_suffix('}') {
            Some(labeled) => format!("{labeled},{TARGET}}}"),
            None => format!("{name}{{{TARGET}}}"),
        };
        (name, value)
    });
    named.collect()
}

/// A query that is 1 if this one has data, and nothing if it has none or is not a number.
fn has_data(query: &str) -> String {
    format!("count(({query}) >= 0) > bool 0")
}

/// Returns the input of promtool: two scrapes, and what each query has to return.
fn unit_test(scrapes: [&str; 2]) -> Result<Value> {
    let [before, after] = scrapes.map(series);
    let input = after.iter().map(|(name, value)| {
        let before = before.get(name).unwrap_or(&"_");
        json!({"series": name, "values": format!("{before} {value}")})
    });
    let checks = queries()?.into_iter().map(|(title, query)| {
        let expression = match OF_FAULTS.contains(&title.as_str()) {
            true => format!("({} or vector(1)) >= bool 0", has_data(&query)),
            false => has_data(&query),
        };
        json!({"expr": expression, "eval_time": "1m", "exp_samples": [{"labels": "{}", "value": 1}]})
    });
    let (input, checks): (Vec<_>, Vec<_>) = (input.collect(), checks.collect());
    ensure!(input.len() > 100 && checks.len() > 20, "{input:#?}");
    let test = json!({"interval": "1m", "input_series": input, "promql_expr_test": checks});
    Ok(json!({"evaluation_interval": "1m", "tests": [test]}))
}

async fn each_panel_has_data(shared: &Controlled<Runtime>) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Succeed);
    let mut scrapes = Vec::new();
    for round in 0..2 {
        let [done, waits, refused] =
            ["done", "waits", "refused"].map(|name| format!("{name}-{round}"));
        let spec = |runtime: &str| json!({"runtimeRef": {"name": runtime}});
        namespace.create(&done, &spec("torch")).await?;
        namespace.create(&waits, &spec("missing")).await?;
        let mut invalid = spec("torch");
        invalid["trainer"] = json!({"env": [{"name": "PET_NNODES", "value": "9"}]});
        namespace.create(&refused, &invalid).await?;
        namespace.until_complete(&done).await?;
        namespace.event(&waits, "missing").await?;
        namespace.event(&refused, "PET_NNODES").await?;
        shared.controller.until_idle().await?;
        scrapes.push(shared.controller.metrics().await?);
    }
    let [before, after] = scrapes.as_slice() else {
        anyhow::bail!("{} scrapes", scrapes.len());
    };
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("dashboard.yaml");
    fs::write(&file, unit_test([before, after])?.to_string())?;
    let mut check = Command::new(promtool()?);
    let output = check.args(["test", "rules"]).arg(&file).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}\n{after}");
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Controlled<Runtime>>> {
    tests![each_panel_has_data]
}
