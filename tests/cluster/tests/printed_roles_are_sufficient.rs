//! The roles that `trainyard rbac` prints for the loaded plugins are sufficient. Without the permissions beyond deploy/, an Event names
//! what is missing, and only that TrainJob waits.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{Fate, Resource, Test, Write, build_plugin, eventually};
use trainyard_schema::documents::Kind;

use crate::{
    common,
    common::{Controlled, Namespace, Setup, flavors, kind, roles},
};

/// A controller with a plugin that looks objects up, and only the roles of deploy/.
pub(crate) struct LooksUp;

fn plugins() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("looks-up")
}

impl Setup for LooksUp {
    fn runtimes() -> Vec<Value> {
        let mut flavored = common::runtime();
        flavored["metadata"]["name"] = json!("flavored");
        flavored["spec"]["plugins"] = json!([{"name": "flavors"}]);
        vec![common::runtime(), flavored]
    }

    fn arguments() -> Result<Vec<OsString>> {
        std::fs::create_dir_all(plugins())?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/flavors");
        build_plugin(&source, &plugins().join("flavors.wasm"), &[])?;
        let plugins = [
            "--leader-elect".into(),
            "--plugin-dir".into(),
            plugins().into(),
        ];
        Ok(plugins.into_iter().chain(flavors::policy()).collect())
    }
}

pub(crate) type Shared = Controlled<LooksUp>;

/// Returns the output of `trainyard rbac` for the plugin.
fn printed() -> Result<Vec<Value>> {
    let plugins = ["--plugin-dir".into(), plugins().into()];
    let arguments: Vec<OsString> = plugins.into_iter().chain(flavors::policy()).collect();
    roles::printed(&arguments)
}

/// Creates a TrainJob whose plugin looks up this PriorityClass.
async fn asks_for(namespace: &Namespace<'_>, name: &str, class: &str) -> Result<()> {
    let job = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
        "metadata": {"name": name, "labels": {"example.com/priority": class}},
        "spec": {"runtimeRef": {"name": "flavored"}},
    });
    let jobs = kind(Kind::TrainJob)?;
    let jobs = namespace.api(&jobs);
    jobs.create(&job, &Write::strict()).await?.accepted()?;
    Ok(())
}

/// Returns the roles without the permission to look up PriorityClasses, which those of deploy/ have for a built-in plugin.
fn without_priority_classes(mut roles: Vec<Value>) -> Vec<Value> {
    for role in &mut roles {
        if let Some(rules) = role["rules"].as_array_mut() {
            let is_kept = |rule: &Value| rule["resources"] != json!(["priorityclasses"]);
            rules.retain(is_kept);
        }
    }
    roles
}

async fn printed_roles_suffice_and_are_necessary(shared: &Shared) -> Result<()> {
    let roles = without_priority_classes(printed()?);
    roles::grant(shared.cluster.plane(), &roles).await?;
    let classes = Resource::cluster_wide("/apis/scheduling.k8s.io/v1", "priorityclasses");
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "research"}, "value": 5, "description": "first",
    });
    let classes = shared.cluster.api(&classes, "");
    classes.create(&class, &Write::strict()).await?.accepted()?;
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Succeed);
    asks_for(&namespace, "asks", "research").await?;
    let event = namespace.event("asks", "priorityclasses").await?;
    let text = event["message"].as_str().unwrap_or_default();
    ensure!(text.contains("forbidden"), "{event:#}");
    ensure!(
        event["type"] == "Warning" && event["reason"] == "TrainJobResourcesCreationFailed",
        "{event:#}"
    );
    let plain = json!({"runtimeRef": {"name": "torch"}});
    namespace.create("plain", &plain).await?;
    namespace.until_complete("plain").await?;
    let (code, lacks) = shared.controller.readiness().await?;
    ensure!(code == 200, "{lacks}");
    let job_set = namespace.api(&namespace.job_sets).get("asks").await?;
    ensure!(job_set.status.as_u16() == 404, "{job_set:?}");

    roles::grant(shared.cluster.plane(), &printed()?).await?;
    namespace.until_complete("asks").await?;
    let job_set = namespace.job_set("asks").await?;
    let pods = &job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"];
    ensure!(
        pods["metadata"]["labels"]["example.com/priority"] == "first",
        "{job_set:#}"
    );

    // The same roles suffice to watch the lookups, and to suspend, complete and delete the TrainJob.
    asks_for(&namespace, "waits", "late").await?;
    namespace.event("waits", "does not exist").await?;
    let mut late = class.clone();
    late["metadata"]["name"] = json!("late");
    classes.create(&late, &Write::strict()).await?.accepted()?;
    namespace.until_complete("waits").await?;
    let timed = json!({"runtimeRef": {"name": "torch"}, "activeDeadlineSeconds": 1});
    namespace.fate(Fate::Hold);
    namespace.create("timed", &timed).await?;
    let failed = |job: &Value| common::is(job, "Failed", "True");
    namespace.until("timed", "it failed", failed).await?;
    let gone = |all: &[Value]| !all.iter().any(|one| one["metadata"]["name"] == "timed");
    let job_sets = namespace.api(&namespace.job_sets);
    job_sets.until_all("its JobSet is gone", gone).await?;
    eventually("it still leads", async || {
        let leads = shared.controller.metric("trainyard_leader", "").await?;
        Ok((leads == 1.0).then_some(()))
    })
    .await
}

pub(crate) fn tests() -> Vec<Test<Shared>> {
    tests![printed_roles_suffice_and_are_necessary]
}
