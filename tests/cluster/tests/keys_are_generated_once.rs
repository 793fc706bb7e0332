//! The keys of a TrainJob are generated with its Secret, under the roles that `trainyard rbac` prints: they survive a restart, are never
//! shown, and are deleted with the TrainJob. A Secret that is deleted while pods run is recreated only with new pods.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};
use trainyard_cluster::{
    Call, ControlPlane, Fate, Resource, Shared, Test, Trainyard, Write, build_plugin,
};

use crate::common::{
    self, Disturbed, Namespace, is, is_running, is_suspended, keys, parts::Parts, roles, runtimes,
};

/// The runtimes of the built-in policies that request keys: MPI with a dedicated launcher, MPI with a launcher that runs as node, and Flux.
const BUILT_IN: [&str; 3] = ["own-launcher", "launcher-node", "flux"];

/// A cluster, and the plugin that requests keys.
pub(crate) struct Keys {
    disturbed: Disturbed,
    plugins: PathBuf,
}

fn policy() -> PathBuf {
    keys::source().join("policy.yaml")
}

impl Shared for Keys {
    fn start() -> Result<Self> {
        let plugins = Path::new(env!("CARGO_TARGET_TMPDIR")).join("keys");
        std::fs::create_dir_all(&plugins)?;
        build_plugin(&keys::source(), &plugins.join("keys.wasm"), &[])?;
        let disturbed = Disturbed::start()?;
        let mut runtime = common::runtime();
        runtime["metadata"]["name"] = json!("keyed");
        runtime["spec"]["plugins"] = json!([{"name": "keys"}]);
        let runtimes = [
            runtimes::mpi(BUILT_IN[0], false),
            runtimes::mpi(BUILT_IN[1], true),
            runtimes::flux(),
            runtime,
        ];
        let arguments: [OsString; 4] = [
            "--plugin-dir".into(),
            plugins.clone().into(),
            "--policy".into(),
            policy().into(),
        ];
        disturbed.plane().block_on(async {
            common::create_runtimes(disturbed.plane(), &runtimes).await?;
            roles::grant(disturbed.plane(), &roles::printed(&arguments)?).await
        })?;
        Ok(Self { disturbed, plugins })
    }

    fn plane(&self) -> &ControlPlane {
        self.disturbed.plane()
    }

    fn still_runs(&self) -> Result<()> {
        self.disturbed.still_runs()
    }
}

impl Keys {
    async fn controller(&self) -> Result<Arc<Trainyard>> {
        let policy = policy();
        self.disturbed
            .controller_under(&self.plugins, Some(&policy))
            .await
    }

    async fn namespace(&self) -> Result<Namespace<'_>> {
        let namespace = Namespace::new(&self.disturbed.cluster).await?;
        namespace.fate(Fate::Hold);
        Ok(namespace)
    }
}

fn spec(suspend: bool) -> Value {
    json!({"suspend": suspend, "runtimeRef": {"name": "keyed"}})
}

/// Returns the spec of a TrainJob with two nodes on a runtime of a built-in policy.
fn built_in(runtime: &str, suspend: bool) -> Value {
    let trainer = json!({"numNodes": 2, "command": ["mpirun", "lmp"]});
    json!({"suspend": suspend, "runtimeRef": {"name": runtime}, "trainer": trainer})
}

/// Returns all objects of the controller, except Secrets.
async fn outputs(
    namespace: &Namespace<'_>,
    controllers: &[Arc<Trainyard>],
) -> Result<Vec<(&'static str, String)>> {
    let mut outputs = Vec::new();
    for controller in controllers {
        outputs.push(("log", controller.process().log()?));
    }
    for (what, resource) in [
        ("events", &namespace.events),
        ("config maps", &namespace.config_maps),
        ("job sets", &namespace.job_sets),
        ("jobs", &namespace.jobs),
    ] {
        let items = namespace.api(resource).items().await?;
        outputs.push((what, json!(items).to_string()));
    }
    Ok(outputs)
}

async fn keys_survive_a_restart_and_are_deleted_with_their_train_job(shared: &Keys) -> Result<()> {
    let _turn = shared.disturbed.turn.lock().await;
    let namespace = shared.namespace().await?;
    let secrets = keys::secrets();
    let secrets = namespace.api(&secrets);
    shared.disturbed.proxy.forget().await;
    let first = shared.controller().await?;
    namespace.create("runs", &spec(false)).await?;
    namespace.create("queued", &spec(true)).await?;
    namespace.until("runs", "it runs", is_running).await?;
    namespace.job_set("queued").await?;
    let mut made = Vec::new();
    for name in ["runs", "queued"] {
        let secret = secrets.get(&format!("{name}-keys")).await?.accepted()?;
        ensure!(secret["type"] == "kubernetes.io/ssh-auth", "{secret:#}");
        let private = keys::text(&secret, "ssh-privatekey")?;
        let framed = "-----BEGIN EC PRIVATE KEY-----\n";
        ensure!(private.starts_with(framed), "no PEM");
        let public = keys::text(&secret, "ssh-publickey")?;
        ensure!(public.starts_with("ecdsa-sha2-nistp521 AAAA"), "{public}");
        ensure!(keys::text(&secret, "plain")? == name, "{secret:#}");
        let job = namespace.api(&namespace.jobs).get(name).await?.accepted()?;
        let owner = &secret["metadata"]["ownerReferences"][0];
        ensure!(owner["uid"] == job["metadata"]["uid"], "{owner:#}");
        made.push(secret);
    }
    ensure!(made[0]["data"]["token"] != made[1]["data"]["token"]);
    let metrics = first.metrics().await?;
    first.stop().await?;

    // A queued TrainJob is rendered again, with its Secret present.
    let second = shared.controller().await?;
    let mut resumed = spec(false);
    resumed["labels"] = json!({"example.com/new": "label"});
    namespace.patch("queued", &resumed).await?;
    namespace.until("queued", "it runs", is_running).await?;
    for secret in &made {
        let name = secret["metadata"]["name"].as_str().unwrap_or_default();
        ensure!(secrets.get(name).await?.accepted()? == *secret, "{name}");
    }
    let calls = shared.disturbed.proxy.calls().await;
    let of_secrets = |call: &&Call| call.path.contains("/secrets");
    let calls: Vec<_> = calls.iter().filter(of_secrets).collect();
    ensure!(calls.len() > 2, "{calls:#?}");
    for call in calls {
        let by_name = call.method == Method::GET && call.path.contains("-keys");
        ensure!(by_name || call.method == Method::POST, "{call:?}");
    }

    let mut outputs = outputs(&namespace, &[first, second.clone()]).await?;
    outputs.push(("metrics", metrics));
    outputs.push(("metrics", second.metrics().await?));
    for secret in &made {
        let parts = Parts::of(secret);
        ensure!(parts.are_in(&secret.to_string()));
        for (what, text) in &outputs {
            ensure!(!text.is_empty() && !parts.are_in(text), "{what}");
        }
    }

    let jobs = namespace.api(&namespace.jobs);
    for name in ["runs", "queued"] {
        jobs.delete(name).await?.accepted()?;
    }
    let none_left = <[Value]>::is_empty;
    secrets.until_all("no Secret is left", none_left).await?;
    Ok(())
}

async fn keys_of_mpi_and_flux_survive_a_restart_and_are_deleted(shared: &Keys) -> Result<()> {
    let _turn = shared.disturbed.turn.lock().await;
    let namespace = shared.namespace().await?;
    let secrets = keys::secrets();
    let secrets = namespace.api(&secrets);
    let job_sets = namespace.api(&namespace.job_sets);
    let first = shared.controller().await?;
    let named = |kind: &str| BUILT_IN.map(|runtime| format!("{runtime}-{kind}"));
    let (running, queued) = (named("runs"), named("queued"));
    for (runtime, (runs, waits)) in BUILT_IN.iter().zip(running.iter().zip(&queued)) {
        namespace.create(runs, &built_in(runtime, false)).await?;
        namespace.create(waits, &built_in(runtime, true)).await?;
    }
    for (runs, waits) in running.iter().zip(&queued) {
        namespace.until(runs, "it runs", is_running).await?;
        namespace.job_set(waits).await?;
    }
    let made = secrets.items().await?;
    ensure!(made.len() == 6, "{} Secrets", made.len());
    let texts: BTreeSet<_> = made.iter().map(|it| it["data"].to_string()).collect();
    ensure!(texts.len() == 6, "each has keys of its own");
    first.stop().await?;

    let second = shared.controller().await?;
    let label = json!({"labels": {"example.com/new": "label"}});
    for name in running.iter().chain(&queued) {
        namespace.patch(name, &label).await?;
    }
    // A queued TrainJob is rendered again, and then runs.
    for name in &queued {
        let follows = |job_set: &Value| job_set["metadata"]["labels"]["example.com/new"] == "label";
        job_sets.until(name, "it is rendered anew", follows).await?;
        ensure!(secrets.items().await? == made, "{name}");
        namespace.patch(name, &json!({"suspend": false})).await?;
        namespace.until(name, "it runs", is_running).await?;
    }
    second.until_idle().await?;
    ensure!(secrets.items().await? == made);
    namespace.delete_all(running.iter().chain(&queued)).await
}

/// Running pods have the old keys and could not connect to pods with new ones.
async fn secret_deleted_while_pods_run_is_recreated_with_new_pods(shared: &Keys) -> Result<()> {
    let _turn = shared.disturbed.turn.lock().await;
    let namespace = shared.namespace().await?;
    let secrets = keys::secrets();
    let secrets = namespace.api(&secrets);
    let pods = namespace.api(&namespace.pods);
    let controller = shared.controller().await?;
    let names = BUILT_IN.map(|runtime| {
        let suffix = if runtime == "flux" {
            "flux-curve"
        } else {
            "mpi-ssh-auth"
        };
        (runtime, format!("{runtime}-{suffix}"))
    });
    for (name, _) in &names {
        namespace.create(name, &built_in(name, false)).await?;
    }
    let mut lost = Vec::new();
    for (name, secret) in &names {
        namespace.until(name, "it runs", is_running).await?;
        lost.push(secrets.get(secret).await?.accepted()?["data"].clone());
        secrets.delete(secret).await?.accepted()?;
    }
    let running = pods.items().await?;
    let change = json!({"labels": {"example.com/any": "change"}});
    for (name, _) in &names {
        namespace.patch(name, &change).await?;
    }
    for (name, secret) in &names {
        let reported = format!("Secret `{secret}` is missing while its JobSet runs");
        namespace.event(name, &reported).await?;
    }
    ensure!(secrets.items().await?.is_empty());
    ensure!(pods.items().await? == running, "the pods run on");

    for (name, _) in &names {
        namespace.patch(name, &json!({"suspend": true})).await?;
    }
    for (name, _) in &names {
        namespace.until(name, "it waits", is_suspended).await?;
    }
    ensure!(secrets.items().await?.is_empty());
    let goes_on = |job: &Value| is_running(job) && is(job, "Suspended", "False");
    for ((name, secret), lost) in names.iter().zip(&lost) {
        namespace.patch(name, &json!({"suspend": false})).await?;
        namespace.until(name, "it goes on", goes_on).await?;
        let now = secrets.get(secret).await?.accepted()?;
        let keys = |data: &Value| {
            data.as_object()
                .map(|data| data.keys().cloned().collect::<Vec<_>>())
        };
        ensure!(
            keys(&now["data"]) == keys(lost) && now["data"] != *lost,
            "{name}"
        );
    }
    controller.process().still_runs()
}

/// The memory of plugins is part of the process and of its core dump.
async fn trapped_call_leaves_no_key_in_memory(shared: &Keys) -> Result<()> {
    let _turn = shared.disturbed.turn.lock().await;
    let namespace = shared.namespace().await?;
    let secrets = keys::secrets();
    let secrets = namespace.api(&secrets);
    let controller = shared.controller().await?;
    namespace.create("made", &spec(true)).await?;
    let job_set = namespace.job_set("made").await?;
    let secret = secrets.get("made-keys").await?.accepted()?;
    shared.disturbed.proxy.forget().await;
    let job = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
        "metadata": {"name": "traps", "labels": {"example.com/traps": "yes"}}, "spec": spec(false),
    });
    let jobs = namespace.api(&namespace.jobs);
    jobs.create(&job, &Write::strict()).await?.accepted()?;
    let reported = "with every key in its place";
    namespace.event("traps", reported).await?;
    let calls = shared.disturbed.proxy.calls().await;
    let of_secrets = calls.iter().filter(|call| call.path.contains("/secrets"));
    ensure!(of_secrets.count() == 0, "{calls:#?}");

    // The UID proves that the search works.
    let uid = job_set["metadata"]["uid"].as_str().unwrap_or_default();
    let keys = keys::private(&secret)?;
    let needles: Vec<_> = keys.iter().map(Vec::as_slice).collect();
    let needles: Vec<_> = needles.into_iter().chain([uid.as_bytes()]).collect();
    let held = controller.process().holds(&needles)?;
    ensure!(
        held == [uid.as_bytes()],
        "{} of {}",
        held.len(),
        needles.len()
    );
    controller.process().still_runs()
}

/// The API server refuses a Secret that `render` prints, so that no pod runs with a placeholder for a key.
async fn placeholder_is_refused_by_the_api_server(shared: &Keys) -> Result<()> {
    let namespace = shared.namespace().await?;
    let resource: Resource = keys::secrets();
    let secrets = namespace.api(&resource);
    let shown = "<placeholder for the private key of key pair ssh (ecdsa-p521, sec1-pem)>";
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "printed"}, "type": "Opaque",
        "data": {"ssh-privatekey": shown},
    });
    for answer in [
        secrets.create(&secret, &Write::strict()).await?,
        secrets.apply(&secret, &Write::by("kubectl")).await?,
    ] {
        let refused = answer.refused()?;
        ensure!(
            format!("{refused:?}").contains("illegal base64"),
            "{refused:?}"
        );
    }
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Keys>> {
    tests![
        keys_survive_a_restart_and_are_deleted_with_their_train_job,
        keys_of_mpi_and_flux_survive_a_restart_and_are_deleted,
        secret_deleted_while_pods_run_is_recreated_with_new_pods,
        trapped_call_leaves_no_key_in_memory,
        placeholder_is_refused_by_the_api_server,
    ]
}
