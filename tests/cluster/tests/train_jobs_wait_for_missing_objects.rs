//! A TrainJob that waits for a missing object continues when it is created, and not only at the next retry: the test waits until the next
//! retry is far away.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde_json::json;
use trainyard_cluster::{Resource, Test, Write, eventually};

use crate::common::flavors::{FlavorNamespace, WithFlavors, flavor, pod_label};

/// After this many failures, the next retry is at least 32 seconds away.
const FAILURES: f64 = 6.0;
/// The timeout, which is shorter than that and far longer than the delay of a watch.
const BEFORE_IT_IS_TRIED_AGAIN: Duration = Duration::from_secs(30);

async fn created_object_resumes_its_train_job(shared: &WithFlavors) -> Result<()> {
    let namespace = FlavorNamespace::new(&shared.plane).await?;
    let flavors = Resource::namespaced("/apis/example.com/v1", "flavors");
    let failed = async || {
        let name = "controller_runtime_reconcile_errors_total";
        shared.controller.metric(name, "").await
    };
    let before = failed().await?;
    namespace.job("waits", false, ("flavor", "default")).await?;
    eventually("it has waited for long", async || {
        Ok((failed().await? - before >= FAILURES).then_some(()))
    })
    .await?;
    // Objects of other namespaces have no effect.
    let elsewhere = shared.plane.new_namespace().await?;
    let made = shared.plane.api(&flavors, &elsewhere);
    made.create(&flavor("h100"), &Write::strict())
        .await?
        .accepted()?;
    let other =
        json!({"apiVersion": "example.com/v1", "kind": "Flavor", "metadata": {"name": "other"}});
    namespace.create(&flavors, &other).await?;
    namespace.create(&flavors, &flavor("a100")).await?;
    let came = Instant::now();
    loop {
        let found = namespace.api(&namespace.job_sets).items().await?;
        if let [job_set] = found.as_slice() {
            ensure!(pod_label(job_set, "gpu") == Some("a100"), "{job_set:#}");
            return Ok(());
        }
        if came.elapsed() > BEFORE_IT_IS_TRIED_AGAIN {
            bail!("no watch woke the TrainJob");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub(crate) fn tests() -> Vec<Test<WithFlavors>> {
    tests![created_object_resumes_its_train_job]
}
