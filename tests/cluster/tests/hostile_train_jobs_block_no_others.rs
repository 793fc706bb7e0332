//! TrainJobs and runtimes that are expensive to read, convert, merge or render, and that an API server without our limits accepts, neither
//! delay other TrainJobs nor end the controller nor exceed the memory limit of deploy/, even after a restart, which reads all of them at once.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_api::yaml;
use trainyard_cluster::{
    ControlPlane, Install, Resource, Shared, Test, Trainyard, Write, define_kinds, deploy, install,
};
use trainyard_schema::documents::Kind;

use crate::common;

/// The memory for compiling a plugin, which runs in a separate process.
const COMPILING: u64 = 2 << 30;

/// A control plane on which JobSets are only stored, and whose definition of TrainJobs has no limits.
pub(crate) struct Unlimited {
    plane: ControlPlane,
    account: PathBuf,
}

impl Shared for Unlimited {
    fn start() -> Result<Self> {
        let plane = ControlPlane::start()?;
        let account = plane.block_on(async {
            define_kinds(&plane).await?;
            install(&plane, &without_limits()?, Install::ServerSide).await?;
            common::create_runtimes(&plane, &[common::runtime()]).await?;
            deploy(&plane).await
        })?;
        Ok(Self { plane, account })
    }

    fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    fn still_runs(&self) -> Result<()> {
        self.plane.still_runs()
    }
}

/// Returns a definition of TrainJobs with arbitrary content in `spec`, as in a cluster with CRDs of another origin.
fn without_limits() -> Result<Value> {
    let mut crd = Kind::TrainJob.crd()?;
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    Ok(crd)
}

/// Returns the most expensive TrainJobs from attacks on earlier versions, as names and specs.
fn costly() -> Vec<(&'static str, Value)> {
    let on = |spec: Value| {
        let mut all = json!({"runtimeRef": {"name": "torch"}});
        for (key, value) in spec.as_object().into_iter().flatten() {
            all[key] = value.clone();
        }
        all
    };
    let targets = |count: usize| -> Vec<Value> {
        (0..count)
            .map(|number| json!({"name": format!("t{number}")}))
            .collect()
    };
    let patch = |number: usize| {
        let keys: serde_json::Map<String, Value> = (0..5_000)
            .map(|key| (format!("k{number}-{key}"), json!("")))
            .collect();
        let pod = json!({"spec": {"nodeSelector": keys}});
        let job = json!({"name": "node", "template": {"spec": {"template": pod}}});
        json!({
            "manager": format!("example.com/{number}"),
            "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}},
        })
    };
    vec![
        (
            "cloned-annotation",
            on(json!({"podTemplateOverrides": [{
                "targetJobs": targets(30_000), "metadata": {"annotations": {"a": "x".repeat(700_000)}},
            }]})),
        ),
        (
            "targets",
            on(json!({"podTemplateOverrides": [{"targetJobs": targets(70_000)}]})),
        ),
        (
            "overrides",
            on(json!({"podTemplateOverrides": vec![
                json!({"targetJobs": [{"name": "node"}], "metadata": {"labels": {"a": "b"}}});
                18_000
            ]})),
        ),
        (
            "node-selectors",
            on(json!({"runtimePatches": (0..16).map(patch).collect::<Vec<_>>()})),
        ),
        (
            "env",
            on(json!({"trainer": {"env": (0..40_000)
                .map(|number| json!({"name": format!("E{number}"), "value": "1"}))
                .collect::<Vec<_>>()}})),
        ),
    ]
}

/// The number of large runtimes. Parsed, each takes 80 MB or more.
const RUNTIMES: usize = 14;

/// The numbers of empty arguments of the runtimes: as many as a runtime may have, and more.
const ARGUMENTS: [usize; 2] = [340_000, 450_000];

/// Creates large runtimes, with a suspended TrainJob each. Returns the names of the TrainJobs.
async fn create_runtimes(plane: &ControlPlane, namespace: &str) -> Result<Vec<String>> {
    let runtimes = common::kind(Kind::TrainingRuntime)?;
    let api = plane.api(&runtimes, namespace);
    let mut names = Vec::new();
    for (number, arguments) in (0..RUNTIMES).zip(ARGUMENTS.into_iter().cycle()) {
        let mut runtime = common::runtime();
        let name = format!("runtime-{number}");
        runtime["kind"] = json!("TrainingRuntime");
        runtime["metadata"]["name"] = json!(name);
        let jobs = &mut runtime["spec"]["template"]["spec"]["replicatedJobs"];
        let container = &mut jobs[0]["template"]["spec"]["template"]["spec"]["containers"][0];
        container["args"] = json!(vec![""; arguments]);
        api.create(&runtime, &Write::default()).await?.accepted()?;
        let spec =
            json!({"suspend": true, "runtimeRef": {"kind": "TrainingRuntime", "name": name}});
        create(plane, namespace, &name, &spec).await?;
        names.push(name);
    }
    Ok(names)
}

/// Creates a TrainJob, which the API server accepts.
async fn create(plane: &ControlPlane, namespace: &str, name: &str, spec: &Value) -> Result<()> {
    let jobs = common::kind(Kind::TrainJob)?;
    let job = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
        "metadata": {"name": name}, "spec": spec,
    });
    let api = plane.api(&jobs, namespace);
    api.create(&job, &Write::default()).await?.accepted()?;
    Ok(())
}

/// Waits until an ordinary TrainJob has its JobSet, while probes are answered.
async fn an_ordinary_one_gets_on(
    plane: &ControlPlane,
    controller: &Trainyard,
    namespace: &str,
    name: &str,
) -> Result<()> {
    let spec = json!({"runtimeRef": {"name": "torch"}});
    create(plane, namespace, name, &spec).await?;
    let job_sets = Resource::jobsets();
    plane
        .api(&job_sets, namespace)
        .until(name, "there is a JobSet", Value::is_object)
        .await?;
    let (code, text) = controller.probe("/healthz").await?;
    ensure!(code == 200, "{code}: {text}");
    Ok(())
}

/// Waits until each expensive TrainJob has a JobSet, or an Event with the reason why it has none.
async fn none_is_passed_over(
    plane: &ControlPlane,
    namespace: &str,
    names: &[String],
) -> Result<()> {
    let (events, job_sets) = (
        Resource::namespaced("/api/v1", "events"),
        Resource::jobsets(),
    );
    let made = plane.api(&job_sets, namespace);
    for name in names {
        // This TrainJob is within all limits. An API server can be too slow for its JobSet, which is reported after minutes.
        if name == "node-selectors" || made.get(name).await?.accepted().is_ok() {
            continue;
        }
        plane
            .api(&events, namespace)
            .until_all(&format!("an Event of {name}"), |all| {
                all.iter().any(|event| {
                    event["involvedObject"]["name"] == **name && event["type"] == "Warning"
                })
            })
            .await?;
    }
    Ok(())
}

/// Returns the memory limit of the deployment without the memory for compiling, in bytes.
fn allowed() -> Result<u64> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/deployment.yaml");
    let text = std::fs::read_to_string(path)?;
    let deployment = yaml::read(&text).into_iter().next();
    let deployment = deployment.context("no document")??.value;
    let limit = &deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"];
    let limit = limit["memory"]
        .as_str()
        .and_then(|it| it.strip_suffix("Gi"));
    let gibibytes: u64 = limit.context("no limit in Gi")?.parse()?;
    Ok((gibibytes << 30) - COMPILING)
}

async fn other_train_jobs_run_now_and_after_a_restart(shared: &Unlimited) -> Result<()> {
    let plane = &shared.plane;
    let (hostile, ordinary) = (plane.new_namespace().await?, plane.new_namespace().await?);
    let start = || Trainyard::start(plane, &shared.account, ["--leader-elect=false"]);
    let controller = start().await?;
    for (name, spec) in costly() {
        create(plane, &hostile, name, &spec).await?;
        let next = format!("beside-{name}");
        an_ordinary_one_gets_on(plane, &controller, &ordinary, &next).await?;
    }
    let mut names = create_runtimes(plane, &hostile).await?;
    an_ordinary_one_gets_on(plane, &controller, &ordinary, "beside-runtimes").await?;
    names.extend(costly().iter().map(|(name, _)| (*name).to_owned()));
    none_is_passed_over(plane, &hostile, &names).await?;
    let label = format!("kind=\"TrainingRuntime\",namespace=\"{hostile}\"");
    let held = controller.metric("trainyard_held_bytes", &label).await?;
    // Of the runtimes with more arguments, only the error is held.
    let expected = RUNTIMES / 2 * ARGUMENTS[0] * "\"\",".len();
    let expected = expected as f64..expected as f64 * 1.1;
    ensure!(
        expected.contains(&held),
        "{held} bytes are held, not {expected:?}"
    );
    let peak = controller.process().peak_memory()?;
    ensure!(peak < allowed()?, "it took {peak} bytes");
    controller.kill()?;

    let controller = start().await?;
    an_ordinary_one_gets_on(plane, &controller, &ordinary, "after-a-restart").await?;
    none_is_passed_over(plane, &hostile, &names).await?;
    let peak = controller.process().peak_memory()?;
    ensure!(peak < allowed()?, "after a restart it took {peak} bytes");
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Unlimited>> {
    tests![other_train_jobs_run_now_and_after_a_restart]
}
