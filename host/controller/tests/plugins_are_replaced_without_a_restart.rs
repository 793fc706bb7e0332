//! Plugins are replaced while the controller runs: TrainJobs that have not started follow, with no more calls than that needs, and all others
//! keep what they were made with.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};
use trainyard_controller::{
    generation::{Generation, Generations, Held, Rolling},
    metrics::Metrics,
};
use trainyard_model::{
    call::{Call, Fault},
    contract::{VERSION, handle},
    manifest::{ActiveWhen, Manifest},
    plugin::{CallFailure, Phase, Plugin},
    plugin_info::{Exemptions, PluginInfo, Settings},
    value::Failure,
};
use trainyard_render::{ClusterFacts, Declared, Renderer, SkippedPlugin};

use crate::stub::{
    cluster::{Act, Cluster, When},
    controller::{Controller, job, runtime},
    function_plugin::FunctionPlugin,
    train_job::messages,
    webhooks::Webhooks,
};

/// An annotation of the JobSet with the version of the plugin.
const STAMP: &str = "example.com/stamp";

/// A version of a plugin that stamps the JobSet and emits a ConfigMap with its version.
fn stamp(
    version: &str,
    run: impl Fn() -> Result<(), CallFailure> + Send + Sync + 'static,
) -> Arc<dyn Plugin> {
    fn emit(call: &mut Call, version: &str) -> Result<(), Fault> {
        let map = call.objects_emit(handle::Objects(0), "v1", "ConfigMap", "-stamp", None)?;
        call.object_append(map, "version", version)
    }
    let writes = json!([
        format!("annotations[{STAMP}]"),
        "objects[v1/ConfigMap/-stamp]"
    ]);
    let own = version.to_owned();
    let run = move |phase: Phase, call: &mut Call| {
        if phase == Phase::Build {
            return Ok(emit(call, &own)?);
        }
        run()?;
        let info = call.context_info(Call::CONTEXT)?;
        Ok(call.info_set_annotation(info, STAMP, &own)?)
    };
    native("stamp", version, &json!({"writes": writes}), run)
}

fn native(
    name: &str,
    version: &str,
    claims: &Value,
    run: impl Fn(Phase, &mut Call) -> Result<(), CallFailure> + Send + Sync + 'static,
) -> Arc<dyn Plugin> {
    let emits = claims.to_string().contains("objects[");
    let phases = match emits {
        true => json!(["transform", "build"]),
        false => json!(["transform"]),
    };
    let manifest = json!({
        "name": name, "version": version, "contract": VERSION, "activeWhen": "plugins", "phases": phases, "claims": claims,
    });
    let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
    let plugin = PluginInfo::new(manifest, "native", Settings::built_in()).unwrap();
    Arc::new(FunctionPlugin::new(Arc::new(plugin), run))
}

/// A plugin that no runtime uses.
fn unused() -> Arc<dyn Plugin> {
    native("unused", "1.0.0", &json!({}), |_, _| Ok(()))
}

fn plain(version: &str) -> Arc<dyn Plugin> {
    stamp(version, || Ok(()))
}

fn cluster() -> Cluster {
    let cluster = Cluster::new();
    cluster.put(runtime("stamped", &["stamp"]));
    cluster.put(runtime("plain", &[]));
    cluster
}

async fn start(cluster: &Cluster, plugins: Vec<Arc<dyn Plugin>>) -> Controller {
    start_measured(cluster, plugins).await.0
}

/// Also returns its metrics.
async fn start_measured(
    cluster: &Cluster,
    plugins: Vec<Arc<dyn Plugin>>,
) -> (Controller, Arc<Metrics>) {
    let metrics = |queue: &_| Arc::new(Metrics::new(queue));
    let mut kept = None;
    let plugins = |metrics: &_| {
        kept = Some(Arc::clone(metrics));
        plugins
    };
    let controller = Controller::start(cluster, metrics, plugins).await;
    (controller, kept.unwrap())
}

fn generation(
    generations: &Generations,
    number: u64,
    plugins: Vec<Arc<dyn Plugin>>,
) -> Arc<Generation> {
    let renderer = Renderer::new(plugins, ClusterFacts::default()).unwrap();
    generations.generation((number, &number.to_string()), renderer)
}

/// Returns a renderer with a version of the plugin.
fn renderer(version: &str) -> Renderer {
    Renderer::new(vec![plain(version)], ClusterFacts::default()).unwrap()
}

/// A plugin for all TrainJobs that could not be loaded.
fn skipped() -> SkippedPlugin {
    SkippedPlugin {
        declared: Some(Declared {
            name: "broken".to_owned(),
            active_when: ActiveWhen::Always,
            exemptions: Exemptions::default(),
        }),
        why: "broken.wasm: is empty".to_owned(),
        is_disabled: false,
    }
}

/// Replaces the running plugins.
fn replace(controller: &Controller, number: u64, plugins: Vec<Arc<dyn Plugin>>) {
    let generations = controller.generations();
    generations.replace(Held::only(generation(generations, number, plugins)));
}

fn stamp_of(cluster: &Cluster, namespace: &str, name: &str) -> Value {
    let job_set = cluster.get("jobsets", namespace, name).unwrap_or_default();
    job_set["metadata"]["annotations"][STAMP].clone()
}

/// Waits until a TrainJob's JobSet has the stamp of this version.
async fn until_stamped(cluster: &Cluster, namespace: &str, name: &str, version: &str) {
    let what = format!("{namespace}/{name} has the stamp {version}");
    let is_stamped = |cluster: &Cluster| stamp_of(cluster, namespace, name) == version;
    cluster.until(&what, is_stamped).await;
}

/// Waits until the status of a TrainJob shows whether it is suspended.
async fn until_shown(cluster: &Cluster, namespace: &str, name: &str, suspended: bool) {
    let is_shown = |cluster: &Cluster| {
        let job = cluster.get("trainjobs", namespace, name).unwrap();
        let made = cluster.get("jobsets", namespace, name).is_some();
        let status = &job["status"]["conditions"][0];
        made && (!suspended || status["type"] == "Suspended" && status["status"] == "True")
    };
    cluster.until("the TrainJob is reconciled", is_shown).await;
}

/// Waits until no TrainJob is being reconciled. Those that are due later are not waited for.
async fn until_idle(cluster: &Cluster, metrics: &Metrics) {
    let idle = "controller_runtime_active_workers{controller=\"trainjob_controller\"} 0";
    let is_idle = |_: &Cluster| metrics.text().unwrap().lines().any(|line| line == idle);
    cluster
        .until("no TrainJob is being reconciled", is_idle)
        .await;
}

/// Returns the calls since then, apart from watches and the Lease.
fn calls_since(
    cluster: &Cluster,
    before: &BTreeMap<(String, String), u64>,
) -> BTreeMap<(String, String), u64> {
    let mut calls = calls(cluster);
    for (call, count) in &mut calls {
        *count -= before.get(call).copied().unwrap_or_default();
    }
    calls.retain(|_, count| *count > 0);
    calls
}

fn calls(cluster: &Cluster) -> BTreeMap<(String, String), u64> {
    let traffic = cluster.all_traffic().into_iter();
    let traffic =
        traffic.filter(|((verb, _), _)| !["watch", "list", "event"].contains(&verb.as_str()));
    traffic
        .map(|(call, traffic)| (call, traffic.calls))
        .collect()
}

fn expected(calls: &[(&str, &str, u64)]) -> BTreeMap<(String, String), u64> {
    let calls = calls.iter();
    let calls = calls.map(|(verb, plural, count)| {
        let call = ((*verb).to_owned(), (*plural).to_owned());
        (call, *count)
    });
    calls.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queued_train_jobs_follow_and_running_ones_cause_no_call() {
    const QUEUED: u64 = 4;
    let cluster = cluster();
    let name = |kind: &str, number: u64| format!("{kind}-{number}");
    for number in 0..QUEUED {
        cluster.put(job("a", &name("queued", number), "stamped", true));
        cluster.put(job("a", &name("running", number), "stamped", false));
    }
    let controller = start(&cluster, vec![plain("1.0.0")]).await;
    for number in 0..QUEUED {
        until_shown(&cluster, "a", &name("queued", number), true).await;
        until_shown(&cluster, "a", &name("running", number), false).await;
    }
    let running = |cluster: &Cluster| {
        (0..QUEUED)
            .map(|number| cluster.get("jobsets", "a", &name("running", number)))
            .collect::<Vec<_>>()
    };
    let (before, as_made) = (calls(&cluster), running(&cluster));
    replace(&controller, 1, vec![plain("2.0.0")]);
    for number in 0..QUEUED {
        until_stamped(&cluster, "a", &name("queued", number), "2.0.0").await;
    }
    controller.stop().await;
    // Of each queued one: the snapshot, which pins the plugin, the ConfigMap that it emits, and the JobSet.
    let made = [
        ("get", "configmaps", 2 * QUEUED),
        ("get", "jobsets", QUEUED),
        ("patch", "configmaps", 2 * QUEUED),
        ("patch", "jobsets", QUEUED),
    ];
    assert_eq!(calls_since(&cluster, &before), expected(&made));
    assert_eq!(running(&cluster), as_made);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_train_job_that_is_rendered_the_same_is_only_read() {
    let cluster = cluster();
    for name in ["one", "two"] {
        cluster.put(job("a", name, "plain", true));
    }
    cluster.put(job("a", "stamped", "stamped", true));
    let (controller, metrics) = start_measured(&cluster, vec![plain("1.0.0")]).await;
    for name in ["one", "two", "stamped"] {
        until_shown(&cluster, "a", name, true).await;
    }
    until_idle(&cluster, &metrics).await;
    let before = calls(&cluster);
    // It could have been active for all of them.
    replace(&controller, 1, vec![plain("1.0.0"), unused()]);
    let are_read = |cluster: &Cluster| {
        let since = calls_since(cluster, &before);
        since.values().sum::<u64>() >= 3
    };
    cluster.until("all are read", are_read).await;
    until_idle(&cluster, &metrics).await;
    controller.stop().await;
    let read = expected(&[("get", "configmaps", 3)]);
    assert_eq!(calls_since(&cluster, &before), read);

    // The JobSets still note the inputs of before. A controller that starts reads the snapshots again, and writes nothing.
    let before = calls(&cluster);
    let plugins = vec![plain("1.0.0"), unused()];
    let (controller, metrics) = start_measured(&cluster, plugins).await;
    let are_read = |cluster: &Cluster| {
        let since = calls_since(cluster, &before);
        since.values().sum::<u64>() >= 3
    };
    cluster.until("all are read again", are_read).await;
    until_idle(&cluster, &metrics).await;
    controller.stop().await;
    assert_eq!(calls_since(&cluster, &before), read);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reconcile_that_has_begun_ends_with_its_plugins() {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let began = Arc::new(AtomicUsize::new(0));
    let (waits, begins) = (gate.clone(), began.clone());
    let first = stamp("1.0.0", move || {
        begins.fetch_add(1, Ordering::SeqCst);
        let (open, changed) = &*waits;
        let open = changed.wait_while(open.lock().unwrap(), |open| !*open);
        drop(open.unwrap());
        Ok(())
    });
    let cluster = cluster();
    cluster.put(job("a", "running", "stamped", false));
    let controller = start(&cluster, vec![first]).await;
    let has_begun = |_: &Cluster| began.load(Ordering::SeqCst) > 0;
    cluster.until("the plugin is called", has_begun).await;
    replace(&controller, 1, vec![plain("2.0.0")]);
    // Another TrainJob has the new plugins already.
    cluster.put(job("b", "running", "stamped", false));
    until_stamped(&cluster, "b", "running", "2.0.0").await;
    assert_eq!(cluster.get("jobsets", "a", "running"), None);
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
    until_stamped(&cluster, "a", "running", "1.0.0").await;
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plugins_are_rolled_out_to_a_share_of_namespaces_that_grows() {
    // In the order in which a growing share reaches them.
    const NAMESPACES: [&str; 3] = ["default", "team-a", "ml"];
    let cluster = cluster();
    for namespace in NAMESPACES {
        cluster.put(job(namespace, "queued", "stamped", true));
    }
    let controller = start(&cluster, vec![plain("1.0.0")]).await;
    for namespace in NAMESPACES {
        until_stamped(&cluster, namespace, "queued", "1.0.0").await;
    }
    let generations = controller.generations();
    let running = generations.held().running.clone();
    let next = generation(generations, 1, vec![plain("2.0.0")]);
    let stamps = |cluster: &Cluster| NAMESPACES.map(|it| stamp_of(cluster, it, "queued"));
    for (percent, wanted) in [
        (50, ["2.0.0", "1.0.0", "1.0.0"]),
        (60, ["2.0.0", "2.0.0", "1.0.0"]),
        (100, ["2.0.0", "2.0.0", "2.0.0"]),
        (0, ["1.0.0", "1.0.0", "1.0.0"]),
    ] {
        generations.replace(Held {
            running: running.clone(),
            rolling: Some(Rolling {
                generation: next.clone(),
                percent,
            }),
            previous: None,
        });
        let what = format!("{percent} % have it");
        cluster
            .until(&what, |cluster| stamps(cluster) == wanted)
            .await;
    }
    controller.stop().await;
}

/// Starts a TrainJob with a plugin, suspends it, deletes the ConfigMap beside its JobSet, and resumes it after the plugins were replaced. Returns
/// the messages of its Events, and the version in that ConfigMap.
async fn resumed(is_kept: bool, next: Renderer) -> (String, Value) {
    let cluster = cluster();
    cluster.put(job("a", "job", "stamped", false));
    let controller = start(&cluster, vec![plain("1.0.0")]).await;
    until_stamped(&cluster, "a", "job", "1.0.0").await;
    let suspend = |suspend: bool| {
        let change = json!({"spec": {"suspend": suspend}});
        cluster.merge("trainjobs", "a", "job", &change);
    };
    let is_suspended = |is: bool| {
        move |cluster: &Cluster| {
            cluster.get("jobsets", "a", "job").unwrap()["spec"]["suspend"] == is
        }
    };
    suspend(true);
    cluster.until("it is suspended", is_suspended(true)).await;
    until_shown(&cluster, "a", "job", true).await;
    cluster.delete("configmaps", "a", "job-stamp");

    let generations = controller.generations();
    let first = generations.held().running.clone();
    generations.replace(Held {
        running: generations.generation((1, "1"), next),
        rolling: None,
        previous: is_kept.then_some(first),
    });
    suspend(false);
    let resumes = |cluster: &Cluster| {
        let job_set = cluster.get("jobsets", "a", "job").unwrap();
        job_set["spec"]["suspend"] != true
    };
    cluster.until("it is resumed", resumes).await;
    // What was replaced never shows in it.
    assert_eq!(stamp_of(&cluster, "a", "job"), "1.0.0");
    controller.stop().await;
    let map = cluster.get("configmaps", "a", "job-stamp");
    let version = map.unwrap_or_default()["data"]["version"].clone();
    (messages(&cluster), version)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_started_train_job_is_resumed_with_the_plugins_that_it_was_started_with() {
    let (messages, version) = resumed(true, renderer("2.0.0")).await;
    assert_eq!((messages.as_str(), version), ("", json!("1.0.0")));
}

/// The new plugins have the same version of its plugin, so they keep its plan. But one that is active for all TrainJobs could not be loaded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_started_train_job_is_resumed_although_the_new_plugins_refuse_it() {
    let (messages, version) = resumed(true, renderer("1.0.0").with_skipped(vec![skipped()])).await;
    assert_eq!((messages.as_str(), version), ("", json!("1.0.0")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admission_checks_a_started_train_job_with_the_plugins_that_it_was_started_with() {
    const VALIDATE: &str = "/validate-trainer-kubeflow-org-v1alpha1-trainjob";
    let cluster = cluster();
    cluster.put(job("a", "job", "stamped", false));
    let controller = start(&cluster, vec![plain("1.0.0")]).await;
    until_stamped(&cluster, "a", "job", "1.0.0").await;
    let change = json!({"spec": {"suspend": true}});
    cluster.merge("trainjobs", "a", "job", &change);
    until_shown(&cluster, "a", "job", true).await;
    controller.stop().await;

    let webhooks = Webhooks::start(&cluster, vec![plain("1.0.0")]).await;
    let generations = webhooks.generations();
    let previous = generations.held().running.clone();
    let next = || renderer("1.0.0").with_skipped(vec![skipped()]);
    let stored = cluster.get("trainjobs", "a", "job").unwrap();
    let mut patched = stored.clone();
    patched["spec"]["runtimePatches"] = json!([{"manager": "a.io/b"}]);
    let mut warned = Vec::new();
    for previous in [None, Some(previous)] {
        generations.replace(Held {
            previous,
            ..Held::only(generations.generation((1, "1"), next()))
        });
        let response = webhooks.review(VALIDATE, &patched, Some(&stored)).await;
        assert_eq!(response["allowed"], true, "{response}");
        warned.push(response["warnings"].to_string().contains("was skipped"));
    }
    assert_eq!(warned, [true, false]);
    webhooks.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_started_train_job_whose_plugins_are_gone_is_resumed_with_a_warning() {
    let (messages, version) = resumed(false, renderer("2.0.0")).await;
    let expected = "this TrainJob was started with the plugins stamp 1.0.0 (native), and its plugins are now stamp 2.0.0 (native)";
    assert!(messages.contains(expected), "{messages}");
    assert_eq!(version, Value::Null);
}

/// The answers to the creation of a JobSet are lost, and the watch of JobSets is behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_job_set_that_the_controller_has_not_seen_is_not_written_over() {
    let cluster = cluster();
    cluster.set_rule(|_, when, call, _| match (when, call) {
        (When::Before, ("watch", "jobsets")) => Act::Hang,
        (When::Done, ("patch", "jobsets")) => Act::Refuse,
        _ => Act::GoOn,
    });
    cluster.put(job("a", "job", "stamped", false));
    let (controller, metrics) = start_measured(&cluster, vec![plain("1.0.0")]).await;
    until_stamped(&cluster, "a", "job", "1.0.0").await;
    let map = |name: &str| cluster.get("configmaps", "a", name).unwrap()["data"].clone();
    let before = [map("job-stamp"), map("job-runtime-snapshot")];
    replace(&controller, 1, vec![plain("2.0.0")]);
    let is_known = |cluster: &Cluster| {
        cluster.traffic("get", "jobsets").calls > 0 || cluster.traffic("patch", "jobsets").calls > 1
    };
    cluster.until("it is read or written", is_known).await;
    until_idle(&cluster, &metrics).await;
    controller.stop().await;
    assert_eq!(stamp_of(&cluster, "a", "job"), "1.0.0");
    assert_eq!([map("job-stamp"), map("job-runtime-snapshot")], before);
}

/// Such as one whose JobSet was deleted while it was suspended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_started_train_job_does_not_follow_when_its_suspended_job_set_was_recreated() {
    let cluster = cluster();
    cluster.put(job("a", "started", "stamped", false));
    cluster.put(job("a", "queued", "stamped", true));
    let (controller, metrics) = start_measured(&cluster, vec![plain("1.0.0")]).await;
    until_stamped(&cluster, "a", "started", "1.0.0").await;
    until_shown(&cluster, "a", "queued", true).await;
    let counts = json!({"status": {"replicatedJobsStatus": [{"name": "node", "active": 1}]}});
    cluster.merge("jobsets", "a", "started", &counts);
    let has_counts = |counts: Value| {
        move |cluster: &Cluster| {
            let job = cluster.get("trainjobs", "a", "started").unwrap();
            job["status"]["jobsStatus"][0]["active"] == counts
        }
    };
    cluster.until("its pods run", has_counts(json!(1))).await;
    let change = json!({"spec": {"suspend": true}});
    cluster.merge("trainjobs", "a", "started", &change);
    until_shown(&cluster, "a", "started", true).await;
    cluster.delete("jobsets", "a", "started");
    let is_recreated = |cluster: &Cluster| cluster.get("jobsets", "a", "started").is_some();
    cluster.until("it is recreated", is_recreated).await;
    let is_reset = has_counts(Value::Null);
    cluster
        .until("nothing shows that it has run", is_reset)
        .await;
    until_idle(&cluster, &metrics).await;

    let before = calls(&cluster);
    replace(&controller, 1, vec![plain("2.0.0")]);
    until_stamped(&cluster, "a", "queued", "2.0.0").await;
    until_idle(&cluster, &metrics).await;
    controller.stop().await;
    // The calls of the other one.
    let made = [
        ("get", "configmaps", 2),
        ("get", "jobsets", 1),
        ("patch", "configmaps", 2),
        ("patch", "jobsets", 1),
    ];
    assert_eq!(calls_since(&cluster, &before), expected(&made));
    let job_set = cluster.get("jobsets", "a", "started").unwrap();
    let annotations = &job_set["metadata"]["annotations"];
    assert_eq!(
        (&annotations[STAMP], &annotations["trainyard.dev/inputs"]),
        (&json!("1.0.0"), &Value::Null)
    );
}

/// A plugin that looks a node up, and notes whether it exists.
fn looks(version: &str, node: &'static str, calls: &Arc<AtomicUsize>) -> Arc<dyn Plugin> {
    let calls = calls.clone();
    let claims = json!({
        "reads": [format!("lookups[v1/Node/{node}]")], "writes": [format!("annotations[{STAMP}]")],
    });
    native("stamp", version, &claims, move |_, call| {
        let lookups = call.context_lookups(Call::CONTEXT)?;
        let found = call.lookups_find(lookups, "v1", "Node", node)?;
        calls.fetch_add(1, Ordering::SeqCst);
        let info = call.context_info(Call::CONTEXT)?;
        let text = format!("{node}: {}", found.is_some());
        Ok(call.info_set_annotation(info, STAMP, &text)?)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn train_jobs_follow_the_objects_that_the_new_plugins_look_up_and_no_others() {
    let [old, new] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    let cluster = cluster();
    cluster.put(job("a", "queued", "stamped", true));
    let controller = start(&cluster, vec![looks("1.0.0", "old", &old)]).await;
    until_stamped(&cluster, "a", "queued", "old: false").await;
    replace(&controller, 1, vec![looks("2.0.0", "new", &new)]);
    until_stamped(&cluster, "a", "queued", "new: false").await;
    let node = |name: &str| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    let called = new.load(Ordering::SeqCst);
    cluster.put(node("old"));
    cluster.put(node("new"));
    until_stamped(&cluster, "a", "queued", "new: true").await;
    controller.stop().await;
    assert_eq!(new.load(Ordering::SeqCst), called + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admission_checks_with_the_plugins_of_the_namespace() {
    const VALIDATE: &str = "/validate-trainer-kubeflow-org-v1alpha1-trainjob";
    let cluster = cluster();
    let webhooks = Webhooks::start(&cluster, vec![plain("1.0.0")]).await;
    let generations = webhooks.generations();
    let running = generations.held().running.clone();
    let refuses = stamp("2.0.0", || {
        Err(CallFailure::Refused(Failure {
            message: "is never allowed".to_owned(),
            field: None,
        }))
    });
    let next = generation(generations, 1, vec![refuses]);
    let mut allowed = Vec::new();
    for percent in [0, 50, 100] {
        generations.replace(Held {
            running: running.clone(),
            rolling: Some(Rolling {
                generation: next.clone(),
                percent,
            }),
            previous: None,
        });
        for namespace in ["default", "ml"] {
            let job = job(namespace, "job", "stamped", false);
            let response = webhooks.review(VALIDATE, &job, None).await;
            allowed.push(response["allowed"] == true);
        }
    }
    assert_eq!(allowed, [true, true, false, true, false, false]);
    webhooks.stop().await;
}
