//! A TrainJob whose runtime is missing, unsupported or of an old form says so in an Event or a condition, and starts once it can.

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{Fate, Resource, Test, Write};

use crate::common::{
    Namespace, Undisturbed, conditions, counts, described_conditions, is, runtime_with,
};

async fn runtime_of_another_kind_is_not_supported(shared: &Undisturbed) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    let reference = json!({"apiGroup": "example.com", "kind": "OtherRuntime", "name": "torch"});
    let spec = json!({"runtimeRef": reference});
    namespace.create("other", &spec).await?;
    let failed = |job: &Value| is(job, "Failed", "True");
    let job = namespace.until("other", "it failed", failed).await?;
    let found = described_conditions(&job);
    let [[kind, status, reason, message]] = found.as_slice() else {
        bail!("{job:#}");
    };
    ensure!(
        (&**kind, &**status, &**reason) == ("Failed", "True", "TrainingRuntimeNotSupported"),
        "{job:#}"
    );
    ensure!(message.contains("OtherRuntime.example.com"), "{message}");
    ensure!(counts(&job).is_empty(), "{job:#}");
    // Its objects would exist by the time another TrainJob is complete.
    namespace.fate(Fate::Succeed);
    let plain = json!({"runtimeRef": {"name": "torch"}});
    namespace.create("plain", &plain).await?;
    namespace.until_complete("plain").await?;
    for resource in [
        &namespace.job_sets,
        &namespace.config_maps,
        &Resource::jobs(),
    ] {
        let items = namespace.api(resource).items().await?;
        let is_of_it = |item: &Value| {
            let name = item["metadata"]["name"].as_str().unwrap_or_default();
            name.starts_with("other")
        };
        ensure!(!items.iter().any(is_of_it), "{items:#?}");
    }
    Ok(())
}

/// The runtime guide uses the API group of early proposals.
async fn runtime_with_the_documented_api_group_runs(shared: &Undisturbed) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Succeed);
    let reference = json!({"apiGroup": "kubeflow.org", "name": "torch"});
    namespace
        .create("guide", &json!({"runtimeRef": reference}))
        .await?;
    namespace.until_complete("guide").await.map(drop)
}

/// The controller checks what the schema of an old form cannot express; the CRD refuses objects that are too large.
async fn conversion_of_old_forms_is_bounded(shared: &Undisturbed) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    let spec = |targets: usize, pods: &Value| {
        let target = |at| json!({"name": format!("job-{at}")});
        let targets: Vec<_> = (0..targets).map(target).collect();
        let one = json!({"targetJobs": targets, "spec": pods});
        json!({"runtimeRef": {"name": "torch"}, "podTemplateOverrides": [one]})
    };
    let refused = namespace.create("targets", &spec(101, &json!({}))).await;
    let error = refused.err().map(|error| format!("{error:#}"));
    ensure!(
        error
            .as_ref()
            .is_some_and(|error| error.contains("Too many")),
        "{error:?}"
    );
    let host = json!({"hostNetwork": true});
    namespace.create("host", &spec(1, &host)).await?;
    let field = "unknown field \"spec.podTemplateOverrides[0].spec.hostNetwork\"";
    namespace.event("host", field).await?;
    let selector = json!({"nodeSelector": {"a": "x".repeat(20_000)}});
    namespace.create("copies", &spec(100, &selector)).await?;
    namespace.event("copies", "bytes of JSON").await?;
    let job_sets = namespace.api(&namespace.job_sets).items().await?;
    ensure!(job_sets.is_empty(), "{job_sets:#?}");
    Ok(())
}

async fn missing_runtime_is_reported_and_awaited(shared: &Undisturbed) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Succeed);
    let spec = json!({"runtimeRef": {"kind": "TrainingRuntime", "name": "late"}});
    namespace.create("early", &spec).await?;
    let event = namespace
        .event("early", "there is no TrainingRuntime `late`")
        .await?;
    ensure!(
        event["type"] == "Warning" && event["reason"] == "TrainJobResourcesCreationFailed",
        "{event:#}"
    );
    ensure!(event["firstTimestamp"].is_string(), "{event:#}");
    let job = namespace
        .api(&namespace.jobs)
        .get("early")
        .await?
        .accepted()?;
    ensure!(conditions(&job).is_empty(), "{job:#}");
    // It can still be suspended.
    namespace.patch("early", &json!({"suspend": true})).await?;
    namespace
        .until("early", "it is suspended", |job| {
            is(job, "Suspended", "True")
        })
        .await?;
    namespace.patch("early", &json!({"suspend": false})).await?;
    let late = runtime_with("late", &json!({"torch": {}}));
    namespace.create_runtime(late).await?;
    namespace.until_complete("early").await?;
    Ok(())
}

async fn warning_is_reported_and_the_train_job_continues(shared: &Undisturbed) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Succeed);
    let gone = json!({"replicatedJobs": [{"name": "gone", "template": {"spec": {"template": {"spec": {
        "nodeSelector": {"zone": "a"},
    }}}}}]});
    let patches = json!([{
        "manager": "kueue.x-k8s.io/manager",
        "trainingRuntimeSpec": {"template": {"spec": gone}},
    }]);
    let spec = json!({"runtimeRef": {"name": "torch"}, "runtimePatches": patches});
    namespace.create("warned", &spec).await?;
    let event = namespace.event("warned", "spec.runtimePatches[0]").await?;
    ensure!(event["reason"] == "TrainJobWarning", "{event:#}");
    namespace.until_complete("warned").await?;
    Ok(())
}

/// Waits until the TrainJob's annotation has this text, or until it is removed.
async fn error_is(namespace: &Namespace<'_>, name: &str, wanted: Option<&str>) -> Result<Value> {
    let is_shown = |job: &Value| {
        let error = job.pointer("/metadata/annotations/trainyard.dev~1reconcile-error");
        match (error.and_then(Value::as_str), wanted) {
            (Some(error), Some(wanted)) => error.contains(wanted),
            (error, _) => error.is_none() && wanted.is_none(),
        }
    };
    namespace.until(name, "its error is shown", is_shown).await
}

/// JobSet and the Job controller report these failures only in Events of their own objects.
async fn refused_jobs_and_pods_are_reported_until_they_are_created(
    shared: &Undisturbed,
) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Succeed);
    let quotas = Resource::namespaced("/api/v1", "resourcequotas");
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
        "spec": {"hard": {"count/jobs.batch": "0"}},
    });
    let quotas = namespace.api(&quotas);
    quotas.create(&quota, &Write::strict()).await?.accepted()?;
    let is_counted = |quota: &Value| quota.pointer("/status/hard").is_some();
    quotas.until("none", "it is enforced", is_counted).await?;
    let account = json!({"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": {
        "serviceAccountName": "trainer",
    }}}}}]});
    let patches = json!([{
        "manager": "example.com/team",
        "trainingRuntimeSpec": {"template": {"spec": account}},
    }]);
    let spec = json!({"runtimeRef": {"name": "torch"}, "runtimePatches": patches});
    namespace.create("refused", &spec).await?;
    error_is(
        &namespace,
        "refused",
        Some("NotCreated: JobSet `refused`: JobCreationFailed"),
    )
    .await?;
    let event = namespace
        .event("refused", "JobSet `refused`: JobCreationFailed: job")
        .await?;
    ensure!(
        event["reason"] == "TrainJobResourcesCreationFailed",
        "{event:#}"
    );

    quotas.delete("none").await?;
    let account = "error looking up service account";
    // Another text of the annotation is written after a minute at the earliest, but Events are not delayed.
    let reported = format!("Job `refused-node-0`: FailedCreate: {account}");
    namespace.event("refused", &reported).await?;
    let accounts = Resource::service_accounts();
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "trainer"}});
    let created = namespace
        .api(&accounts)
        .create(&account, &Write::strict())
        .await?;
    created.accepted()?;
    namespace.until_complete("refused").await?;
    error_is(&namespace, "refused", None).await?;
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Undisturbed>> {
    tests![
        refused_jobs_and_pods_are_reported_until_they_are_created,
        runtime_of_another_kind_is_not_supported,
        runtime_with_the_documented_api_group_runs,
        conversion_of_old_forms_is_bounded,
        missing_runtime_is_reported_and_awaited,
        warning_is_reported_and_the_train_job_continues,
    ]
}
