//! A plugin that traps, loops, fills memory or runs into its deadline affects only the TrainJobs that use it: its failure is reported,
//! other TrainJobs complete, and probes are answered. Its TrainJobs can be suspended and deleted, even if the plugin is no longer loaded.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use trainyard_cluster::{
    Cluster, ControlPlane, Fate, Shared, Test, Trainyard, build_plugin, eventually,
};

use crate::{common, common::Namespace};

/// The limits of the plugin `endless`: far more fuel than it can use before its deadline.
const POLICY: &str = "
apiVersion: trainyard.dev/v1alpha1
kind: PolicyFile
plugins:
- {name: hostile, limits: {fuel: 10000000, memoryBytes: 4194304, wallClockMs: 60000}}
- {name: endless, after: [hostile], limits: {fuel: 1000000000000000, wallClockMs: 4000}}
";

/// A cluster with runtimes for good and bad TrainJobs, and one controller at a time.
pub(crate) struct Bad {
    cluster: Cluster,
    account: PathBuf,
    /// A folder with the plugin `hostile`, and the same under the name `endless`.
    plugins: PathBuf,
    /// A folder where `hostile` is broken.
    broken: PathBuf,
    policy: PathBuf,
    turn: Mutex<()>,
}

impl Shared for Bad {
    fn start() -> Result<Self> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bad-plugins");
        let (plugins, broken) = (folder.join("plugins"), folder.join("broken"));
        std::fs::create_dir_all(&plugins)?;
        std::fs::create_dir_all(&broken)?;
        let hostile = plugins.join("hostile.wasm");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/hostile");
        build_plugin(&source, &hostile, &[])?;
        std::fs::write(plugins.join("endless.wasm"), renamed(&hostile)?)?;
        std::fs::write(broken.join("hostile.wasm"), "no component")?;
        let policy = folder.join("policy.yaml");
        std::fs::write(&policy, POLICY)?;
        let cluster = Cluster::start()?;
        Ok(Self {
            account: common::prepare(&cluster, &runtimes_of_all())?,
            cluster,
            plugins,
            broken,
            policy,
            turn: Mutex::default(),
        })
    }

    fn plane(&self) -> &ControlPlane {
        self.cluster.plane()
    }

    fn still_runs(&self) -> Result<()> {
        self.cluster.still_runs()
    }
}

/// Writes the plugin under another name of the same length, so that the policy file can set other limits for it.
fn renamed(component: &Path) -> Result<Vec<u8>> {
    let mut bytes = std::fs::read(component)?;
    let (name, other) = (b"\"name\":\"hostile\"", b"\"name\":\"endless\"");
    let mut places = bytes.windows(name.len());
    let at = places.position(|window| window == name);
    let at = at.context("the component has no name")?;
    bytes[at..at + name.len()].copy_from_slice(other);
    Ok(bytes)
}

/// Returns a runtime for each behavior, named after it, and one without the plugin.
fn runtimes_of_all() -> Vec<Value> {
    let behaving = |name: &str, plugin: &str, does: &str| {
        let mut runtime = common::runtime();
        runtime["metadata"]["name"] = json!(name);
        runtime["spec"]["plugins"] = json!([{"name": plugin, "config": {"does": does}}]);
        runtime
    };
    vec![
        common::runtime(),
        behaving("trap", "hostile", "trap"),
        behaving("loop", "hostile", "loop"),
        behaving("fill", "hostile", "fill"),
        behaving("behave", "hostile", "behave"),
        behaving("burn", "endless", "loop"),
    ]
}

impl Bad {
    fn arguments(&self, plugins: Option<&Path>) -> Vec<OsString> {
        let mut arguments = vec!["--leader-elect=false".into()];
        if let Some(plugins) = plugins {
            arguments.extend(["--plugin-dir".into(), plugins.into()]);
            arguments.extend(["--policy".into(), self.policy.clone().into()]);
        }
        arguments
    }

    async fn controller(&self, plugins: Option<&Path>) -> Result<Trainyard> {
        Trainyard::start(self.plane(), &self.account, self.arguments(plugins)).await
    }
}

async fn create(namespace: &Namespace<'_>, name: &str, runtime: &str) -> Result<()> {
    let spec = json!({"runtimeRef": {"name": runtime}});
    namespace.create(name, &spec).await.map(drop)
}

/// Checks that the TrainJob has no JobSet and no conditions.
async fn is_untouched(namespace: &Namespace<'_>, name: &str) -> Result<()> {
    let job = namespace.api(&namespace.jobs).get(name).await?;
    let job = job.accepted()?;
    ensure!(job.pointer("/status/conditions").is_none(), "{job:#}");
    let job_set = namespace.api(&namespace.job_sets).get(name).await?;
    ensure!(job_set.status.as_u16() == 404, "{job_set:?}");
    Ok(())
}

/// Deletes the TrainJob, and waits until none of its objects exists.
async fn delete(namespace: &Namespace<'_>, name: &str) -> Result<()> {
    let jobs = namespace.api(&namespace.jobs);
    jobs.delete(name).await?.accepted()?;
    let is_of_it = |object: &Value| {
        let label = &object["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"];
        object["metadata"]["name"] == name || label == name
    };
    for resource in [&namespace.jobs, &namespace.job_sets, &namespace.pods] {
        let gone = |all: &[Value]| !all.iter().any(is_of_it);
        let api = namespace.api(resource);
        api.until_all("all of it is gone", gone).await?;
    }
    Ok(())
}

/// Deletes the TrainJobs that the controller of the next test would retry.
async fn clear(namespace: &Namespace<'_>) -> Result<()> {
    for job in namespace.api(&namespace.jobs).items().await? {
        let name = job["metadata"]["name"].as_str();
        delete(namespace, name.unwrap_or_default()).await?;
    }
    Ok(())
}

async fn each_kind_of_failure_is_reported_counted_and_contained(shared: &Bad) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller(Some(&shared.plugins)).await?;
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Succeed);
    let started = Instant::now();
    let harms = [
        ("trap", "hostile", "trap", "trapped: ", "on purpose"),
        (
            "loop",
            "hostile",
            "limit",
            "exceeded its limit of ",
            "`limits.fuel`",
        ),
        (
            "fill",
            "hostile",
            "limit",
            "exceeded its limit of ",
            "`limits.memoryBytes`",
        ),
        ("burn", "endless", "busy", "", "4000"),
    ];
    for (runtime, ..) in harms {
        create(&namespace, runtime, runtime).await?;
    }
    create(&namespace, "good", "torch").await?;
    for (name, plugin, kind, how, why) in harms {
        let event = namespace
            .event(name, &format!("plugin {plugin} 0.1.0"))
            .await?;
        let text = event["message"].as_str().unwrap_or_default();
        ensure!(text.contains(how) && text.contains(why), "{event:#}");
        ensure!(
            event["type"] == "Warning" && event["reason"] == "TrainJobResourcesCreationFailed",
            "{event:#}"
        );
        let labels = format!("plugin=\"{plugin}\",phase=\"transform\",kind=\"{kind}\"");
        let errors = controller.metric("trainyard_plugin_errors_total", &labels);
        ensure!(errors.await? >= 1.0, "{}", controller.metrics().await?);
        is_untouched(&namespace, name).await?;
    }
    namespace.until_complete("good").await?;
    // Each delay is at least as long as the minimum of the previous one: 1, 2, 4 s.
    let errors = async || {
        let metric = "trainyard_plugin_errors_total";
        controller.metric(metric, "kind=\"trap\"").await
    };
    let tried_again = async || Ok(Some(errors().await?).filter(|errors| *errors >= 3.0));
    eventually("it is tried again and again", tried_again).await?;
    let (count, took) = (errors().await?, started.elapsed().as_secs_f64());
    ensure!(count <= (took + 1.0).log2() + 1.0, "{count} in {took} s");
    clear(&namespace).await?;
    controller.kill().map(drop)
}

async fn successful_call_is_counted(shared: &Bad) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller(Some(&shared.plugins)).await?;
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Succeed);
    create(&namespace, "good", "behave").await?;
    namespace.until_complete("good").await?;
    let labels = "plugin=\"hostile\",phase=\"transform\"";
    let calls = "trainyard_plugin_call_duration_seconds_count";
    let calls = controller.metric(calls, labels).await?;
    ensure!(calls >= 1.0, "{}", controller.metrics().await?);
    let writes = controller.metric("trainyard_plugin_writes_total", labels);
    // Each output has one env var in one container.
    ensure!(writes.await? == calls, "{}", controller.metrics().await?);
    for metric in [
        "trainyard_plugin_fuel_total",
        "trainyard_plugin_call_duration_seconds_sum",
    ] {
        let used = controller.metric(metric, labels).await?;
        ensure!(used > 0.0, "{metric}: {used}");
    }
    let errors = controller.metric("trainyard_plugin_errors_total", "");
    ensure!(errors.await? == 0.0, "{}", controller.metrics().await?);
    controller.kill().map(drop)
}

async fn probes_are_answered_while_plugins_run_to_their_deadline(shared: &Bad) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller(Some(&shared.plugins)).await?;
    let namespace = Namespace::new(&shared.cluster).await?;
    // More TrainJobs than threads on which plugins run.
    let threads = std::thread::available_parallelism()?.get();
    for at in 0..=threads {
        create(&namespace, &format!("burn-{at}"), "burn").await?;
    }
    let burned = async || {
        controller
            .metric("trainyard_plugin_errors_total", "kind=\"busy\"")
            .await
    };
    let mut answers = 0;
    while burned().await? < 1.0 {
        for path in ["/healthz", "/readyz"] {
            let (code, text) = controller.probe(path).await?;
            ensure!(code == 200, "{path}: {code} {text}");
        }
        answers += 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // The first call has taken 4 s by now. If the probes had waited for it, only one would have been answered.
    ensure!(answers > 5, "answered {answers} times");
    clear(&namespace).await?;
    controller.kill().map(drop)
}

async fn train_job_of_a_bad_plugin_can_be_suspended_and_deleted(shared: &Bad) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller(Some(&shared.plugins)).await?;
    let namespace = Namespace::new(&shared.cluster).await?;
    for name in ["trap", "loop"] {
        create(&namespace, name, name).await?;
        namespace.event(name, "plugin hostile").await?;
    }
    namespace.suspend("trap").await?;
    delete(&namespace, "trap").await?;
    delete(&namespace, "loop").await?;
    controller.kill().map(drop)
}

async fn running_train_job_can_be_suspended_and_deleted_without_its_plugin(
    shared: &Bad,
) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller(Some(&shared.plugins)).await?;
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    let lives = [
        (None, ["gone-suspended", "gone-deleted"]),
        (
            Some(&*shared.broken),
            ["broken-suspended", "broken-deleted"],
        ),
    ];
    for name in lives.iter().flat_map(|(_, names)| names) {
        create(&namespace, name, "behave").await?;
        namespace.until_active(name, 1).await?;
    }
    controller.kill()?;
    for (plugins, [suspended, deleted]) in lives {
        let controller = shared.controller(plugins).await?;
        namespace.suspend(suspended).await?;
        let is_suspended = |job_set: &Value| job_set["spec"]["suspend"] == true;
        let job_sets = namespace.api(&namespace.job_sets);
        job_sets
            .until(suspended, "it is suspended", is_suspended)
            .await?;
        delete(&namespace, suspended).await?;
        delete(&namespace, deleted).await?;
        controller.kill()?;
    }
    Ok(())
}

async fn log_is_json_lines_with_call_spans(shared: &Bad) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let arguments = shared.arguments(Some(&shared.plugins));
    let plane = shared.plane();
    let controller = Trainyard::start_logging_by_default(plane, &shared.account, arguments)?;
    controller.until_ready().await?;
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Succeed);
    create(&namespace, "good", "behave").await?;
    create(&namespace, "trap", "trap").await?;
    namespace.event("trap", "plugin hostile").await?;
    namespace.until_complete("good").await?;
    clear(&namespace).await?;
    controller.stop().await?;
    let log = controller.process().log()?;
    let lines = log.lines().map(|line| {
        let read = serde_json::from_str::<Value>(line);
        read.with_context(|| format!("no JSON: {line}"))
    });
    let lines: Vec<Value> = lines.collect::<Result<_>>()?;
    let is_plain = |line: &Value| line["level"].is_string() && line["timestamp"].is_string();
    ensure!(lines.iter().all(is_plain), "{log}");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let call = |line: &&Value| {
        let span = &line["span"];
        span["name"] == "plugin call"
            && span["phase"] == "transform"
            && text(&span["plugin"]).starts_with("hostile 0.1.0")
    };
    let called = lines.iter().find(call).context(log.clone())?;
    ensure!(called["fields"]["kind"] == "trap", "{called:#}");
    let reconcile = called["spans"].as_array().and_then(|spans| spans.first());
    let reconcile = reconcile.context("it is in no reconcile")?;
    ensure!(reconcile["job"] == "trap", "{called:#}");
    let behaved = |line: &Value| text(&line["fields"]["message"]) == "it behaved";
    ensure!(lines.iter().any(behaved), "{log}");
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Bad>> {
    tests![
        each_kind_of_failure_is_reported_counted_and_contained,
        successful_call_is_counted,
        probes_are_answered_while_plugins_run_to_their_deadline,
        train_job_of_a_bad_plugin_can_be_suspended_and_deleted,
        running_train_job_can_be_suspended_and_deleted_without_its_plugin,
        log_is_json_lines_with_call_spans,
    ]
}
