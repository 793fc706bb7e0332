//! How fast TrainJobs become JobSets: the controller beside a bare client that makes the same writes, on the same API server.
//!
//! `cargo run --release -p trainyard-cluster --example load -- target/release/trainyard 2000`. Only etcd and kube-apiserver run.
//! The TrainJobs are made while the controller is off; what counts is the time from the first JobSet to the last one.

use std::io::BufRead as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};
use trainyard_cluster::{ControlPlane, Install, Port, install};
use trainyard_schema::documents::Kind;

/// Calls of the bare client at once, and TrainJobs that the controller reconciles at once.
const AT_ONCE: usize = 16;
/// Clock ticks of a second in /proc.
const TICKS: f64 = 100.0;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let program = arguments
        .next()
        .context("give the program: target/release/trainyard")?;
    let count: usize = arguments.next().map_or(Ok(2000), |text| text.parse())?;
    let plane = ControlPlane::start()?;
    plane.block_on(load(&plane, Path::new(&program), count))
}

async fn load(plane: &ControlPlane, program: &Path, count: usize) -> Result<()> {
    for kind in Kind::ALL {
        install(plane, &kind.crd()?, Install::ServerSide).await?;
    }
    install(plane, &job_set_definition(), Install::ServerSide).await?;
    let client = plane.client().clone();
    let namespace = plane.new_namespace().await?;
    let job_sets = api(&client, &namespace, "jobset.x-k8s.io", "v1alpha2", "JobSet");
    let idle = Controller::start(plane, program)?;
    println!("RSS of the idle controller: {:.1} MiB", idle.rss()?);
    drop(idle);
    create_jobs(&client, &namespace, count).await?;
    println!("{count} TrainJobs are there");

    let controller = Controller::start(plane, program)?;
    let started = Instant::now();
    let made = until(&job_sets, count).await?;
    let whole = started.elapsed();
    let cpu = controller.cpu()?;
    println!(
        "controller: {count} JobSets in {:.2} s from its start, {:.0} a second from the first one to the last",
        whole.as_secs_f64(),
        count as f64 / made.as_secs_f64()
    );
    println!(
        "controller: {:.2} ms of CPU for each, its start included; RSS {:.1} MiB",
        cpu * 1000.0 / count as f64,
        controller.rss()?
    );
    for line in controller
        .metrics()
        .await?
        .lines()
        .filter(|line| line.starts_with("trainyard_api_calls_total"))
    {
        println!("  {line}");
    }
    drop(controller);

    let snapshot: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let (map, job_set) = (
        snapshot.get("job-0-runtime-snapshot").await?,
        job_sets.get("job-0").await?,
    );
    let bare = bare(plane, &client, &map, &job_set, count).await?;
    println!(
        "bare client, the same writes: {:.0} a second",
        count as f64 / bare.as_secs_f64()
    );
    println!(
        "ratio: {:.0} %",
        100.0 * bare.as_secs_f64() / made.as_secs_f64()
    );
    Ok(())
}

/// Waits until there are so many; returns the time from the first to the last.
async fn until(api: &Api<DynamicObject>, count: usize) -> Result<Duration> {
    let (mut first, started) = (None, Instant::now());
    loop {
        // Metadata alone, and at most one of it: the server counts the rest.
        let list = api.list_metadata(&ListParams::default().limit(1)).await?;
        let rest = list.metadata.remaining_item_count.unwrap_or(0);
        let found = list.items.len() + usize::try_from(rest)?;
        if found > 0 {
            let first = *first.get_or_insert_with(Instant::now);
            if found >= count {
                return Ok(first.elapsed());
            }
        }
        ensure!(
            started.elapsed() < Duration::from_secs(600),
            "only {found} of {count} JobSets"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn create_jobs(client: &Client, namespace: &str, count: usize) -> Result<()> {
    let runtimes: Api<DynamicObject> = Api::all_with(
        client.clone(),
        &resource("trainer.kubeflow.org", "v1alpha1", "ClusterTrainingRuntime"),
    );
    runtimes
        .create(&PostParams::default(), &serde_json::from_value(runtime())?)
        .await?;
    let jobs = api(
        client,
        namespace,
        "trainer.kubeflow.org",
        "v1alpha1",
        "TrainJob",
    );
    let create = |number: usize| {
        let jobs = jobs.clone();
        async move {
            let job = json!({
                "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": format!("job-{number}")},
                "spec": {"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": 4, "image": "example.com/mine", "env": [{"name": "LEARNING_RATE", "value": "1e-4"}]}},
            });
            jobs.create(&PostParams::default(), &serde_json::from_value(job)?)
                .await?;
            anyhow::Ok(())
        }
    };
    stream::iter(0..count)
        .map(create)
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

/// The same two writes for as many other names, in a namespace of their own.
async fn bare(
    plane: &ControlPlane,
    client: &Client,
    map: &ConfigMap,
    job_set: &DynamicObject,
    count: usize,
) -> Result<Duration> {
    let namespace = plane.new_namespace().await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let job_sets = api(client, &namespace, "jobset.x-k8s.io", "v1alpha2", "JobSet");
    let owners = json!(job_set.metadata.owner_references);
    let spec = job_set.data.get("spec").context("a JobSet without spec")?;
    let write = |number: usize| {
        let name = format!("bare-{number}");
        let mut map = map.clone();
        map.metadata = kube::api::ObjectMeta {
            name: Some(format!("{name}-runtime-snapshot")),
            owner_references: map.metadata.owner_references,
            ..kube::api::ObjectMeta::default()
        };
        let job_set = json!({
            "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
            "metadata": {"name": name, "ownerReferences": owners}, "spec": spec,
        });
        let (maps, job_sets) = (maps.clone(), job_sets.clone());
        async move {
            maps.create(&PostParams::default(), &map).await?;
            job_sets
                .patch(
                    &name,
                    &PatchParams::apply("trainer"),
                    &Patch::Apply(&job_set),
                )
                .await?;
            anyhow::Ok(())
        }
    };
    let started = Instant::now();
    stream::iter(0..count)
        .map(write)
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    Ok(started.elapsed())
}

/// The controller, started as a process of this one so that its costs can be read.
struct Controller {
    child: Child,
    metrics: Port,
}

impl Controller {
    fn start(plane: &ControlPlane, program: &Path) -> Result<Self> {
        let metrics = Port::find()?;
        let mut child = Command::new(program)
            .args([
                "controller",
                "--health-probe-bind-address=0",
                "--log-format=text",
                "--concurrency=16",
                "--kubeconfig",
            ])
            .arg(plane.kubeconfig())
            .arg(format!(
                "--metrics-bind-address=127.0.0.1:{}",
                metrics.number()
            ))
            .stderr(Stdio::piped())
            .spawn()?;
        let log = child.stderr.take().context("no log")?;
        let mut lines = std::io::BufReader::new(log).lines();
        let is_there = |line: &std::io::Result<String>| {
            line.as_ref()
                .is_ok_and(|line| line.contains("all watches are there"))
        };
        ensure!(
            lines.by_ref().any(|line| is_there(&line)),
            "the controller ended"
        );
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Self { child, metrics })
    }

    /// Seconds of CPU so far.
    fn cpu(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields = stat.rsplit(") ").next().context("no fields")?.split(' ');
        let ticks = fields
            .skip(11)
            .take(2)
            .map(str::parse::<f64>)
            .sum::<Result<f64, _>>()?;
        Ok(ticks / TICKS)
    }

    /// MiB of memory that it holds now.
    fn rss(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .context("no RSS")?;
        let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kib / 1024.0)
    }

    async fn metrics(&self) -> Result<String> {
        trainyard_cluster::http_get(self.metrics.number(), "/metrics").await
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn resource(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

fn api(
    client: &Client,
    namespace: &str,
    group: &str,
    version: &str,
    kind: &str,
) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &resource(group, version, kind))
}

fn runtime() -> Value {
    json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime", "metadata": {"name": "torch"},
        "spec": {"mlPolicy": {"numNodes": 1, "torch": {}}, "template": {"spec": {"replicatedJobs": [{
            "name": "node",
            "template": {
                "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                "spec": {"template": {"spec": {"containers": [{
                    "name": "node", "image": "example.com/torch", "command": ["torchrun", "train.py"],
                    "resources": {"limits": {"nvidia.com/gpu": 8}},
                }]}}},
            },
        }]}}},
    })
}

/// JobSet's kind with any content: its controller does not run here, and its own schema would be the server's cost.
fn job_set_definition() -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {
            "name": "jobsets.jobset.x-k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for measuring"},
        },
        "spec": {
            "group": "jobset.x-k8s.io", "scope": "Namespaced",
            "names": {"kind": "JobSet", "listKind": "JobSetList", "plural": "jobsets", "singular": "jobset"},
            "versions": [{
                "name": "v1alpha2", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}},
            }],
        },
    })
}
