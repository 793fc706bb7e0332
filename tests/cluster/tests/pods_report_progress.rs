//! The released Kubeflow SDK reports progress to the status server as a pod does: with the env vars, the token and the certificate authority
//! that the pod has. The API server checks tokens and values, and a pod reports for its own TrainJob only.
#![allow(clippy::indexing_slicing)]

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::{
    authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::api::PostParams;
use serde_json::{Value, json};
use trainyard_cluster::{
    Cluster, ControlPlane, Fate, Port, PythonClient, Shared, Test, Trainyard, Write, deploy,
    eventually,
};
use trainyard_schema::documents::Kind;

use crate::common::{self, Namespace, kind, roles};

const ON: &str = "--feature-gates=TrainJobStatus=true";

/// A cluster with a controller whose status server pods reach at this port.
pub(crate) struct Reporting {
    cluster: Cluster,
    controller: Trainyard,
    client: PythonClient,
    _port: Port,
}

impl Shared for Reporting {
    fn start() -> Result<Self> {
        let (client, port) = (PythonClient::kubeflow()?, Port::find()?);
        let cluster = Cluster::start()?;
        let plane = cluster.plane();
        let controller = plane.block_on(async {
            let runtimes = kind(Kind::ClusterTrainingRuntime)?;
            let runtimes = cluster.api(&runtimes, "");
            let created = runtimes.create(&common::runtime(), &Write::strict()).await;
            created?.accepted()?;
            let account = deploy(plane).await?;
            roles::grant(plane, &roles::printed(&[ON.into()])?).await?;
            let folder = plane.folder();
            let config = format!(
                "apiVersion: trainyard.dev/v1alpha1\nkind: ControllerConfiguration\nstatusServer: {{port: {}}}\n",
                port.number()
            );
            let policy = format!(
                "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nfacts: {{status/url: \"https://localhost:{}\"}}\n",
                port.number()
            );
            let (config_file, policy_file) = (folder.join("progress.yaml"), folder.join("progress-policy.yaml"));
            fs::write(&config_file, config)?;
            fs::write(&policy_file, policy)?;
            let certificates = plane.serving_certificate();
            let flags = [
                ON.to_owned(),
                format!("--config={}", config_file.display()),
                format!("--policy={}", policy_file.display()),
                format!("--webhook-cert-dir={}", certificates.display()),
                "--webhook-bind-address=0".to_owned(),
            ];
            Trainyard::start(plane, &account, flags).await
        })?;
        Ok(Self {
            cluster,
            controller,
            client,
            _port: port,
        })
    }

    fn plane(&self) -> &ControlPlane {
        self.cluster.plane()
    }

    fn still_runs(&self) -> Result<()> {
        self.cluster.still_runs()?;
        self.controller.process().still_runs()
    }
}

/// What a pod has for its reports.
struct Mounted {
    url: String,
    audience: String,
    authority: PathBuf,
    token: PathBuf,
}

/// Returns the value of an env var of the pod's container.
fn env<'p>(pod: &'p Value, name: &str) -> Result<&'p str> {
    let vars = pod["spec"]["containers"][0]["env"].as_array();
    let mut vars = vars.into_iter().flatten();
    let var = vars.find(|var| var["name"] == name);
    var.and_then(|var| var["value"].as_str())
        .with_context(|| format!("no {name}: {pod:#}"))
}

impl Reporting {
    /// Creates a TrainJob and waits until it has a pod. Returns the pod.
    async fn pod(&self, namespace: &Namespace<'_>, name: &str) -> Result<Value> {
        let spec = json!({"runtimeRef": {"name": "torch"}});
        namespace.create(name, &spec).await?;
        let is_its =
            |pod: &Value| pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] == name;
        let pods = namespace.api(&namespace.pods);
        let pods = pods
            .until_all("it has a pod", |pods| pods.iter().any(is_its))
            .await?;
        pods.into_iter().find(is_its).context("no pod")
    }

    /// Writes a token of the pod to a file, as a kubelet requests it.
    async fn write_token(&self, file: &Path, pod: &Value, audience: &str) -> Result<()> {
        let text = |field: &str| {
            pod["metadata"][field]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                audiences: Some(vec![audience.to_owned()]),
                expiration_seconds: Some(3600),
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".to_owned()),
                    kind: Some("Pod".to_owned()),
                    name: Some(text("name")),
                    uid: Some(text("uid")),
                }),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let client = self.plane().client().clone();
        let accounts: kube::Api<ServiceAccount> = kube::Api::namespaced(client, &text("namespace"));
        let account = pod["spec"]["serviceAccountName"]
            .as_str()
            .unwrap_or("default");
        let params = PostParams::default();
        let token = accounts.create_token_request(account, &params, &request);
        let token = token.await?.status.and_then(|status| status.token);
        Ok(fs::write(file, token.context("no token")?)?)
    }

    /// Writes the files that the pod's volume has.
    async fn mount(&self, namespace: &Namespace<'_>, pod: &Value) -> Result<Mounted> {
        let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
        let mut volumes = volumes.filter(|volume| volume["name"] == "kubeflow-trainer-token");
        let sources = &volumes.next().context("no volume")?["projected"]["sources"];
        let audience = sources[0]["serviceAccountToken"]["audience"].as_str();
        let audience = audience.context("no audience")?.to_owned();
        let config_map = sources[1]["configMap"]["name"]
            .as_str()
            .context("no ConfigMap")?;
        let config_map = namespace
            .api(&namespace.config_maps)
            .get(config_map)
            .await?
            .accepted()?;
        let authority = config_map["data"]["ca.crt"].as_str().context("no ca.crt")?;
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let folder = self.plane().folder();
        let mounted = Mounted {
            url: env(pod, "KUBEFLOW_TRAINER_SERVER_URL")?.to_owned(),
            audience,
            authority: folder.join(format!("{name}-ca.crt")),
            token: folder.join(format!("{name}-token")),
        };
        fs::write(&mounted.authority, authority)?;
        self.write_token(&mounted.token, pod, &mounted.audience)
            .await?;
        Ok(mounted)
    }

    /// Makes a call of the client with what a pod has mounted.
    async fn call(&self, call: &str, pod: &Mounted, url: &str, more: &[&str]) -> Result<Value> {
        let file = |path: &'_ Path| path.display().to_string();
        let (authority, token) = (file(&pod.authority), file(&pod.token));
        let arguments = [&["default", call, url, &authority, &token], more].concat();
        let plane = self.plane();
        let outcome = self
            .client
            .call(plane.kubeconfig(), plane.folder(), arguments)
            .await?;
        Ok(outcome.result)
    }

    /// Posts a body, and checks the code of the answer. Returns its message.
    async fn refused(&self, pod: &Mounted, url: &str, body: &str, code: u16) -> Result<String> {
        let answer = self.call("post", pod, url, &[body]).await?;
        ensure!(answer["code"] == code, "{answer:#}");
        ensure!(answer["body"]["kind"] == "Status", "{answer:#}");
        Ok(answer["body"]["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned())
    }
}

/// Returns `status.trainerStatus` of a TrainJob.
async fn progress(namespace: &Namespace<'_>, name: &str) -> Result<Value> {
    let job = namespace.api(&namespace.jobs).get(name).await?.accepted()?;
    Ok(job["status"]["trainerStatus"].clone())
}

async fn released_sdk_reports_progress(shared: &Reporting) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    let pod = shared.pod(&namespace, "bert").await?;
    let mounted = shared.mount(&namespace, &pod).await?;
    for (name, path) in [
        (
            "KUBEFLOW_TRAINER_SERVER_CA_CERT",
            "/var/run/secrets/kubeflow/trainer/ca.crt",
        ),
        (
            "KUBEFLOW_TRAINER_SERVER_TOKEN",
            "/var/run/secrets/kubeflow/trainer/token",
        ),
    ] {
        ensure!(env(&pod, name)? == path, "{pod:#}");
    }
    let sent = shared
        .call("report", &mounted, &mounted.url, &["42", "120", "0.5"])
        .await?;
    ensure!(sent == true, "{sent}");
    let found = progress(&namespace, "bert").await?;
    ensure!(
        found["progressPercentage"] == 42
            && found["estimatedRemainingSeconds"] == 120
            && found["metrics"] == json!([{"name": "loss", "value": "0.5"}])
            && found["lastUpdatedTime"].is_string(),
        "{found:#}"
    );
    let job = namespace
        .api(&namespace.jobs)
        .get("bert")
        .await?
        .accepted()?;
    let fields = job["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten();
    let mut fields = fields.filter(|of| of["manager"] == "trainer-status");
    let managed = fields.next().context("no managed fields")?;
    ensure!(
        managed["operation"] == "Apply" && managed["subresource"] == "status",
        "{managed:#}"
    );

    // The second update replaces the first, and the API server says what it refuses.
    let body = r#"{"trainerStatus": {"progressPercentage": 50, "lastUpdatedTime": "2026-11-27T09:00:00.5+01:00"}}"#;
    let answer = shared.call("post", &mounted, &mounted.url, &[body]).await?;
    let expected = json!({"trainerStatus": {"progressPercentage": 50, "lastUpdatedTime": "2026-11-27T08:00:00Z"}});
    ensure!(
        answer == json!({"code": 200, "body": expected}),
        "{answer:#}"
    );
    ensure!(progress(&namespace, "bert").await? == expected["trainerStatus"]);
    for (body, why) in [
        (
            r#"{"trainerStatus": {"progressPercentage": 101, "lastUpdatedTime": "2026-11-27T09:00:00Z"}}"#,
            "progressPercentage",
        ),
        (
            r#"{"trainerStatus": {"progressPercentage": 1}}"#,
            "lastUpdatedTime is required",
        ),
        (
            r#"{"trainerStatus": {"metrics": [{"name": "", "value": "1"}], "lastUpdatedTime": "2026-11-27T09:00:00Z"}}"#,
            "metrics",
        ),
    ] {
        let message = shared.refused(&mounted, &mounted.url, body, 422).await?;
        ensure!(message.contains(why), "{message}");
    }
    ensure!(progress(&namespace, "bert").await? == expected["trainerStatus"]);

    // The last update and the end of the TrainJob.
    namespace.fate(Fate::Succeed);
    namespace.until_complete("bert").await?;
    ensure!(progress(&namespace, "bert").await? == expected["trainerStatus"]);
    Ok(())
}

async fn pods_report_for_no_other_train_job(shared: &Reporting) -> Result<()> {
    const BODY: &str = r#"{"trainerStatus": {"progressPercentage": 99, "lastUpdatedTime": "2026-11-27T09:00:00Z"}}"#;
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    let (own, other) = (
        shared.pod(&namespace, "bert").await?,
        shared.pod(&namespace, "gpt").await?,
    );
    let (mut own_files, other_files) = (
        shared.mount(&namespace, &own).await?,
        shared.mount(&namespace, &other).await?,
    );
    let message = shared
        .refused(&own_files, &other_files.url, BODY, 403)
        .await?;
    ensure!(
        message.contains("not one of a pod for this TrainJob"),
        "{message}"
    );
    // Its author can request a token for the other TrainJob, which the API server accepts.
    shared
        .write_token(&own_files.token, &own, &other_files.audience)
        .await?;
    let message = shared
        .refused(&own_files, &other_files.url, BODY, 403)
        .await?;
    ensure!(
        message.contains("does not belong to the TrainJob"),
        "{message}"
    );
    ensure!(progress(&namespace, "gpt").await?.is_null());

    // A pod of a deleted TrainJob, whose successor has its name.
    shared
        .write_token(&own_files.token, &own, &own_files.audience)
        .await?;
    let answer = shared
        .call("post", &own_files, &own_files.url, &[BODY])
        .await?;
    ensure!(answer["code"] == 200, "{answer:#}");
    namespace
        .api(&namespace.jobs)
        .delete("bert")
        .await?
        .accepted()?;
    eventually("its objects are gone", async || {
        let job_set = namespace.api(&namespace.job_sets).get("bert").await?;
        Ok((job_set.status.as_u16() == 404).then_some(()))
    })
    .await?;
    shared.pod(&namespace, "bert").await?;
    // The token is still remembered, but the UID of the TrainJob is another one.
    let answer = shared
        .call("post", &own_files, &own_files.url, &[BODY])
        .await?;
    ensure!(answer["code"] == 404 || answer["code"] == 403, "{answer:#}");
    ensure!(progress(&namespace, "bert").await?.is_null(), "{answer:#}");
    own_files.token = other_files.token.clone();
    let answer = shared
        .call("post", &own_files, &other_files.url, &[BODY])
        .await?;
    ensure!(answer["code"] == 200, "{answer:#}");
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Reporting>> {
    vec![
        Test::new(
            "released_sdk_reports_progress",
            released_sdk_reports_progress,
        ),
        Test::new(
            "pods_report_for_no_other_train_job",
            pods_report_for_no_other_train_job,
        ),
    ]
}
