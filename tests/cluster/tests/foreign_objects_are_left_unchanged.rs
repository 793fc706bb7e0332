//! The controller changes neither a JobSet that is not its own, nor a TrainJob that another controller manages: no field of them, so their
//! `resourceVersion` stays as well.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{Fate, Test, Write};

use crate::common::{Namespace, Undisturbed};

async fn foreign_job_set_is_left_unchanged(shared: &Undisturbed) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    // With another manager, the JobSet controller does not write to it either.
    let theirs = json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "taken"},
        "spec": {"suspend": true, "managedBy": "example.com/theirs", "replicatedJobs": [
            {"name": "theirs", "template": {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}}},
        ]},
    });
    let before = namespace
        .api(&namespace.job_sets)
        .create(&theirs, &Write::strict())
        .await?
        .accepted()?;
    namespace
        .create("taken", &json!({"runtimeRef": {"name": "torch"}}))
        .await?;
    namespace
        .event("taken", "JobSet `taken` does not belong to this TrainJob")
        .await?;
    let job_sets = namespace.api(&namespace.job_sets);
    let after = job_sets.get("taken").await?.accepted()?;
    ensure!(after == before, "{before:#} {after:#}");
    namespace
        .api(&namespace.jobs)
        .delete("taken")
        .await?
        .accepted()?;
    namespace
        .api(&namespace.jobs)
        .until_all("the TrainJob is gone", <[Value]>::is_empty)
        .await?;
    let after = job_sets.get("taken").await?.accepted()?;
    ensure!(after == before, "{before:#} {after:#}");
    Ok(())
}

async fn train_job_of_another_manager_is_left_alone(shared: &Undisturbed) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Succeed);
    let spec = json!({"runtimeRef": {"name": "torch"}, "managedBy": "kueue.x-k8s.io/multikueue"});
    let before = namespace.create("theirs", &spec).await?;
    namespace
        .create("ours", &json!({"runtimeRef": {"name": "torch"}}))
        .await?;
    namespace.until_complete("ours").await?;
    let theirs = namespace
        .api(&namespace.jobs)
        .get("theirs")
        .await?
        .accepted()?;
    ensure!(theirs == before, "{before:#} {theirs:#}");
    ensure!(
        namespace
            .api(&namespace.job_sets)
            .get("theirs")
            .await?
            .status
            .as_u16()
            == 404
    );
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Undisturbed>> {
    tests![
        foreign_job_set_is_left_unchanged,
        train_job_of_another_manager_is_left_alone,
    ]
}
