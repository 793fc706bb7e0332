//! PolicyPlugins with plugins of a real registry, which cosign signed: what an installation, an upgrade, a conflict, a wrong signature, a way
//! back and a registry that is down change for 200 TrainJobs, by the UIDs and the bytes of their JobSets.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{
    Cluster, Fate, PluginRegistry, RegistryOptions, Test, Trainyard, Write, build_plugin, cosign,
    eventually, with_manifest,
};

use crate::common::{
    self, Namespace,
    declared::{Declared, policy},
    is,
};

/// How many TrainJobs of each group a namespace has.
const GROUPS: [(&str, usize); 4] = [("runs", 3), ("suspended", 2), ("queued", 30), ("plain", 15)];
const NAMESPACES: usize = 4;
const STAMP: &str = "example.com/stamp";

/// A user of the registry with a password, for the registry, and in base64.
const HTPASSWD: &str = "robot:$2a$04$9fI.La2tdiUyniU/wP9KOOVBkXPyl9W9CGr.h/dNkG8f3aqa5FvfO\n";
const AUTH: &str = "cm9ib3Q6aHVudGVyMg==";

/// A registry with plugins that cosign signed.
struct Site {
    folder: PathBuf,
    registry: PluginRegistry,
}

impl Site {
    fn start(folder: &Path) -> Result<Self> {
        let folder = folder.join("plugins");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let options = RegistryOptions {
            htpasswd: Some(HTPASSWD),
            ..RegistryOptions::default()
        };
        let site = Self {
            registry: PluginRegistry::start(&folder, options)?,
            folder,
        };
        // As `docker login` writes it.
        fs::create_dir_all(site.folder.join(".docker"))?;
        let credentials = json!({"auths": {site.registry.host(): {"auth": AUTH}}});
        fs::write(site.credentials(), credentials.to_string())?;
        // Neither a transparency log nor a timestamp authority.
        site.cosign(&["signing-config", "create", "--out", "none.json"])?;
        for name in ["acme", "mallory"] {
            site.cosign(&["generate-key-pair", "--output-key-prefix", name])?;
        }
        Ok(site)
    }

    fn credentials(&self) -> PathBuf {
        self.folder.join(".docker/config.json")
    }

    /// Returns the arguments of a controller.
    fn arguments(&self, key: &str, store: &str) -> Result<Vec<OsString>> {
        let flags = [
            ("--config", self.configuration(key)?),
            ("--plugin-store", self.folder.join(store)),
            ("--registry-config", self.credentials()),
        ];
        let flags = flags
            .into_iter()
            .map(|(flag, path)| [flag.into(), path.into()]);
        Ok(flags.flatten().collect())
    }

    fn cosign(&self, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new(cosign()?);
        command.args(arguments).current_dir(&self.folder);
        command.env("HOME", &self.folder).env("COSIGN_PASSWORD", "");
        let output = command.output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{arguments:?}: {said}");
        Ok(())
    }

    /// Builds the plugin `stamp`, whose version it writes into an annotation of the JobSet.
    fn build(&self, version: &str, annotations: &[&str]) -> Result<Vec<u8>> {
        let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/sdk");
        let crate_folder = self.folder.join("stamp");
        fs::create_dir_all(crate_folder.join("src"))?;
        fs::write(
            crate_folder.join("Cargo.toml"),
            format!(
                "[package]\nname = \"stamp\"\nversion = \"{version}\"\nedition = \"2024\"\n\n[lib]\ncrate-type = [\"cdylib\", \"rlib\"]\n\n\
                 [dependencies]\ntrainyard-sdk = {{ path = {:?} }}\n\n[workspace]\n",
                sdk.canonicalize()?.display().to_string()
            ),
        )?;
        fs::write(
            crate_folder.join("manifest.json"),
            manifest("stamp", None, annotations).to_string(),
        )?;
        let set = annotations.iter();
        let set = set.map(|name| format!("ctx.info().set_annotation({name:?}, {version:?});"));
        let set: Vec<_> = set.collect();
        fs::write(
            crate_folder.join("src/lib.rs"),
            format!(
                "//! Stamps JobSets.\nuse trainyard_sdk::{{Context, Failure, Transform}};\n/// The plugin.\npub struct Stamp;\n\
                 trainyard_sdk::plugin!(Stamp: transform);\nimpl Transform for Stamp {{\n fn transform(ctx: &Context) -> Result<(), Failure> {{\n\
                 ctx.because(\"its version\");\n{}\nOk(())\n }}\n}}\n",
                set.join("\n")
            ),
        )?;
        let component = self.folder.join("stamp.wasm");
        build_plugin(&crate_folder, &component, &[])?;
        Ok(fs::read(component)?)
    }

    /// Pushes a plugin, and signs it. Returns the reference with the digest.
    fn push(&self, name: &str, version: &str, component: &[u8], key: &str) -> Result<String> {
        let file = self.folder.join(format!("{name}-{version}.wasm"));
        fs::write(&file, component)?;
        let repository = format!("{}/acme/{name}", self.registry.host());
        let mut push = Command::new(Trainyard::program()?);
        push.args(["plugin", "push"])
            .arg(&file)
            .env("HOME", &self.folder);
        let output = push.arg(format!("{repository}:{version}")).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{said}");
        let printed = String::from_utf8(output.stdout)?;
        let digest = printed.split("@sha256:").nth(1).context("no digest")?;
        let digest = digest.get(..64).context("no digest")?;
        let pinned = format!("{repository}@sha256:{digest}");
        let key = format!("{key}.key");
        self.cosign(&[
            "sign",
            "--yes",
            "--key",
            &key,
            "--allow-http-registry",
            "--signing-config",
            "none.json",
            &pinned,
        ])?;
        Ok(pinned)
    }

    /// Writes a configuration of the controller, in which a key may sign.
    fn configuration(&self, key: &str) -> Result<PathBuf> {
        let configuration = json!({
            "apiVersion": "trainyard.dev/v1alpha1",
            "kind": "ControllerConfiguration",
            "plugins": {
                "source": "Cluster",
                "rollout": {"steps": [50], "interval": "8s"},
                "signers": [{
                    "name": "acme",
                    "publicKey": fs::read_to_string(self.folder.join(format!("{key}.pub")))?,
                    "plugins": ["stamp", "clash", "torch"],
                    "repositories": [format!("{}/acme/*", self.registry.host())],
                }],
            },
        });
        let path = self.folder.join(format!("{key}.yaml"));
        fs::write(&path, configuration.to_string())?;
        Ok(path)
    }
}

fn manifest(name: &str, version: Option<&str>, annotations: &[&str]) -> Value {
    let writes = annotations.iter();
    let writes: Vec<_> = writes.map(|it| format!("annotations[{it}]")).collect();
    let active_when = match name {
        "torch" => "mlPolicy.torch",
        _ => "plugins",
    };
    let mut manifest = json!({
        "name": name, "description": "Stamps JobSets.", "activeWhen": active_when, "claims": {"writes": writes},
    });
    if let Some(version) = version {
        manifest["version"] = json!(version);
        manifest["contract"] = json!("1.0.0");
        manifest["phases"] = json!(["transform"]);
    }
    manifest
}

/// What a TrainJob's JobSet is: its UID, and everything of it that a user can see.
type Seen = BTreeMap<String, (String, String)>;

/// The cluster with the TrainJobs.
struct World<'c> {
    cluster: &'c Cluster,
    namespaces: Vec<Namespace<'c>>,
    declared: Declared<'c>,
    /// What each step changed.
    table: Vec<String>,
    began: Instant,
}

impl<'c> World<'c> {
    async fn new(cluster: &'c Cluster) -> Result<Self> {
        let mut namespaces = Vec::new();
        for _ in 0..NAMESPACES {
            let namespace = Namespace::new(cluster).await?;
            namespace.fate(Fate::Hold);
            namespaces.push(namespace);
        }
        Ok(Self {
            cluster,
            namespaces,
            declared: Declared::new(cluster).await?,
            table: Vec::new(),
            began: Instant::now(),
        })
    }

    /// Creates all TrainJobs. Those of the group `plain` need no plugin.
    async fn create_train_jobs(&self) -> Result<()> {
        for namespace in &self.namespaces {
            for (group, count) in GROUPS {
                for number in 0..count {
                    let runtime = if group == "plain" { "plain" } else { "stamped" };
                    let spec = json!({
                        "runtimeRef": {"name": runtime},
                        "suspend": matches!(group, "queued" | "plain"),
                    });
                    namespace
                        .create(&format!("{group}-{number}"), &spec)
                        .await?;
                }
            }
        }
        Ok(())
    }

    /// Suspends those of the group `suspended` that run.
    async fn suspend(&self) -> Result<()> {
        for namespace in &self.namespaces {
            for name in names("suspended") {
                namespace.until_active(&name, 1).await?;
                namespace.patch(&name, &json!({"suspend": true})).await?;
                let suspended = |job: &Value| is(job, "Suspended", "True");
                namespace.until(&name, "it is suspended", suspended).await?;
            }
            for name in names("runs") {
                namespace.until_active(&name, 1).await?;
            }
        }
        Ok(())
    }

    async fn seen(&self) -> Result<Seen> {
        let mut seen = Seen::new();
        for namespace in &self.namespaces {
            for set in namespace.api(&namespace.job_sets).items().await? {
                let metadata = &set["metadata"];
                let bytes = json!([metadata["labels"], metadata["annotations"], set["spec"]]);
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let name = format!("{}/{}", text(&metadata["name"]), namespace.name);
                seen.insert(name, (text(&metadata["uid"]), bytes.to_string()));
            }
        }
        Ok(seen)
    }

    /// Adds a row: for each group, how many JobSets are new, have another UID, and have other bytes.
    async fn row(
        &mut self,
        step: &str,
        before: &Seen,
        controller: &Trainyard,
    ) -> Result<BTreeMap<&'static str, [usize; 3]>> {
        let after = self.seen().await?;
        let mut found = BTreeMap::new();
        let mut cells = Vec::new();
        for (group, count) in GROUPS {
            let of_group = after.iter().filter(|(name, _)| name.starts_with(group));
            let mut counts = [0; 3];
            for (name, (uid, bytes)) in of_group {
                match before.get(name) {
                    None => counts[0] += 1,
                    Some((old, _)) if old != uid => counts[1] += 1,
                    Some((_, old)) if old != bytes => counts[2] += 1,
                    Some(_) => {}
                }
            }
            let [new, recreated, changed] = counts;
            cells.push(match (new, recreated, changed) {
                (0, 0, 0) => format!("0 of {}", count * NAMESPACES),
                (new, 0, 0) => format!("{new} new"),
                (0, 0, changed) => format!("{changed} changed"),
                _ => format!("{new} new, {recreated} recreated, {changed} changed"),
            });
            found.insert(group, counts);
        }
        let seconds = self.began.elapsed().as_secs();
        let memory = controller.process().own_memory()? >> 20;
        let cells = cells.join(" | ");
        self.table
            .push(format!("| {step} | {cells} | {seconds} s | {memory} MiB |"));
        Ok(found)
    }

    async fn count_revisions(&self) -> Result<usize> {
        Ok(self.declared.revisions().items().await?.len())
    }

    /// Waits until all queued TrainJobs that need the plugin have the stamp of a version.
    async fn until_stamped(&self, version: &str) -> Result<()> {
        let is_stamped = |set: &Value| {
            let name = set["metadata"]["name"].as_str().unwrap_or_default();
            !name.starts_with("queued") || set["metadata"]["annotations"][STAMP] == version
        };
        let wanted = GROUPS.iter().map(|(_, count)| count).sum::<usize>();
        for namespace in &self.namespaces {
            let api = namespace.api(&namespace.job_sets);
            api.until_all("they have the stamp", |all| {
                all.len() >= wanted && all.iter().all(is_stamped)
            })
            .await?;
        }
        Ok(())
    }
}

fn names(group: &str) -> Vec<String> {
    let found = GROUPS.iter().find(|(name, _)| *name == group);
    let count = found.map_or(0, |(_, count)| *count);
    (0..count)
        .map(|number| format!("{group}-{number}"))
        .collect()
}

/// Nothing of any JobSet has changed.
fn ensure_unchanged(row: &BTreeMap<&str, [usize; 3]>) -> Result<()> {
    ensure!(row.values().all(|counts| *counts == [0, 0, 0]), "{row:?}");
    Ok(())
}

/// The references of what is pushed.
struct Pushed {
    old: String,
    new: String,
    clash: String,
    forged: String,
    /// A plugin with the name of a built-in one, in an older version, and a newer one.
    torch: [String; 2],
}

impl Pushed {
    fn to(site: &Site) -> Result<Self> {
        let more = [STAMP, "example.com/more"];
        let one = site.build("1.0.0", &[STAMP])?;
        let two = site.build("2.0.0", &more)?;
        let torch = site.build("99.0.0", &["example.com/torch"])?;
        let signed =
            |component: &[u8], name: &str, version: &str, annotations: &[&str], key: &str| {
                let manifest = manifest(name, Some(version), annotations);
                let component = with_manifest(component, &manifest.to_string())?;
                site.push(name, version, &component, key)
            };
        Ok(Self {
            old: site.push("stamp", "1.0.0", &one, "acme")?,
            new: site.push("stamp", "2.0.0", &two, "acme")?,
            clash: signed(&one, "clash", "1.0.0", &[STAMP], "acme")?,
            forged: signed(&two, "stamp", "3.0.0", &more, "mallory")?,
            torch: [
                signed(&torch, "torch", "0.0.1", &["example.com/torch"], "acme")?,
                signed(&torch, "torch", "99.0.0", &["example.com/torch"], "acme")?,
            ],
        })
    }
}

/// What needs the plugin waits for it, and nothing else does.
async fn installation(
    world: &mut World<'_>,
    controller: &Trainyard,
    pushed: &Pushed,
) -> Result<()> {
    world.create_train_jobs().await?;
    controller.until_idle().await?;
    let row = world
        .row("no PolicyPlugin", &Seen::new(), controller)
        .await?;
    ensure!(
        row["plain"] == [60, 0, 0] && row["queued"] == [0, 0, 0],
        "{row:?}"
    );
    let before = world.seen().await?;
    world.declared.declare("stamp", &pushed.old).await?;
    world.declared.stage(1, "Running").await?;
    world.until_stamped("1.0.0").await?;
    world.suspend().await?;
    controller.until_idle().await?;
    let row = world.row("install 1.0.0", &before, controller).await?;
    ensure!(
        row["plain"] == [0, 0, 0] && row["queued"] == [120, 0, 0],
        "{row:?}"
    );
    ensure!(
        row["runs"] == [12, 0, 0] && row["suspended"] == [8, 0, 0],
        "{row:?}"
    );
    world
        .declared
        .condition("stamp", "Verified", "True", "Signed")
        .await?;
    Ok(())
}

/// An upgrade with a further claim reaches queued TrainJobs alone.
async fn upgrade(
    world: &mut World<'_>,
    controller: &Trainyard,
    site: &Site,
    pushed: &Pushed,
) -> Result<()> {
    let before = world.seen().await?;
    world.declared.declare("stamp", &pushed.new).await?;
    world.declared.stage(2, "Share").await?;
    controller.until_idle().await?;
    world
        .row("upgrade to 2.0.0, in a share of 50 %", &before, controller)
        .await?;
    world.declared.stage(2, "Running").await?;
    world.until_stamped("2.0.0").await?;
    controller.until_idle().await?;
    let row = world
        .row("upgrade to 2.0.0, everywhere", &before, controller)
        .await?;
    for group in ["plain", "runs", "suspended"] {
        ensure!(row[group] == [0, 0, 0], "{row:?}");
    }
    ensure!(row["queued"] == [0, 0, 120], "{row:?}");
    let namespace = world.namespaces.first().context("no namespace")?;
    let mut why = Command::new(Trainyard::program()?);
    why.args(["why", "trainjob/queued-0", "--namespace", &namespace.name]);
    let output = why
        .arg("--kubeconfig")
        .arg(world.cluster.plane().kubeconfig())
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(
        text.contains("\nPlugins of rev-2-")
            && text.contains("\n  stamp@")
            && text.contains(", version 2.0.0, signed by acme\n"),
        "{text}"
    );
    // What the command line makes of the same object is what runs.
    let file = site.folder.join("stamp.yaml");
    fs::write(&file, policy("stamp", &pushed.new).to_string())?;
    let mut plan = Command::new(Trainyard::program()?);
    plan.args(["plan", "--output=json", "--policy"]).arg(&file);
    plan.arg("--signers").arg(site.configuration("acme")?);
    plan.env("DOCKER_CONFIG", site.folder.join(".docker"));
    plan.arg("--plugin-store")
        .arg(site.folder.join("store-of-ci"));
    let output = plan.output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let plan: Value = serde_json::from_slice(&output.stdout)?;
    let api = world.declared.policies();
    let object = api.get("stamp").await?.accepted()?;
    ensure!(
        object["status"]["plan"] == plan[0]["digest"],
        "{object:#} {}",
        plan[0]["digest"]
    );
    Ok(())
}

/// What is refused changes nothing, and says why.
async fn refusals(world: &mut World<'_>, controller: &Trainyard, pushed: &Pushed) -> Result<()> {
    let before = world.seen().await?;
    let plugins = world.declared.policies();
    world.declared.declare("clash", &pushed.clash).await?;
    let message = world
        .declared
        .condition("clash", "Conflicting", "True", "Conflict")
        .await?;
    ensure!(
        message.contains("both write `annotations[example.com/stamp]`"),
        "{message}"
    );
    world
        .declared
        .condition("stamp", "Conflicting", "True", "Conflict")
        .await?;
    controller.until_idle().await?;
    plugins.delete("clash").await?.accepted()?;
    world
        .declared
        .condition("stamp", "Conflicting", "False", "")
        .await?;
    let row = world.row("a conflict", &before, controller).await?;
    ensure_unchanged(&row)?;
    world.declared.declare("stamp", &pushed.forged).await?;
    let message = world
        .declared
        .condition("stamp", "Verified", "False", "NoSignatureCounts")
        .await?;
    ensure!(
        message.contains("is signed with none of the keys"),
        "{message}"
    );
    let row = world
        .row("a signature of another key", &before, controller)
        .await?;
    ensure_unchanged(&row)?;
    // Not even the name of the registry is resolved.
    let elsewhere = pushed.new.replacen("127.0.0.1", "registry.invalid", 1);
    world.declared.declare("stamp", &elsewhere).await?;
    let message = world
        .declared
        .condition("stamp", "Pulled", "False", "RepositoryNotAllowed")
        .await?;
    ensure!(
        message.contains("nothing was requested from it"),
        "{message}"
    );
    world.declared.declare("stamp", &pushed.new).await?;
    ensure!(world.count_revisions().await? == 2);
    Ok(())
}

/// An older plugin with a built-in one's name is not used, and changes nothing.
async fn built_in_is_newer(
    world: &mut World<'_>,
    controller: &Trainyard,
    pushed: &Pushed,
) -> Result<()> {
    let before = world.seen().await?;
    world.declared.declare("torch", &pushed.torch[0]).await?;
    world.declared.stage(3, "Running").await?;
    let message = world
        .declared
        .condition("torch", "Loaded", "False", "BuiltInIsNewer")
        .await?;
    ensure!(
        message.contains("version 0.0.1 is not newer than"),
        "{message}"
    );
    world
        .declared
        .condition("torch", "Active", "False", "BuiltInIsNewer")
        .await?;
    controller.until_idle().await?;
    let row = world
        .row(
            "an older plugin with a built-in one's name",
            &before,
            controller,
        )
        .await?;
    ensure_unchanged(&row)
}

/// A signed newer plugin replaces a built-in one, and without its PolicyPlugin, the built-in one is back.
async fn replacement(world: &mut World<'_>, controller: &Trainyard, pushed: &Pushed) -> Result<()> {
    let before = world.seen().await?;
    world.declared.declare("torch", &pushed.torch[1]).await?;
    world.declared.stage(4, "Running").await?;
    world
        .declared
        .condition("torch", "Active", "True", "Running")
        .await?;
    controller.until_idle().await?;
    let row = world
        .row("torch replaced by a signed 99.0.0", &before, controller)
        .await?;
    ensure!(
        row["runs"] == [0, 0, 0] && row["suspended"] == [0, 0, 0],
        "{row:?}"
    );
    // Their pods' env vars differ, which JobSet does not let change.
    let recreated = |row: &BTreeMap<&str, [usize; 3]>| {
        row["queued"] == [0, 120, 0] && row["plain"] == [0, 60, 0]
    };
    ensure!(recreated(&row), "{row:?}");
    let plugins = world.declared.policies();
    plugins.delete("torch").await?.accepted()?;
    world.declared.stage(5, "Running").await?;
    controller.until_idle().await?;
    let row = world
        .row("torch is the built-in one again", &before, controller)
        .await?;
    ensure!(recreated(&row), "{row:?}");
    // Their specs are what they were.
    for (name, (_, bytes)) in world.seen().await? {
        let spec = |bytes: &str| {
            let all = serde_json::from_str::<Value>(bytes);
            all.map(|all| all[2].clone())
        };
        let old = before.get(&name).context("a JobSet is new")?;
        ensure!(spec(&bytes)? == spec(&old.1)?, "{name}: {} {bytes}", old.1);
    }
    Ok(())
}

/// A person rolls a change back while it is in a share.
async fn way_back(world: &mut World<'_>, controller: &Trainyard, pushed: &Pushed) -> Result<()> {
    let before = world.seen().await?;
    world.declared.declare("stamp", &pushed.old).await?;
    let name = world.declared.stage(6, "Share").await?;
    controller.until_idle().await?;
    world
        .row("back to 1.0.0, in a share of 50 %", &before, controller)
        .await?;
    let patch = json!({"metadata": {"annotations": {"trainyard.dev/roll-back": ""}}});
    let revisions = world.declared.revisions();
    let merged = revisions
        .merge(&name, &patch, &Write::by("operator"))
        .await?;
    merged.accepted()?;
    world.declared.stage(6, "RolledBack").await?;
    world.until_stamped("2.0.0").await?;
    controller.until_idle().await?;
    let row = world
        .row("rolled back by a person", &before, controller)
        .await?;
    ensure_unchanged(&row)?;
    world.declared.declare("stamp", &pushed.new).await
}

/// Controllers that start while the registry is down: with what was kept, without it, and with it but without the key that signed it.
async fn outage(world: &mut World<'_>, account: &Path, site: &Site) -> Result<()> {
    site.registry.stop()?;
    let before = world.seen().await?;
    let plane = world.cluster.plane();
    let controller = Trainyard::start(plane, account, site.arguments("acme", "store")?).await?;
    let namespace = world.namespaces.first().context("no namespace")?;
    let spec = json!({"runtimeRef": {"name": "stamped"}, "suspend": true});
    namespace.create("late", &spec).await?;
    let has_stamp = |set: &Value| set["metadata"]["annotations"][STAMP] == "2.0.0";
    let job_sets = namespace.api(&namespace.job_sets);
    job_sets
        .until("late", "it has the stamp", has_stamp)
        .await?;
    controller.until_idle().await?;
    let row = world
        .row(
            "start with the store, without the registry",
            &before,
            &controller,
        )
        .await?;
    ensure_unchanged(&row)?;
    controller.kill()?;
    let empty = site.arguments("acme", "empty")?;
    let controller = Trainyard::start_unready(plane, account, empty)?;
    eventually("the controller says what is missing", async || {
        controller.process().still_runs()?;
        let Ok((_, text)) = controller.readiness().await else {
            return Ok(None);
        };
        Ok((text.contains("plugin stamp") && text.contains("127.0.0.1")).then_some(()))
    })
    .await?;
    let row = world
        .row(
            "start with an empty store, without the registry",
            &before,
            &controller,
        )
        .await?;
    ensure_unchanged(&row)?;
    controller.kill()?;
    let other = site.arguments("mallory", "store")?;
    let controller = Trainyard::start(plane, account, other).await?;
    controller.until_idle().await?;
    let row = world
        .row("start without the key that signed it", &before, &controller)
        .await?;
    ensure_unchanged(&row)?;
    let revisions = world.declared.revisions().items().await?;
    let problems = revisions
        .iter()
        .flat_map(|it| it["status"]["replicas"].as_array().into_iter().flatten());
    let problems: Vec<_> = problems.filter_map(|it| it["problem"].as_str()).collect();
    ensure!(
        problems
            .iter()
            .any(|it| it.contains("plugin stamp is skipped")
                && it.contains("is signed with none of the keys")),
        "{problems:?}"
    );
    controller.kill()?;
    Ok(())
}

async fn changes_reach_queued_train_jobs_alone(cluster: &Cluster) -> Result<()> {
    let mut plain = common::runtime();
    plain["metadata"]["name"] = json!("plain");
    let mut stamped = common::runtime();
    stamped["metadata"]["name"] = json!("stamped");
    stamped["spec"]["plugins"] = json!([{"name": "stamp"}]);
    common::create_runtimes(cluster.plane(), &[plain, stamped]).await?;
    let account = trainyard_cluster::deploy(cluster.plane()).await?;
    let site = Site::start(Path::new(env!("CARGO_TARGET_TMPDIR")))?;
    let pushed = Pushed::to(&site)?;
    let mut world = World::new(cluster).await?;
    let arguments = site.arguments("acme", "store")?;
    let controller = Trainyard::start(cluster.plane(), &account, arguments).await?;
    installation(&mut world, &controller, &pushed).await?;
    upgrade(&mut world, &controller, &site, &pushed).await?;
    refusals(&mut world, &controller, &pushed).await?;
    built_in_is_newer(&mut world, &controller, &pushed).await?;
    replacement(&mut world, &controller, &pushed).await?;
    way_back(&mut world, &controller, &pushed).await?;
    controller.kill()?;
    outage(&mut world, &account, &site).await?;
    let heads = "| step | runs | suspended | queued | plain | after | memory |\n|---|---|---|---|---|---|---|";
    let table = format!("{heads}\n{}\n", world.table.join("\n"));
    fs::write(
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugins-of-200-train-jobs.md"),
        &table,
    )?;
    println!("\n{table}");
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Cluster>> {
    tests![changes_reach_queued_train_jobs_alone]
}
