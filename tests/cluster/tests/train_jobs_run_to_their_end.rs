//! A TrainJob becomes a JobSet, which runs until it completes, fails or exceeds its deadline; the status shows each step, and a deleted
//! TrainJob leaves nothing behind.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{Fate, Resource, Shared as _, Test, Trainyard, Write};
use trainyard_schema::documents::Kind;

use crate::common::{
    Namespace, OVERDUE, Undisturbed, conditions, described_conditions, is, kind, runtime_with,
    until_counted,
};

async fn torch_plain_and_initializers_complete(shared: &Undisturbed) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    let two = json!({"numNodes": 2, "image": "example.com/mine", "env": [{"name": "MINE", "value": "1"}]});
    namespace
        .create(
            "torch",
            &json!({"runtimeRef": {"name": "torch"}, "trainer": two}),
        )
        .await?;
    namespace
        .create("plain", &json!({"runtimeRef": {"name": "plain"}}))
        .await?;
    let initializer = json!({"dataset": {"storageUri": "hf://owner/data"}});
    namespace
        .create(
            "fetched",
            &json!({"runtimeRef": {"name": "with-initializers"}, "initializer": initializer}),
        )
        .await?;
    let job = namespace.until_active("torch", 1).await?;
    ensure!(conditions(&job).is_empty(), "{job:#}");
    let job_set = namespace.job_set("torch").await?;
    let owner = &job_set["metadata"]["ownerReferences"][0];
    ensure!(
        owner["uid"] == job["metadata"]["uid"] && owner["controller"] == true,
        "{job_set:#}"
    );
    let node = &job_set["spec"]["replicatedJobs"][0]["template"]["spec"];
    let container = &node["template"]["spec"]["containers"][0];
    let env: Vec<&str> = container["env"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|v| v["name"].as_str())
        .collect();
    ensure!(env.starts_with(&["MINE", "PET_NNODES"]), "{env:?}");
    ensure!(
        node["parallelism"] == 2 && container["image"] == "example.com/mine",
        "{job_set:#}"
    );
    let four_run = |pods: &[Value]| {
        let running = |pod: &&Value| pod["status"]["phase"] == "Running";
        pods.iter().filter(running).count() == 4
    };
    namespace
        .api(&namespace.pods)
        .until_all("four pods run", four_run)
        .await?;
    namespace.fate(Fate::Succeed);
    for name in ["torch", "plain", "fetched"] {
        let job = namespace.until_complete(name).await?;
        let set = namespace.job_set(name).await?;
        let theirs = described_conditions(&set);
        let theirs = theirs.iter().find(|one| one[0] == "Completed");
        let theirs = theirs.context("its JobSet is not complete")?;
        let [_, status, reason, message] = theirs.clone();
        ensure!(
            described_conditions(&job) == [["Complete".to_owned(), status, reason, message]],
            "{job:#}"
        );
        let jobs = job["status"]["jobsStatus"].as_array();
        let done = jobs.is_some_and(|jobs| jobs.iter().all(|one| one["succeeded"] == 1));
        ensure!(done, "{job:#}");
    }
    for name in ["torch", "plain"] {
        until_counted(&namespace, name, &["succeeded"]).await?;
    }
    let snapshot = namespace
        .api(&namespace.config_maps)
        .get("torch-runtime-snapshot")
        .await?
        .accepted()?;
    ensure!(
        snapshot["data"]["plan"]
            .as_str()
            .is_some_and(|plan| plan.contains("sha256:")),
        "{snapshot:#}"
    );
    Ok(())
}

async fn live_train_job_is_explained_from_its_snapshot(shared: &Undisturbed) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    let runtimes = kind(Kind::ClusterTrainingRuntime)?;
    let runtimes = shared.plane().api(&runtimes, "");
    let runtime = runtime_with("explained", &json!({"torch": {}}));
    runtimes
        .create(&runtime, &Write::strict())
        .await?
        .accepted()?;
    let spec = json!({"runtimeRef": {"name": "explained"}, "trainer": {"numNodes": 2}});
    namespace.create("asked", &spec).await?;
    namespace.until_active("asked", 1).await?;
    // The explanation is based on the snapshot of the JobSet, and not on the current runtime.
    let mut changed = runtimes.get("explained").await?.accepted()?;
    changed["spec"]["mlPolicy"] = json!({});
    let pod = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec";
    let image = changed.pointer_mut(&format!("{pod}/containers/0/image"));
    *image.context("no image")? = json!("example.com/another");
    runtimes
        .replace(&changed, &Write::strict())
        .await?
        .accepted()?;
    let explain = |arguments: &[&str]| {
        let mut command = std::process::Command::new(Trainyard::program()?);
        command.arg("explain").args(arguments);
        command.args(["--namespace", &namespace.name, "--kubeconfig"]);
        anyhow::Ok(command.arg(shared.plane().kubeconfig()).output()?)
    };
    let container = "spec.replicatedJobs[node].template.spec.template.spec.containers[node]";
    for (field, by, to) in [
        ("env[PET_NNODES]", json!(["plugin", "torch"]), "2"),
        ("image", json!(["runtime", null]), "example.com/image"),
    ] {
        let field = format!("{container}.{field}");
        let output = explain(&["trainjob/asked", &field, "--output=json"])?;
        let printed = String::from_utf8(output.stderr)?;
        ensure!(output.status.success() && printed.is_empty(), "{printed}");
        let explained: Value = serde_json::from_slice(&output.stdout)?;
        let steps = explained[0]["fields"][0]["steps"].as_array();
        let [step] = steps.map(Vec::as_slice).unwrap_or_default() else {
            bail!("{explained:#}");
        };
        let found = json!([step["by"]["kind"], step["by"]["name"]]);
        ensure!(found == by && step["to"] == to, "{explained:#}");
    }
    let output = explain(&["trainjob/nobody"])?;
    let printed = String::from_utf8(output.stderr)?;
    ensure!(
        !output.status.success() && printed.contains("there is no TrainJob `nobody`"),
        "{printed}"
    );
    Ok(())
}

async fn failed_train_job_stays_failed_after_its_job_set_is_deleted(
    shared: &Undisturbed,
) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Fail(3));
    namespace
        .create("fails", &json!({"runtimeRef": {"name": "torch"}}))
        .await?;
    let failed = namespace
        .until("fails", "it failed", |job| is(job, "Failed", "True"))
        .await?;
    let job_set = namespace.job_set("fails").await?;
    let condition = |object: &Value| {
        let all = object["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        all.into_iter()
            .find(|c| c["type"] == "Failed" && c["status"] == "True")
    };
    until_counted(&namespace, "fails", &["failed"]).await?;
    ensure!(described_conditions(&failed).len() == 1, "{failed:#}");
    let (ours, theirs) = (condition(&failed), condition(&job_set));
    for field in ["reason", "message", "lastTransitionTime"] {
        ensure!(
            ours.as_ref().map(|c| &c[field]) == theirs.as_ref().map(|c| &c[field]),
            "{ours:?} {theirs:?}"
        );
    }
    namespace.fate(Fate::Succeed);
    namespace
        .api(&namespace.job_sets)
        .delete("fails")
        .await?
        .accepted()?;
    namespace
        .api(&namespace.pods)
        .until_all("its pods are gone", <[Value]>::is_empty)
        .await?;
    // A second run would have started by the time another TrainJob is complete.
    namespace
        .create("other", &json!({"runtimeRef": {"name": "torch"}}))
        .await?;
    namespace.until_complete("other").await?;
    let after = namespace
        .api(&namespace.jobs)
        .get("fails")
        .await?
        .accepted()?;
    ensure!(
        after["status"]["conditions"] == failed["status"]["conditions"],
        "{after:#}"
    );
    let gone = namespace.api(&namespace.job_sets).get("fails").await?;
    ensure!(gone.status.as_u16() == 404, "{gone:?}");
    Ok(())
}

async fn train_job_fails_at_its_deadline(shared: &Undisturbed) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    namespace
        .create(
            "slow",
            &json!({"runtimeRef": {"name": "plain"}, "activeDeadlineSeconds": 2}),
        )
        .await?;
    let job = namespace
        .until("slow", "it failed", |job| is(job, "Failed", "True"))
        .await?;
    ensure!(described_conditions(&job) == [OVERDUE], "{job:#}");
    namespace
        .api(&namespace.job_sets)
        .until_all("its JobSet is gone", <[Value]>::is_empty)
        .await?;
    namespace
        .api(&namespace.pods)
        .until_all("its pods are gone", <[Value]>::is_empty)
        .await?;
    let after = namespace
        .api(&namespace.jobs)
        .get("slow")
        .await?
        .accepted()?;
    ensure!(
        after["status"]["conditions"] == job["status"]["conditions"],
        "{after:#}"
    );
    Ok(())
}

async fn deletion_leaves_nothing_behind(shared: &Undisturbed) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    namespace
        .create("gone", &json!({"runtimeRef": {"name": "torch"}}))
        .await?;
    namespace.until_active("gone", 1).await?;
    namespace
        .api(&namespace.jobs)
        .delete("gone")
        .await?
        .accepted()?;
    namespace
        .api(&namespace.jobs)
        .until_all("the TrainJob is gone", <[Value]>::is_empty)
        .await?;
    namespace
        .api(&namespace.job_sets)
        .until_all("its JobSet is gone", <[Value]>::is_empty)
        .await?;
    namespace
        .api(&namespace.pods)
        .until_all("its pods are gone", <[Value]>::is_empty)
        .await?;
    let none = [
        Resource::jobs(),
        Resource::namespaced("/api/v1", "services"),
        Resource::namespaced("/api/v1", "secrets"),
    ];
    for resource in &none {
        let api = namespace.api(resource);
        api.until_all("none is left", <[Value]>::is_empty).await?;
    }
    let snapshot = "its snapshot is gone, and only the cluster's own certificates are left";
    namespace
        .api(&namespace.config_maps)
        .until_all(snapshot, |maps| {
            maps.iter()
                .all(|map| map["metadata"]["name"] == "kube-root-ca.crt")
        })
        .await?;
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Undisturbed>> {
    tests![
        torch_plain_and_initializers_complete,
        live_train_job_is_explained_from_its_snapshot,
        failed_train_job_stays_failed_after_its_job_set_is_deleted,
        train_job_fails_at_its_deadline,
        deletion_leaves_nothing_behind,
    ]
}
