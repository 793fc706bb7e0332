//! The rehearsals of the move and of the way back, as the page says.

use std::{collections::BTreeSet, fs};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::eventually;

use super::{BACK, JOBS, step};
use crate::common::{Namespace, charts::Charts, pages::MOVE};

/// Runs `trainyard diff` as the page prints it, for the whole cluster and for a namespace. It finds only what rows list.
pub(super) async fn of_the_way_there(charts: &Charts<'_>, namespace: &Namespace<'_>) -> Result<()> {
    let (_, section) = MOVE
        .split_once("### Rehearse the move\n")
        .context("no rehearsal")?;
    let block = section
        .split("```text\n")
        .nth(1)
        .and_then(|block| block.split("```").next());
    let mut outputs = Vec::new();
    for line in block.context("no commands")?.lines() {
        let command = line
            .split('#')
            .next()
            .unwrap_or_default()
            .replace("team-a", &namespace.name);
        outputs.push(charts.shell(&format!("{command} || test $? -eq 1")).await?);
    }
    ensure!(outputs.len() == 4, "{outputs:?}");
    let report: Value = serde_json::from_slice(&fs::read(charts.path("diff.json"))?)?;
    let objects = report["objects"].as_array().into_iter().flatten();
    let compared = objects.filter(|object| object["comparedWith"] == "jobSet");
    ensure!(compared.count() == JOBS.len(), "{report:#}");
    ensure!(
        report["notRead"] == json!([]) && report["outcome"] == "listed",
        "{report:#}"
    );
    let notes = report["notes"].to_string();
    for what in ["the CRDs belong", "JobSet belongs"] {
        let of_release = "to the Helm release kubeflow-trainer in the namespace kubeflow-system";
        ensure!(notes.contains(&format!("{what} {of_release}")), "{notes}");
    }
    Ok(())
}

/// Runs the shadow mode as the page says, with the values for the reference. It finds what `trainyard diff` finds, and changes nothing.
pub(super) async fn by_the_shadow_mode(charts: &Charts<'_>) -> Result<()> {
    let commands = step(MOVE, "With the chart, the shadow mode", "Without the chart")?;
    let [values, install, remove] = &commands[..] else {
        anyhow::bail!("{commands:?}");
    };
    charts.shell(values).await?;
    charts.hold_the_shadow();
    // It takes over nothing.
    ensure!(!install.contains("--take-ownership"), "{install}");
    charts
        .shell(&format!("{install} --wait --timeout 5m"))
        .await?;
    let trainyard = charts.shadow().await?;
    let count = async |outcome: &str| {
        let label = format!("outcome=\"{outcome}\"");
        trainyard
            .metric("trainyard_shadow_train_jobs", &label)
            .await
    };
    eventually("the shadow has compared all", async || {
        let compared = count("listed").await? + count("same").await?;
        Ok((compared >= JOBS.len() as f64).then_some(()))
    })
    .await?;
    for outcome in ["unlisted", "refused", "not-compared"] {
        ensure!(count(outcome).await? == 0.0, "some are {outcome}");
    }
    trainyard.stop().await?;
    charts.shell(remove).await.map(drop)
}

/// What the rehearsal of the way back says: namespaces and names of TrainJobs, with what to do.
pub(super) type Said = BTreeSet<(String, String, String)>;

/// Rehearses the way back, as the page says.
pub(super) async fn of_the_way_back(charts: &Charts<'_>) -> Result<Said> {
    let (_, page) = MOVE.split_once(BACK).context("no way back")?;
    let rehearsal = step(page, "1. **Rehearse.**", "2. **Remove Trainyard")?;
    let [rehearse, list] = &rehearsal[..] else {
        anyhow::bail!("{rehearsal:?}");
    };
    charts.shell(list).await?;
    let report = charts
        .shell(&format!("{rehearse} -o json || test $? -eq 1"))
        .await?;
    let report: Value = serde_json::from_str(&report)?;
    ensure!(report["notRead"] == json!([]), "{report:#}");
    // JobSet is no part of Trainyard's release.
    ensure!(report["notes"] == json!([]), "{report:#}");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let objects = report["objects"].as_array().into_iter().flatten();
    let found = objects.flat_map(|object| {
        let findings = object["findings"].as_array().into_iter().flatten();
        let place = (text(&object["namespace"]), text(&object["name"]));
        findings.map(move |finding| (place.0.clone(), place.1.clone(), text(&finding["action"])))
    });
    Ok(found.collect())
}
