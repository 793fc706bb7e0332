//! Each hostile file of the sandbox's tests, in a registry that the controller may use, as the plugin of a PolicyPlugin: the controller goes
//! on, says why the file does not run, and changes neither what runs nor what is suspended.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{
    Cluster, Fate, Own, PluginRegistry, RegistryOptions, Test, Trainyard, Write, eventually,
};
use trainyard_oci::{
    Artifact, Client, Credentials, Https, Limits, Location, Progress, Registries, Release,
};

use crate::common::{self, Namespace, declared::Declared, is};

/// The folder with the files, which `make test-plugins` fills.
const FILES: &str = "TRAINYARD_HOSTILE_FILES";

/// The name in the manifest of those that have one.
const NAME: &str = "mole";

/// Pushes what is WebAssembly by its first bytes, which is all that the client of registries looks at. Returns the references.
async fn push_all(files: &Path, host: &str) -> Result<Vec<String>> {
    let registries = Registries::default();
    let https = Https::new(&registries, &[], Duration::from_secs(5))?;
    let client = Client::new(
        Arc::new(https),
        Credentials::default(),
        registries,
        Limits::default(),
        false,
    );
    let mut names: Vec<_> = fs::read_dir(files)?.collect::<Result<_, _>>()?;
    names.sort_by_key(fs::DirEntry::file_name);
    let mut pushed = Vec::new();
    for (number, file) in names.iter().enumerate() {
        let Ok(artifact) = Artifact::new(fs::read(file.path())?, &Release::default()) else {
            continue;
        };
        let target: Location = format!("{host}/hostile/{number}:1").parse()?;
        let done = client.push(&artifact, &target, &Progress::NONE).await?;
        pushed.push(format!("{host}/hostile/{number}@{}", done.digest));
    }
    Ok(pushed)
}

fn arguments(folder: &Path, host: &str) -> Result<Vec<OsString>> {
    let configuration = json!({
        "apiVersion": "trainyard.dev/v1alpha1",
        "kind": "ControllerConfiguration",
        "plugins": {
            "source": "Cluster",
            "rollout": {"steps": [50], "interval": "1s"},
            "unsigned": [format!("{host}/hostile/*")],
        },
    });
    let path = folder.join("hostile.yaml");
    fs::write(&path, configuration.to_string())?;
    let flags = [("--config", path), ("--plugin-store", folder.join("store"))];
    let flags = flags
        .into_iter()
        .map(|(flag, path)| [flag.into(), path.into()]);
    Ok(flags.flatten().collect())
}

/// Returns why a PolicyPlugin does not run, or that it does; `None` while that is not known.
fn outcome(policy: &Value) -> Option<String> {
    if policy["status"]["observedGeneration"] != policy["metadata"]["generation"] {
        return None;
    }
    let conditions = policy["status"]["conditions"].as_array()?;
    let text =
        |condition: &Value, key: &str| condition[key].as_str().unwrap_or_default().to_owned();
    let described = |condition: &Value| {
        let (kind, reason) = (text(condition, "type"), text(condition, "reason"));
        format!("{kind}: {reason}")
    };
    let is_fault = |condition: &&Value| match text(condition, "type").as_str() {
        "Pulled" | "Verified" | "Loaded" | "Permitted" => {
            condition["status"] == "False" && condition["reason"] != "Retrying"
        }
        "Conflicting" => condition["status"] == "True",
        _ => false,
    };
    if let Some(fault) = conditions.iter().find(is_fault) {
        return Some(described(fault));
    }
    let active = conditions.iter().find(|it| it["type"] == "Active")?;
    let is_final = [
        "Running",
        "NewRefusals",
        "NewFailures",
        "RolledBack",
        "Refused",
    ];
    is_final
        .contains(&text(active, "reason").as_str())
        .then(|| described(active))
}

/// A TrainJob that runs, one that is suspended after it ran, and one that is queued.
struct TrainJobs<'c> {
    namespace: Namespace<'c>,
    before: BTreeMap<String, Value>,
}

impl<'c> TrainJobs<'c> {
    async fn new(cluster: &'c Cluster) -> Result<Self> {
        let namespace = Namespace::new(cluster).await?;
        namespace.fate(Fate::Hold);
        for name in ["runs", "suspended", "queued"] {
            let spec = json!({"runtimeRef": {"name": "plain"}, "suspend": name == "queued"});
            namespace.create(name, &spec).await?;
        }
        for name in ["runs", "suspended"] {
            namespace.until_active(name, 1).await?;
        }
        namespace
            .patch("suspended", &json!({"suspend": true}))
            .await?;
        let suspended = |job: &Value| is(job, "Suspended", "True");
        namespace
            .until("suspended", "it is suspended", suspended)
            .await?;
        Ok(Self {
            namespace,
            before: BTreeMap::new(),
        })
    }

    /// Returns the JobSets by name, without what JobSet's own controller writes.
    async fn job_sets(&self) -> Result<BTreeMap<String, Value>> {
        let api = self.namespace.api(&self.namespace.job_sets);
        let named = api.items().await?.into_iter().map(|set| {
            let metadata = &set["metadata"];
            let name = metadata["name"].as_str().unwrap_or_default().to_owned();
            let kept = json!([
                metadata["uid"],
                metadata["labels"],
                metadata["annotations"],
                set["spec"]
            ]);
            (name, kept)
        });
        Ok(named.collect())
    }

    async fn ensure_unchanged(&self, names: &[&str], by: &str) -> Result<()> {
        let now = self.job_sets().await?;
        for name in names {
            let (was, is) = (self.before.get(*name), now.get(*name));
            ensure!(was.is_some() && was == is, "{by}: {name}: {was:#?} {is:#?}");
        }
        Ok(())
    }
}

/// All at once, each as a plugin of another name: none of them is that plugin. Returns those whose manifest was read.
async fn all_at_once(
    declared: &Declared<'_>,
    references: &[String],
    outcomes: &mut BTreeMap<String, usize>,
) -> Result<Vec<String>> {
    let name = |number: usize| format!("file-{number}");
    for (number, reference) in references.iter().enumerate() {
        declared.declare(&name(number), reference).await?;
    }
    let mut with_manifest = Vec::new();
    for (number, reference) in references.iter().enumerate() {
        let policies = declared.policies();
        let ended = |policy: &Value| outcome(policy).is_some();
        let policy = policies
            .until(&name(number), "it is decided", ended)
            .await?;
        let reason = outcome(&policy).context("it is not decided")?;
        if reason == "Loaded: WrongName" {
            with_manifest.push(reference.clone());
        } else {
            *outcomes.entry(reason).or_default() += 1;
        }
    }
    for number in 0..references.len() {
        let deleted = declared.policies().delete(&name(number)).await?;
        deleted.accepted()?;
    }
    Ok(with_manifest)
}

/// Deletes the last plugin, which is active for every TrainJob, and accepts that it goes.
async fn remove(declared: &Declared<'_>) -> Result<()> {
    declared.policies().delete(NAME).await?.accepted()?;
    let revisions = declared.revisions();
    let name = eventually("a revision waits without the plugin", async || {
        let all = revisions.items().await?;
        let mut waiting = all
            .iter()
            .filter(|it| it["status"]["reason"] == "RemovesPlugins");
        let name = waiting.find_map(|it| it["metadata"]["name"].as_str());
        Ok(name.map(str::to_owned))
    })
    .await?;
    let accept = json!({"metadata": {"annotations": {"trainyard.dev/accept": ""}}});
    let write = Write::by("operator");
    revisions.merge(&name, &accept, &write).await?.accepted()?;
    Ok(())
}

async fn hostile_files(Own(cluster): &Own<Cluster>) -> Result<()> {
    let files = env::var_os(FILES).map(PathBuf::from);
    let files = files.with_context(|| format!("{FILES} is set by `make test-plugins`"))?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let registry = PluginRegistry::start(&folder, RegistryOptions::default())?;
    let references = push_all(&files, &registry.host()).await?;
    ensure!(references.len() > 50, "{} files", references.len());

    // Without a policy whose env vars the files claim, too.
    let mut plain = common::runtime();
    plain["metadata"]["name"] = json!("plain");
    plain["spec"]["mlPolicy"] = json!({"numNodes": 1});
    common::create_runtimes(cluster.plane(), &[plain]).await?;
    let account = trainyard_cluster::deploy(cluster.plane()).await?;
    let declared = Declared::new(cluster).await?;
    let torch = json!({
        "apiVersion": "trainyard.dev/v1alpha1", "kind": "PolicyPlugin", "metadata": {"name": "torch"},
        "spec": {"disabled": true},
    });
    let created = declared.policies().create(&torch, &Write::strict()).await?;
    created.accepted()?;
    let arguments = arguments(&folder, &registry.host())?;
    let controller = Trainyard::start(cluster.plane(), &account, arguments).await?;
    declared.stage(1, "Running").await?;
    let mut jobs = TrainJobs::new(cluster).await?;
    controller.until_idle().await?;
    jobs.before = jobs.job_sets().await?;

    let mut outcomes = BTreeMap::new();
    let with_manifest = all_at_once(&declared, &references, &mut outcomes).await?;
    jobs.ensure_unchanged(&["runs", "suspended", "queued"], "all at once")
        .await?;
    for reference in &with_manifest {
        declared.declare(NAME, reference).await?;
        let policies = declared.policies();
        let ended = |policy: &Value| outcome(policy).is_some();
        let policy = policies.until(NAME, "it is decided", ended).await?;
        let reason = outcome(&policy).context("it is not decided")?;
        controller.process().still_runs()?;
        jobs.ensure_unchanged(&["runs", "suspended"], reference)
            .await?;
        *outcomes.entry(reason).or_default() += 1;
    }
    let memory = controller.process().own_memory()? >> 20;
    println!("\n{} files, {memory} MiB at the end", references.len());
    for (reason, count) in &outcomes {
        println!("{count:4} {reason}");
    }
    let count = |reason: &str| outcomes.get(reason).copied().unwrap_or_default();
    // Not only one check refuses them all.
    ensure!(
        count("Loaded: NotAPlugin") > 30 && count("Active: NewRefusals") > 15,
        "few reach what they attack"
    );
    remove(&declared).await?;
    eventually("the queued TrainJob is what it was", async || {
        let now = jobs.job_sets().await?;
        let spec = |sets: &BTreeMap<String, Value>| sets.get("queued").map(|set| set[3].clone());
        Ok((spec(&now) == spec(&jobs.before)).then_some(()))
    })
    .await?;
    jobs.ensure_unchanged(&["runs", "suspended"], "the end")
        .await?;
    // The same process serves whoever comes next.
    jobs.namespace
        .create("next", &json!({"runtimeRef": {"name": "plain"}}))
        .await?;
    jobs.namespace.until_active("next", 1).await?;
    controller.process().still_runs()?;
    controller.kill()?;
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Own<Cluster>>> {
    tests![hostile_files]
}
