//! Programs of pods report progress with the released Kubeflow SDK, over TLS: the pods have namespaces of their own, and reach the status
//! server by the name of its Service, with the env vars, the token and the certificate authority of their containers. The API server checks
//! tokens and values, and a pod reports for its own TrainJob only.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use trainyard_cluster::{Image, Images, Isolation, PythonClient, Test, eventually};

use crate::common::{Namespace, Reporting, progress, runtime};

/// The script that reports.
const SCRIPT: &str = "pod_reports.py";
/// A folder of the test in every pod.
const SHARED: &str = "/run/shared";
/// A token of a pod, which a later pod uses.
const SAVED: &str = "/run/shared/token";
/// The token for another TrainJob, in the pods of the runtime `curious`.
const OTHER: &str = "/run/other/token";

/// A namespace whose pods report.
struct Reports<'a> {
    shared: &'a Reporting,
    namespace: Namespace<'a>,
    command: Vec<String>,
    _folder: TempDir,
}

impl<'a> Reports<'a> {
    async fn new(shared: &'a Reporting) -> Result<Reports<'a>> {
        let namespace = Namespace::new(&shared.cluster).await?;
        let folder = tempfile::tempdir()?;
        let (image, command) = PythonClient::kubeflow()?.in_pods(SCRIPT);
        let image: Image = image.file(folder.path(), SHARED);
        let kubelet = shared.cluster.kubelet();
        kubelet.run(&namespace.name, Images::new().otherwise(image));
        Ok(Self {
            shared,
            namespace,
            command,
            _folder: folder,
        })
    }

    /// Creates a TrainJob whose pod takes these steps, and waits until it is complete. Returns the outcome of each step.
    async fn run(&self, name: &str, runtime: &Value, steps: &[Value]) -> Result<Vec<Value>> {
        let args: Vec<_> = steps.iter().map(Value::to_string).collect();
        let trainer = json!({"command": self.command, "args": args});
        let spec = json!({"runtimeRef": runtime, "trainer": trainer});
        self.namespace.create(name, &spec).await?;
        let output = self.shared.output(&self.namespace, name).await?;
        let outcomes: Result<Vec<_>, _> = output.lines().map(serde_json::from_str).collect();
        let outcomes = outcomes.with_context(|| output.clone())?;
        ensure!(outcomes.len() == steps.len(), "{output}");
        Ok(outcomes)
    }
}

fn torch() -> Value {
    json!({"name": "torch"})
}

fn post(body: &str) -> Value {
    json!(["post", body])
}

/// Checks that an update was refused with this code and a `Status` whose message contains this text.
fn check_refused(answer: &Value, code: u16, message: &str) -> Result<()> {
    let body = &answer["body"];
    let says = body["message"].as_str().unwrap_or_default();
    ensure!(
        answer["code"] == code && body["kind"] == "Status" && says.contains(message),
        "{code} {message:?}: {answer:#}"
    );
    Ok(())
}

async fn released_sdk_reports_progress(shared: &Reporting) -> Result<()> {
    let reports = Reports::new(shared).await?;
    let step = json!(["report", 42, 120, {"loss": 0.5}]);
    let outcomes = reports.run("bert", &torch(), &[step]).await?;
    ensure!(outcomes == [true], "{outcomes:?}");
    let found = progress(&reports.namespace, "bert").await?;
    ensure!(
        found["progressPercentage"] == 42
            && found["estimatedRemainingSeconds"] == 120
            && found["metrics"] == json!([{"name": "loss", "value": "0.5"}])
            && found["lastUpdatedTime"].is_string(),
        "{found:#}"
    );
    let jobs = reports.namespace.api(&reports.namespace.jobs);
    let job = jobs.get("bert").await?.accepted()?;
    let fields = job["metadata"]["managedFields"].as_array();
    let mut fields = fields.into_iter().flatten();
    let managed = fields.find(|of| of["manager"] == "trainer-status");
    let managed = managed.context("no managed fields")?;
    ensure!(
        managed["operation"] == "Apply" && managed["subresource"] == "status",
        "{managed:#}"
    );
    Ok(())
}

async fn updates_replace_each_other_and_are_validated(shared: &Reporting) -> Result<()> {
    const TIME: &str = r#""lastUpdatedTime": "2026-11-27T09:00:00Z""#;
    let reports = Reports::new(shared).await?;
    let update = |fields: &str| post(&format!("{{\"trainerStatus\": {{{fields}}}}}"));
    let steps = [
        update(&format!(
            r#""metrics": [{{"name": "loss", "value": "1"}}], {TIME}"#
        )),
        update(r#""progressPercentage": 50, "lastUpdatedTime": "2026-11-27T09:00:00.5+01:00""#),
        update(&format!(r#""progressPercentage": 101, {TIME}"#)),
        update(r#""progressPercentage": 1"#),
        update(&format!(
            r#""metrics": [{{"name": "", "value": "1"}}], {TIME}"#
        )),
    ];
    let outcomes = reports.run("bert", &torch(), &steps).await?;
    ensure!(outcomes[0]["code"] == 200, "{outcomes:#?}");
    let expected = json!({"trainerStatus": {"progressPercentage": 50, "lastUpdatedTime": "2026-11-27T08:00:00Z"}});
    ensure!(
        outcomes[1] == json!({"code": 200, "body": expected}),
        "{outcomes:#?}"
    );
    check_refused(&outcomes[2], 422, "progressPercentage")?;
    check_refused(&outcomes[3], 422, "lastUpdatedTime is required")?;
    check_refused(&outcomes[4], 422, "metrics")?;
    let found = progress(&reports.namespace, "bert").await?;
    ensure!(found == expected["trainerStatus"], "{found:#}");
    Ok(())
}

/// Returns a runtime whose author requests a token for the TrainJob `gpt` of this namespace.
fn curious(namespace: &str) -> Value {
    let mut runtime = runtime();
    runtime["metadata"]["name"] = "curious".into();
    let audience =
        format!("trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/trainjobs/gpt/status");
    let token = json!({"path": "token", "audience": audience});
    let source = json!({"serviceAccountToken": token});
    let pods = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec";
    if let Some(pods) = runtime.pointer_mut(pods) {
        pods["volumes"] = json!([{"name": "other", "projected": {"sources": [source]}}]);
        let folder = Path::new(OTHER).parent();
        pods["containers"][0]["volumeMounts"] = json!([{"name": "other", "mountPath": folder}]);
    }
    runtime
}

async fn pods_report_for_no_other_train_job(shared: &Reporting) -> Result<()> {
    const BODY: &str = r#"{"trainerStatus": {"progressPercentage": 99, "lastUpdatedTime": "2026-11-27T09:00:00Z"}}"#;
    let reports = Reports::new(shared).await?;
    let namespace = &reports.namespace;
    reports.run("gpt", &torch(), &[]).await?;
    namespace.create_runtime(curious(&namespace.name)).await?;
    let runtime = json!({"name": "curious", "kind": "TrainingRuntime"});
    let steps = [
        json!(["post", BODY, "gpt"]),
        json!(["post", BODY, "gpt", OTHER]),
        json!(["post", BODY, null, OTHER]),
        post(BODY),
        json!(["save", SAVED]),
    ];
    let outcomes = reports.run("bert", &runtime, &steps).await?;
    check_refused(&outcomes[0], 403, "not that of a pod for this TrainJob")?;
    check_refused(&outcomes[1], 403, "does not belong to the TrainJob")?;
    check_refused(&outcomes[2], 403, "not that of a pod for this TrainJob")?;
    ensure!(outcomes[3]["code"] == 200, "{outcomes:#?}");
    ensure!(progress(namespace, "gpt").await?.is_null());
    ensure!(progress(namespace, "bert").await?["progressPercentage"] == 99);

    // A pod of a deleted TrainJob, whose successor has its name.
    let jobs = namespace.api(&namespace.jobs);
    jobs.delete("bert").await?.accepted()?;
    eventually("its objects are gone", async || {
        let job_set = namespace.api(&namespace.job_sets).get("bert").await?;
        Ok((job_set.status.as_u16() == 404).then_some(()))
    })
    .await?;
    let steps = [json!(["post", BODY, null, SAVED])];
    let outcomes = reports.run("bert", &torch(), &steps).await?;
    // The token is still remembered, but the UID of the TrainJob is another one.
    let code = &outcomes[0]["code"];
    ensure!(*code == 404 || *code == 403, "{outcomes:#?}");
    ensure!(progress(namespace, "bert").await?.is_null());
    Ok(())
}

/// Without namespaces, no volume can be mounted in a pod.
pub(crate) fn tests() -> Vec<Test<Reporting>> {
    if Isolation::detect() == Isolation::Loopback {
        return Vec::new();
    }
    tests![
        released_sdk_reports_progress,
        updates_replace_each_other_and_are_validated,
        pods_report_for_no_other_train_job,
    ]
}
