//! Released Python clients work with the controller unmodified: the Kubeflow SDK, and NeMo Run, whose volumes, mounts, tolerations, labels
//! and annotations reach the pods.

mod nemo_run;

use std::{path::PathBuf, process::Command};

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use serde_json::{Value, json};
use trainyard_api::Inputs;
use trainyard_cluster::{
    Api, Cluster, ControlPlane, Fate, Outcome, PythonClient, Resource, Shared, Test, Trainyard,
    Write, client_of, eventually,
};
use trainyard_plugin_folders::{root, runtimes};
use trainyard_schema::documents::Kind;

use crate::common::{kind, prepare};

/// A cluster with all objects of deploy/, and its users' clients.
pub(crate) struct Used {
    cluster: Cluster,
    controller: Trainyard,
    /// The image of the runtime torch-distributed.
    image: Value,
    kubeflow: PythonClient,
    nemo_run: PythonClient,
}

impl Shared for Used {
    fn start() -> Result<Self> {
        let (kubeflow, nemo_run) = (PythonClient::kubeflow()?, PythonClient::nemo_run()?);
        let cluster = Cluster::start()?;
        let plane = cluster.plane();
        let mut shipped = shipped()?;
        let torch = |runtime: &&Value| runtime["metadata"]["name"] == "torch-distributed";
        let mut runtime = shipped
            .iter()
            .find(torch)
            .context("no torch-distributed")?
            .clone();
        shipped.push(without_retries(&runtime));
        let account = prepare(&cluster, &shipped)?;
        let controller = plane.block_on(Trainyard::start(plane, &account, ["--leader-elect"]))?;
        Ok(Self {
            cluster,
            controller,
            image: job_of(&mut runtime)["template"]["spec"]["containers"][0]["image"].clone(),
            kubeflow,
            nemo_run,
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

/// Returns the shipped runtimes.
fn shipped() -> Result<Vec<Value>> {
    let files: Vec<_> = runtimes(&root())?.into_values().collect();
    let inputs = Inputs::read(&files, std::io::empty()).into_result()?;
    Ok(inputs
        .objects
        .into_iter()
        .map(|object| object.value)
        .collect())
}

/// The runtime torch-distributed with another name, whose TrainJobs fail with the first failed pod.
fn without_retries(runtime: &Value) -> Value {
    let mut runtime = runtime.clone();
    runtime["metadata"]["name"] = json!("torch-once");
    runtime["spec"]["template"]["spec"]["failurePolicy"]["maxRestarts"] = json!(0);
    runtime
}

/// Returns the replicated job of a runtime that trains.
fn job_of(runtime: &mut Value) -> &mut Value {
    &mut runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]
}

async fn create(api: &Api<'_>, object: &Value) -> Result<()> {
    api.create(object, &Write::strict()).await?.accepted()?;
    Ok(())
}

/// A namespace, and a user with the user role of deploy/ in it.
struct UserNamespace<'a> {
    shared: &'a Used,
    namespace: String,
    user: PathBuf,
    pods: Resource,
}

impl<'a> UserNamespace<'a> {
    async fn new(shared: &'a Used) -> Result<Self> {
        let namespace = shared.cluster.new_namespace().await?;
        let plane = shared.plane();
        let binding = json!({
            "metadata": {"name": "users"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kubeflow-trainer-edit",
            },
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
        });
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        let bindings = Resource::namespaced(rbac, "rolebindings");
        create(&plane.api(&bindings, &namespace), &binding).await?;
        let user = plane.kubeconfig_for_service_account(&namespace, "default");
        let user = user.await?;
        let pods: kube::Api<Pod> = kube::Api::namespaced(client_of(&user).await?, &namespace);
        eventually("the role holds", async || {
            Ok(pods.list(&ListParams::default()).await.ok())
        })
        .await?;
        Ok(Self {
            shared,
            namespace,
            user,
            pods: Resource::pods(),
        })
    }

    fn fate(&self, fate: Fate) {
        let kubelet = self.shared.cluster.kubelet();
        kubelet.decide(&self.namespace, move |_| fate);
    }

    fn api<'b>(&'b self, resource: &'b Resource) -> Api<'b> {
        self.shared.cluster.api(resource, &self.namespace)
    }

    async fn pods(&self) -> Result<Vec<Value>> {
        self.api(&self.pods).items().await
    }

    /// Makes a call of the Kubeflow SDK, which must not warn.
    async fn kubeflow(&self, arguments: &[&str]) -> Result<Value> {
        let arguments = [&[self.namespace.as_str()], arguments].concat();
        quiet(self.call(&self.shared.kubeflow, &arguments).await?)
    }

    /// Makes a call of NeMo Run's executor, which must not warn.
    async fn nemo_run(&self, arguments: &[&str]) -> Result<Value> {
        quiet(self.nemo_run_aloud(arguments).await?)
    }

    /// Makes a call of NeMo Run's executor.
    async fn nemo_run_aloud(&self, arguments: &[&str]) -> Result<Outcome> {
        let mut options = nemo_run::options();
        options["namespace"] = json!(self.namespace);
        let options = options.to_string();
        let arguments = [&[options.as_str()], arguments].concat();
        self.call(&self.shared.nemo_run, &arguments).await
    }

    async fn call(&self, client: &PythonClient, arguments: &[&str]) -> Result<Outcome> {
        let logs = self.shared.plane().folder();
        let arguments = arguments.iter().copied();
        client.call(&self.user, logs, arguments).await
    }

    /// Writes the Event of a kubelet about a started pod, which the fake kubelet does not write.
    async fn record_start(&self, pod: &Value) -> Result<()> {
        let metadata = &pod["metadata"];
        let event = json!({
            "metadata": {"generateName": "started-"},
            "involvedObject": {
                "apiVersion": "v1", "kind": "Pod",
                "namespace": self.namespace, "name": metadata["name"], "uid": metadata["uid"],
            },
            "type": "Normal", "reason": "Started", "message": "Container started",
            "firstTimestamp": metadata["creationTimestamp"],
            "lastTimestamp": metadata["creationTimestamp"],
            "count": 1,
        });
        let events = Resource::namespaced("/api/v1", "events");
        create(&self.api(&events), &event).await
    }

    /// Waits until no object of the controller is left.
    async fn until_empty(&self) -> Result<()> {
        let (jobs, job_sets) = (kind(Kind::TrainJob)?, Resource::jobsets());
        for resource in [&jobs, &job_sets, &self.pods] {
            let api = self.api(resource);
            api.until_all("all is gone", <[Value]>::is_empty).await?;
        }
        Ok(())
    }
}

fn quiet(outcome: Outcome) -> Result<Value> {
    ensure!(outcome.warnings.is_empty(), "{outcome:?}");
    Ok(outcome.result)
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().with_context(|| format!("no text: {value}"))
}

/// Returns whether the first value contains the second one.
fn holds(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(key, part)| whole.get(key).is_some_and(|whole| holds(whole, part))),
        (Value::Array(whole), Value::Array(part)) => part
            .iter()
            .all(|part| whole.iter().any(|whole| holds(whole, part))),
        _ => whole == part,
    }
}

/// Returns the rows that `trainyard runtimes` prints, as the client prints them.
fn printed_runtimes() -> Result<Vec<Value>> {
    let output = Command::new(Trainyard::program()?)
        .arg("runtimes")
        .output()?;
    let printed = String::from_utf8(output.stdout)?;
    let row = |line: &str| {
        let cells: Vec<_> = line.split_whitespace().collect();
        let [name, framework, nodes, image] = cells[..] else {
            bail!("{line}");
        };
        let nodes: u32 = nodes.parse()?;
        Ok(json!({"name": name, "framework": framework, "image": image, "nodes": nodes}))
    };
    printed.lines().skip(1).map(row).collect()
}

async fn kubeflow_sdk_lists_the_shipped_runtimes(shared: &Used) -> Result<()> {
    let user_namespace = UserNamespace::new(shared).await?;
    let listed = user_namespace.kubeflow(&["runtimes"]).await?;
    let mut listed = listed.as_array().context("no list")?.clone();
    listed.retain(|runtime| runtime["name"] != "torch-once");
    listed.sort_by_key(|runtime| runtime["name"].to_string());
    let mut printed = printed_runtimes()?;
    printed.sort_by_key(|runtime| runtime["name"].to_string());
    ensure!(printed.len() > 8 && listed == printed, "{listed:#?}");
    Ok(())
}

async fn kubeflow_sdk_trains_on_two_nodes(shared: &Used) -> Result<()> {
    let user_namespace = UserNamespace::new(shared).await?;
    user_namespace.fate(Fate::Hold);
    let name = user_namespace
        .kubeflow(&["train", "torch-distributed", "2"])
        .await?;
    let name = text(&name)?;
    let running = user_namespace.kubeflow(&["wait", name, "Running"]).await?;
    let step = |node: usize| json!({"name": format!("node-{node}"), "status": "Running", "device": "gpu", "devices": "4"});
    let expected = json!({
        "name": name, "status": "Running", "nodes": 2, "runtime": "torch-distributed",
        "steps": [step(0), step(1)],
    });
    ensure!(holds(&running, &expected), "{running:#}");
    let pods = user_namespace.pods().await?;
    ensure!(pods.len() == 2, "{pods:#?}");
    for pod in &pods {
        let container = &pod["spec"]["containers"][0];
        let expected = json!({
            "name": "node", "image": shared.image,
            "env": [
                {"name": "GREETING", "value": "hello"},
                {"name": "PET_NNODES", "value": "2"},
                {"name": "PET_NPROC_PER_NODE", "value": "auto"},
                {"name": "PET_MASTER_ADDR", "value": format!("{name}-node-0-0.{name}")},
            ],
            "resources": {"requests": {"cpu": "2", "nvidia.com/gpu": "4"}},
        });
        ensure!(holds(container, &expected), "{container:#}");
        let command = container["command"].to_string();
        ensure!(command.contains("train_model(**{'steps': 3})"), "{command}");
    }

    user_namespace.fate(Fate::Succeed);
    let complete = user_namespace.kubeflow(&["wait", name, "Complete"]).await?;
    ensure!(complete["status"] == "Complete", "{complete:#}");
    for pod in &pods {
        user_namespace.record_start(pod).await?;
    }
    let events = user_namespace.kubeflow(&["events", name]).await?;
    let started = |pod: &Value| {
        let name = &pod["metadata"]["name"];
        let event = json!({"kind": "Pod", "name": name, "reason": "Started"});
        holds(&events, &json!([event]))
    };
    ensure!(pods.iter().all(started), "{events:#}");
    let jobs = user_namespace.kubeflow(&["list_jobs"]).await?;
    let listed = json!([{"name": name, "status": "Complete"}]);
    ensure!(holds(&jobs, &listed), "{jobs:#}");
    user_namespace.kubeflow(&["delete", name]).await?;
    user_namespace.until_empty().await?;
    let jobs = user_namespace.kubeflow(&["list_jobs"]).await?;
    ensure!(jobs == json!([]), "{jobs:#}");
    Ok(())
}

async fn kubeflow_sdk_shows_why_a_job_cannot_start(shared: &Used) -> Result<()> {
    let user_namespace = UserNamespace::new(shared).await?;
    // The runtime has no initializer for it.
    let arguments = ["train_on_dataset", "torch-distributed", "hf://owner/data"];
    let name = user_namespace.kubeflow(&arguments).await?;
    let name = text(&name)?;
    let events = Resource::namespaced("/api/v1", "events");
    let there = |events: &[Value]| events.iter().any(|e| e["involvedObject"]["name"] == name);
    let events = user_namespace.api(&events);
    events.until_all("an Event of it", there).await?;
    let events = user_namespace.kubeflow(&["events", name]).await?;
    let event = &events[0];
    let message = text(&event["message"])?;
    ensure!(
        event["kind"] == "TrainJob" && message.contains("spec.initializer.dataset"),
        "{events:#}"
    );
    let job = user_namespace.kubeflow(&["get", name]).await?;
    ensure!(job["status"] == "Created", "{job:#}");
    user_namespace.kubeflow(&["delete", name]).await?;
    user_namespace.until_empty().await
}

async fn both_clients_see_a_failed_job(shared: &Used) -> Result<()> {
    let user_namespace = UserNamespace::new(shared).await?;
    user_namespace.fate(Fate::Fail(1));
    let name = user_namespace
        .kubeflow(&["train", "torch-once", "2"])
        .await?;
    let name = text(&name)?;
    let failed = user_namespace.kubeflow(&["wait", name, "Failed"]).await?;
    ensure!(failed["status"] == "Failed", "{failed:#}");
    let status = user_namespace.nemo_run(&["status", name]).await?;
    ensure!(status == "Failed", "{status}");
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Used>> {
    vec![
        Test::new(
            "kubeflow_sdk_lists_the_shipped_runtimes",
            kubeflow_sdk_lists_the_shipped_runtimes,
        ),
        Test::new(
            "kubeflow_sdk_trains_on_two_nodes",
            kubeflow_sdk_trains_on_two_nodes,
        ),
        Test::new(
            "kubeflow_sdk_shows_why_a_job_cannot_start",
            kubeflow_sdk_shows_why_a_job_cannot_start,
        ),
        Test::new(
            "nemo_run_launches_follows_and_cancels",
            nemo_run::launches_follows_and_cancels,
        ),
        Test::new(
            "nemo_run_replaces_an_existing_job",
            nemo_run::replaces_an_existing_job,
        ),
        Test::new(
            "both_clients_see_a_failed_job",
            both_clients_see_a_failed_job,
        ),
    ]
}
