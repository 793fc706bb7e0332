//! Hugging Face's Trainer reports progress by itself, from the pods of a TrainJob with two nodes, with no setting but the env vars, the token and
//! the certificate authority that its containers have.

use std::{collections::BTreeSet, fs};

use anyhow::{Result, ensure};
use serde_json::json;
use trainyard_cluster::{Images, Installed, Test, eventually};

use crate::common::{Namespace, Reporting, progress};

/// The name of the only test.
pub(crate) const NAME: &str = "hugging_face_trainer_reports_progress";
/// A folder of the test in every pod, and the file in it without which no step is trained.
const SHARED: &str = "/run/shared";
const GO: &str = "go";
/// The steps of the program.
const STEPS: &str = "10";

async fn hugging_face_trainer_reports_progress(
    shared: &Reporting,
    installed: &Installed,
) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    let folder = tempfile::tempdir()?;
    let image = installed.image.clone().file(folder.path(), SHARED);
    let kubelet = shared.cluster.kubelet();
    kubelet.run(&namespace.name, Images::new().otherwise(image));
    let trainer = json!({
        "numNodes": 2,
        "command": installed.command,
        "args": [format!("{SHARED}/{GO}")],
    });
    let spec = json!({"runtimeRef": {"name": "torch"}, "trainer": trainer});
    namespace.create("bert", &spec).await?;
    let began = eventually("the Trainer has begun", async || {
        let found = progress(&namespace, "bert").await?;
        Ok(found.is_object().then_some(found))
    })
    .await?;
    ensure!(
        began["progressPercentage"] == 0
            && began["metrics"] == json!([{"name": "total_steps", "value": STEPS}]),
        "{began:#}"
    );
    fs::write(folder.path().join(GO), "")?;
    namespace.until_complete("bert").await?;
    let ended = progress(&namespace, "bert").await?;
    let metrics = ended["metrics"].as_array().into_iter().flatten();
    let names: BTreeSet<_> = metrics
        .filter_map(|metric| metric["name"].as_str())
        .collect();
    let expected = ["loss", "learning_rate", "train_loss"];
    ensure!(
        ended["progressPercentage"] == 100
            && ended["estimatedRemainingSeconds"] == 0
            && expected.iter().all(|name| names.contains(name)),
        "{ended:#}"
    );
    Ok(())
}

pub(crate) fn tests(installed: &Installed) -> Vec<Test<Reporting>> {
    let installed = installed.clone();
    vec![Test::new(NAME, async move |shared: &Reporting| {
        hugging_face_trainer_reports_progress(shared, &installed).await
    })]
}
