//! `kubectl get trainjobs` distinguishes a TrainJob that waits from one that runs: the API server's table has the reason, and the condition
//! that is true.

use std::ffi::OsString;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{Fate, Test, Write, eventually};
use trainyard_schema::documents::Kind;

use crate::common::{self, Controlled, Namespace, Setup, kind};

pub(crate) struct OneRuntime;

impl Setup for OneRuntime {
    fn runtimes() -> Vec<Value> {
        vec![common::runtime()]
    }

    fn arguments() -> Result<Vec<OsString>> {
        Ok(Vec::new())
    }
}

type Shared = Controlled<OneRuntime>;

const ANNOTATION: &str = "/metadata/annotations/trainyard.dev~1reconcile-error";

/// Returns the value of a column of the table for a TrainJob.
async fn cell(namespace: &Namespace<'_>, name: &str, column: &str) -> Result<String> {
    let table = namespace.api(&namespace.jobs).table().await?;
    let columns = table["columnDefinitions"].as_array();
    let mut columns = columns.into_iter().flatten();
    let at = columns.position(|it| it["name"] == column);
    let at = at.with_context(|| format!("no column {column}: {table:#}"))?;
    let mut rows = table["rows"].as_array().into_iter().flatten();
    let row = rows.find(|row| row["cells"][0] == name);
    let row = row.with_context(|| format!("no row of {name}: {table:#}"))?;
    Ok(row["cells"][at].as_str().unwrap_or_default().to_owned())
}

async fn a_train_job_without_its_runtime_says_so_until_it_runs(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    let spec = |runtime: &str| json!({"runtimeRef": {"name": runtime}});
    namespace.create("runs", &spec("torch")).await?;
    namespace.until_active("runs", 1).await?;
    let created = namespace.create("waits", &spec("later")).await?;
    let is_annotated = |job: &Value| job.pointer(ANNOTATION).is_some();
    let waits = namespace
        .until("waits", "it says why it waits", is_annotated)
        .await?;

    let wanted = "RuntimeNotFound: spec.runtimeRef.name: there is no ClusterTrainingRuntime `later`; create it, or recreate the TrainJob with another `spec.runtimeRef`";
    ensure!(cell(&namespace, "waits", "Error").await? == wanted);
    ensure!(cell(&namespace, "runs", "Error").await?.is_empty());
    ensure!(cell(&namespace, "waits", "State").await?.is_empty());
    // The user's fields and the generation are unchanged.
    ensure!(waits["spec"] == created["spec"], "{waits:#}");
    ensure!(
        waits["metadata"]["generation"] == created["metadata"]["generation"],
        "{waits:#}"
    );
    let counted = async |state: &str, reason: &str| {
        let labels = format!(r#"state="{state}",reason="{reason}""#);
        let value = shared.controller.metric("trainyard_train_jobs", &labels);
        anyhow::Ok(value.await? >= 1.0)
    };
    ensure!(counted("waiting", "RuntimeNotFound").await?);
    ensure!(counted("running", "").await?);

    let mut runtime = common::runtime();
    runtime["metadata"]["name"] = json!("later");
    let runtimes = kind(Kind::ClusterTrainingRuntime)?;
    let created = shared.cluster.api(&runtimes, "");
    created
        .create(&runtime, &Write::strict())
        .await?
        .accepted()?;
    namespace.until_active("waits", 1).await?;
    eventually("nothing is wrong any more", async || {
        let error = cell(&namespace, "waits", "Error").await?;
        Ok(error.is_empty().then_some(()))
    })
    .await?;
    let job_set = namespace.job_set("waits").await?;
    ensure!(!job_set.to_string().contains("reconcile-error"));
    Ok(())
}

/// The last condition of a resumed TrainJob is `Suspended`, with the status `False`.
async fn the_state_is_the_condition_that_is_true(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    let spec = json!({"runtimeRef": {"name": "torch"}, "suspend": true});
    namespace.create("job", &spec).await?;
    let shows = async |state: &str| {
        let what = format!("the state is {state:?}");
        eventually(&what, async || {
            let shown = cell(&namespace, "job", "State").await?;
            Ok((shown == state).then_some(()))
        })
        .await
    };
    shows("Suspended").await?;
    namespace.patch("job", &json!({"suspend": false})).await?;
    namespace.until_active("job", 1).await?;
    shows("").await?;
    namespace.fate(Fate::Succeed);
    shows("Complete").await
}

pub(crate) fn tests() -> Vec<Test<Shared>> {
    tests![
        a_train_job_without_its_runtime_says_so_until_it_runs,
        the_state_is_the_condition_that_is_true,
    ]
}
