//! A tenant's object that the API server accepts and the controller cannot decode affects only itself: other TrainJobs run, controllers
//! start, the object can be suspended, and none of its text reaches the log.

use std::ffi::OsString;

use anyhow::{Result, ensure};
use http::{Method, Request};
use serde_json::{Value, json};
use trainyard_cluster::{Fate, Shared as _, Test, Trainyard, Write, deploy, eventually};

use crate::common::{Controlled, Namespace, Setup, is, runtime};

pub(crate) struct OneRuntime;

impl Setup for OneRuntime {
    fn runtimes() -> Vec<Value> {
        vec![runtime()]
    }

    fn arguments() -> Result<Vec<OsString>> {
        Ok(vec!["--leader-elect".into()])
    }
}

type Shared = Controlled<OneRuntime>;

/// A text that must not occur in any log.
const SECRET: &str = "the-secret-of-a-tenant";

/// A time beyond the range of the controller's types.
const LATE: &str = "9999-12-31T23:59:59Z";

/// An override of the old form, in which the CRDs keep unknown fields, nested 200 levels deep.
fn deep() -> String {
    let (open, close) = ("{\"a\":".repeat(200), "}".repeat(200));
    format!("{open}\"{SECRET}\"{close}")
}

/// Writes like a client without a limit on nesting.
async fn write(shared: &Shared, method: Method, path: &str, body: String) -> Result<()> {
    let media = match method {
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = Request::builder().method(method).uri(path);
    let request = request
        .header("content-type", media)
        .body(body.into_bytes())?;
    shared.cluster.client().request_text(request).await?;
    Ok(())
}

fn path(namespace: &Namespace<'_>, name: &str) -> String {
    let namespace = &namespace.name;
    format!("/apis/trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/trainjobs{name}")
}

async fn other_train_jobs_run_and_the_controller_starts(shared: &Shared) -> Result<()> {
    let (hostile, other) = (
        Namespace::new(&shared.cluster).await?,
        Namespace::new(&shared.cluster).await?,
    );
    other.fate(Fate::Succeed);
    let text = format!(
        r#"{{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {{"name": "deep"}},
            "spec": {{"runtimeRef": {{"name": "torch"}}, "podTemplateOverrides": [{}]}}}}"#,
        deep()
    );
    write(shared, Method::POST, &path(&hostile, ""), text).await?;
    let spec = json!({"runtimeRef": {"name": "torch"}});
    let suspended = json!({"runtimeRef": {"name": "torch"}, "suspend": true});
    hostile.create("year", &suspended).await?;
    let fields = json!([{
        "manager": SECRET, "operation": "Update", "apiVersion": "trainer.kubeflow.org/v1alpha1", "time": LATE,
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:runtimeRef": {}}},
    }]);
    let jobs = hostile.api(&hostile.jobs);
    let patch = json!({"metadata": {"managedFields": fields}});
    jobs.merge("year", &patch, &Write::strict())
        .await?
        .accepted()?;
    let found = jobs.get("year").await?.accepted()?;
    let times = found["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten();
    ensure!(
        times.into_iter().any(|one| one["time"] == LATE),
        "{found:#}"
    );

    // The watch: later objects are reconciled, including those of the hostile tenant.
    let is_suspended = |job: &Value| is(job, "Suspended", "True");
    hostile
        .until("year", "it is suspended", is_suspended)
        .await?;
    hostile.fate(Fate::Hold);
    hostile.patch("year", &json!({"suspend": false})).await?;
    hostile.until_active("year", 1).await?;
    hostile
        .event("deep", "nested deeper than the 127 levels")
        .await?;
    other.create("later", &spec).await?;
    other.until_complete("later").await?;

    // The list: a starting controller reads all of them.
    let account = deploy(shared.plane()).await?;
    let second = Trainyard::start(shared.plane(), &account, ["--leader-elect"]).await?;
    second.process().still_runs()?;
    for log in [shared.controller.process().log()?, second.process().log()?] {
        ensure!(!log.contains(SECRET), "a tenant's object is in the log");
    }
    second.kill()?;
    Ok(())
}

async fn undecodable_train_job_can_be_suspended(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    let spec = json!({"runtimeRef": {"name": "torch"}});
    namespace.create("grows", &spec).await?;
    namespace.until_active("grows", 1).await?;
    let patch = |suspend: bool| {
        format!(
            r#"{{"spec": {{"suspend": {suspend}, "podTemplateOverrides": [{}]}}}}"#,
            deep()
        )
    };
    let job = path(&namespace, "/grows");
    write(shared, Method::PATCH, &job, patch(true)).await?;
    let job_sets = namespace.api(&namespace.job_sets);
    let is_suspended = |job_set: &Value| job_set["spec"]["suspend"] == true;
    job_sets
        .until("grows", "it is suspended", is_suspended)
        .await?;
    // It cannot be rendered: it stays unchanged, and an Event has the reason.
    write(shared, Method::PATCH, &job, patch(false)).await?;
    namespace
        .event("grows", "spec.podTemplateOverrides: nested")
        .await?;
    let job_set = job_sets.get("grows").await?.accepted()?;
    ensure!(is_suspended(&job_set), "{job_set:#}");
    // Once it is corrected, it continues.
    let right = r#"{"spec": {"podTemplateOverrides": null}}"#;
    write(shared, Method::PATCH, &job, right.to_owned()).await?;
    namespace.until_active("grows", 1).await?;
    Ok(())
}

async fn undecodable_status_is_reported_and_counted(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    let spec = json!({"suspend": true, "runtimeRef": {"name": "torch"}});
    let unreadable = async || {
        let name = "trainyard_objects_unreadable";
        let labels = r#"{kind="TrainJob"}"#;
        shared.controller.metric(name, labels).await
    };
    namespace.create("late", &spec).await?;
    let is_suspended = |job: &Value| is(job, "Suspended", "True");
    let mut job = namespace
        .until("late", "it is suspended", is_suspended)
        .await?;
    let written = job["status"]["conditions"][0]["lastTransitionTime"].clone();
    job["status"]["conditions"][0]["lastTransitionTime"] = json!(LATE);
    let jobs = namespace.api(&namespace.jobs);
    let late = jobs.replace_status(&job, &Write::strict()).await?;
    let mut late = late.accepted()?;
    let why = "status.conditions[0].lastTransitionTime: the value cannot be decoded";
    namespace.event("late", why).await?;
    ensure!(unreadable().await? > 0.5);
    late["status"]["conditions"][0]["lastTransitionTime"] = written;
    jobs.replace_status(&late, &Write::strict())
        .await?
        .accepted()?;
    eventually("it is decoded again", async || {
        Ok((unreadable().await? < 0.5).then_some(()))
    })
    .await?;
    // It is also watched again.
    namespace.patch("late", &json!({"suspend": false})).await?;
    namespace.until_complete("late").await.map(drop)
}

pub(crate) fn tests() -> Vec<Test<Shared>> {
    tests![
        other_train_jobs_run_and_the_controller_starts,
        undecodable_train_job_can_be_suspended,
        undecodable_status_is_reported_and_counted,
    ]
}
