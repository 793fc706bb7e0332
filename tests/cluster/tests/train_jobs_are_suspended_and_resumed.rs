//! Suspending a TrainJob changes one field and two annotations of its JobSet; a queued TrainJob still accepts changes, and one that is being
//! deleted can still be suspended.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{Fate, Test, Write};

use crate::common::{
    Namespace, RESUMED, SUSPENDED, Undisturbed, described_conditions, is, until_counted,
};

/// Returns an object without what follows from each write, and without its status, which JobSet writes.
fn written(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["resourceVersion", "generation", "managedFields"] {
            metadata.remove(field);
        }
    }
    object
}

async fn suspending_changes_one_field_and_two_annotations(shared: &Undisturbed) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    namespace
        .create("waits", &json!({"runtimeRef": {"name": "torch"}}))
        .await?;
    namespace.until_active("waits", 1).await?;
    let before = namespace.job_set("waits").await?;
    namespace.patch("waits", &json!({"suspend": true})).await?;
    let suspended = namespace
        .until("waits", "it is suspended", |job| {
            is(job, "Suspended", "True")
        })
        .await?;
    ensure!(
        described_conditions(&suspended) == [SUSPENDED],
        "{suspended:#}"
    );
    until_counted(&namespace, "waits", &["suspended"]).await?;
    let after = namespace
        .api(&namespace.job_sets)
        .until("waits", "it is suspended", |set| {
            set["spec"]["suspend"] == true
        })
        .await?;
    let mut expected = before.clone();
    expected["spec"]["suspend"] = true.into();
    let annotations = &mut expected["metadata"]["annotations"];
    annotations["trainyard.dev/started"] = "true".into();
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.remove("trainyard.dev/inputs");
    }
    ensure!(
        written(&after) == written(&expected),
        "{before:#} {after:#}"
    );
    namespace
        .api(&namespace.pods)
        .until_all("its pods are gone", <[Value]>::is_empty)
        .await?;
    // Fields that JobSet allows to change while a JobSet is suspended reach its pods when it resumes.
    let patches = json!([{"manager": "example.com/queue", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [
        {"name": "node", "template": {"spec": {"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}}}},
    ]}}}}]);
    namespace
        .patch("waits", &json!({"runtimePatches": patches}))
        .await?;
    namespace.patch("waits", &json!({"suspend": false})).await?;
    let resumed = namespace
        .until("waits", "it is resumed", |job| {
            is(job, "Suspended", "False")
        })
        .await?;
    ensure!(described_conditions(&resumed) == [RESUMED], "{resumed:#}");
    until_counted(&namespace, "waits", &["active", "ready"]).await?;
    let pods = namespace.api(&namespace.pods).items().await?;
    let tolerated = |pod: &Value| {
        let all = pod["spec"]["tolerations"].as_array();
        all.is_some_and(|all| {
            all.iter()
                .any(|one| one["operator"] == "Exists" && one.get("key").is_none())
        })
    };
    ensure!(pods.iter().all(tolerated), "{pods:#?}");
    namespace.fate(Fate::Succeed);
    let done = namespace.until_complete("waits").await?;
    ensure!(is(&done, "Suspended", "False"), "{done:#}");
    Ok(())
}

async fn queued_train_job_accepts_changed_patches(shared: &Undisturbed) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    let patches = |zone: &str, tolerations: Value| {
        json!([{"manager": "example.com/queue", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [
            {"name": "node", "template": {"spec": {"template": {"spec": {
                "nodeSelector": {"zone": zone}, "tolerations": tolerations,
            }}}}},
        ]}}}}])
    };
    let spec = json!({"runtimeRef": {"name": "torch"}, "suspend": true, "runtimePatches": patches("a", json!([]))});
    namespace.create("queued", &spec).await?;
    let zone = |set: &Value| {
        set.pointer("/spec/replicatedJobs/0/template/spec/template/spec/nodeSelector/zone")
            .cloned()
    };
    let before = namespace
        .api(&namespace.job_sets)
        .until("queued", "it is there", |set| zone(set) == Some(json!("a")))
        .await?;
    namespace
        .until("queued", "it is suspended", |job| {
            is(job, "Suspended", "True")
        })
        .await?;
    namespace
        .patch(
            "queued",
            &json!({"runtimePatches": patches("b", json!([{"operator": "Exists"}]))}),
        )
        .await?;
    let changed = namespace
        .api(&namespace.job_sets)
        .until("queued", "it has changed", |set| {
            zone(set) == Some(json!("b"))
        })
        .await?;
    let pods = &changed["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"];
    ensure!(
        pods["tolerations"] == json!([{"operator": "Exists"}])
            && changed["spec"]["suspend"] == true,
        "{changed:#}"
    );
    namespace
        .patch(
            "queued",
            &json!({"suspend": false, "runtimePatches": patches("c", json!([]))}),
        )
        .await?;
    let resumed = namespace
        .api(&namespace.job_sets)
        .until("queued", "it goes on", |set| {
            set["spec"]["suspend"] == false
        })
        .await?;
    ensure!(zone(&resumed) == Some(json!("c")), "{resumed:#}");
    ensure!(
        resumed["metadata"]["uid"] == before["metadata"]["uid"],
        "it was deleted and recreated: {resumed:#}"
    );
    let tolerations = &resumed["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        ["tolerations"];
    ensure!(
        tolerations.as_array().is_none_or(Vec::is_empty),
        "{resumed:#}"
    );
    Ok(())
}

/// A finalizer keeps a deleted TrainJob, and its JobSet is deleted only with it.
async fn terminating_train_job_is_still_suspended_and_finished(shared: &Undisturbed) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    let jobs = namespace.api(&namespace.jobs);
    let finalizer = |kept: bool| json!({"metadata": {"finalizers": kept.then_some("example.com/keep").into_iter().collect::<Vec<_>>()}});
    for name in ["preempted", "completes"] {
        let spec = json!({"runtimeRef": {"name": "torch"}});
        namespace.create(name, &spec).await?;
        let kept = jobs.merge(name, &finalizer(true), &Write::strict()).await?;
        kept.accepted()?;
        namespace.until_active(name, 1).await?;
        jobs.delete(name).await?.accepted()?;
    }
    let suspend = json!({"spec": {"suspend": true}});
    let suspended = jobs.merge("preempted", &suspend, &Write::strict()).await?;
    suspended.accepted()?;
    let waits = |job: &Value| is(job, "Suspended", "True");
    namespace.until("preempted", "it waits", waits).await?;
    let job_sets = namespace.api(&namespace.job_sets);
    let is_suspended = |job_set: &Value| job_set["spec"]["suspend"] == true;
    job_sets
        .until("preempted", "it is suspended", is_suspended)
        .await?;
    namespace.fate(Fate::Succeed);
    namespace.until_complete("completes").await?;
    // It is not unsuspended again.
    let resume = json!({"spec": {"suspend": false}});
    let resumed = jobs.merge("preempted", &resume, &Write::strict()).await?;
    resumed.accepted()?;
    let goes_on = |job: &Value| is(job, "Suspended", "False");
    namespace
        .until("preempted", "that is heard", goes_on)
        .await?;
    let now = job_sets.get("preempted").await?.accepted()?;
    ensure!(is_suspended(&now), "{now:#}");
    for name in ["preempted", "completes"] {
        let freed = jobs
            .merge(name, &finalizer(false), &Write::strict())
            .await?;
        freed.accepted()?;
    }
    jobs.until_all("both are gone", <[Value]>::is_empty)
        .await
        .map(drop)
}

pub(crate) fn tests() -> Vec<Test<Undisturbed>> {
    tests![
        suspending_changes_one_field_and_two_annotations,
        queued_train_job_accepts_changed_patches,
        terminating_train_job_is_still_suspended_and_finished,
    ]
}
