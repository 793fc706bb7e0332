//! Plugins that the cluster declares: a registry with plugins that are functions, and controllers that use them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use serde_json::{Value, json};
use trainyard_config::policy_plugin::{OciOrigin, Origin, ResolvedPlugin, Source};
use trainyard_controller::{
    generation::Generation,
    guarded, measured,
    metrics::Metrics,
    plugins::{
        ClusterPlugins, FetchedPlugin, LoadedPlugins, Mode, Pinned, PluginCondition, PluginLoader,
        PluginSource, Problem, Refusal, SourceError, Verified,
    },
    serve::BindAddress,
    settings::{LeaderElection, PluginSettings, PluginsSource, Settings},
};
use trainyard_model::{
    call::Call,
    claims::ClaimPath,
    contract::VERSION,
    facts::HostFacts,
    manifest::Manifest,
    names::sha256_digest,
    plugin::{CallFailure, Phase, Plugin},
    plugin_info::{PluginInfo, Settings as OfPlugin},
};
use trainyard_render::{ClusterFacts, Declared, Renderer, SkippedPlugin};

use super::{
    clock::TestClock,
    cluster::Cluster,
    controller::{Controller, Replica, job, runtime},
    function_plugin::FunctionPlugin,
};

/// A namespace whose place is before 50 %, and one behind.
pub(crate) const EARLY: &str = "default";
pub(crate) const LATE: &str = "ml";

/// The annotation that the plugins of the registry set.
pub(crate) const STAMP: &str = "example.com/stamp";

type Run = Arc<dyn Fn(&mut Call) -> Result<(), CallFailure> + Send + Sync>;

/// A plugin in the registry.
#[derive(Clone)]
pub(crate) struct Artifact {
    manifest: Value,
    run: Run,
}

impl Artifact {
    /// A plugin that sets an annotation of the JobSet to its version.
    pub(crate) fn stamp(name: &str, version: &str) -> Self {
        Self::new(name, version, "plugins", &[STAMP])
    }

    /// A plugin that sets annotations to its version.
    pub(crate) fn new(name: &str, version: &str, active_when: &str, annotations: &[&str]) -> Self {
        let writes: Vec<_> = annotations
            .iter()
            .map(|it| format!("annotations[{it}]"))
            .collect();
        let (version, annotations) = (
            version.to_owned(),
            annotations.iter().map(|it| (*it).to_owned()),
        );
        let annotations: Vec<_> = annotations.collect();
        let manifest = json!({
            "name": name, "version": version, "contract": VERSION, "activeWhen": active_when, "phases": ["transform"],
            "claims": {"writes": writes},
        });
        let run = move |call: &mut Call| {
            let info = call.context_info(Call::CONTEXT)?;
            for name in &annotations {
                call.info_set_annotation(info, name, &version)?;
            }
            Ok(())
        };
        Self {
            manifest,
            run: Arc::new(run),
        }
    }

    /// The second version of the plugin `stamp`, which claims an annotation more.
    pub(crate) fn second() -> Self {
        Self::new("stamp", "2.0.0", "plugins", &[STAMP, "example.com/more"])
    }

    /// The same, which also looks up objects.
    pub(crate) fn looks_up(mut self, lookup: &str) -> Self {
        self.manifest["claims"]["reads"] = json!([lookup]);
        self
    }

    /// The same, with another function.
    pub(crate) fn runs(
        self,
        run: impl Fn(&mut Call) -> Result<(), CallFailure> + Send + Sync + 'static,
    ) -> Self {
        Self {
            run: Arc::new(run),
            ..self
        }
    }

    fn digest(&self) -> String {
        sha256_digest(self.manifest.to_string())
    }

    fn text(&self, field: &str) -> String {
        self.manifest[field].as_str().unwrap().to_owned()
    }

    fn plugin(&self, settings: OfPlugin) -> Arc<dyn Plugin> {
        let manifest = Manifest::parse(self.manifest.to_string().as_bytes()).unwrap();
        let plugin = PluginInfo::new(manifest, &self.digest(), settings).unwrap();
        let run = self.run.clone();
        let function = move |_: Phase, call: &mut Call| run(call);
        Arc::new(FunctionPlugin::new(Arc::new(plugin), function))
    }
}

/// A registry. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Registry(Arc<Content>);

#[derive(Default)]
struct Content {
    artifacts: Mutex<BTreeMap<String, Artifact>>,
    tags: Mutex<BTreeMap<String, String>>,
    is_down: AtomicBool,
    /// What is wrong with the content of a digest.
    refused: Mutex<BTreeMap<String, Problem>>,
    /// What the loader cannot load.
    broken: Mutex<BTreeSet<String>>,
    /// The plugins whose feature gate is off.
    gated: Mutex<BTreeSet<String>>,
    pins: AtomicUsize,
    loads: AtomicUsize,
    /// The built-in plugin of this program, which is shipped with it.
    built_in: Mutex<Option<Artifact>>,
    /// Those of the controller that was started last.
    metrics: Mutex<Option<Arc<Metrics>>>,
}

impl Registry {
    /// Pushes a plugin, and returns its reference.
    pub(crate) fn push(&self, artifact: &Artifact) -> String {
        let digest = artifact.digest();
        let reference = format!("registry.example/{}@{digest}", artifact.text("name"));
        self.0
            .artifacts
            .lock()
            .unwrap()
            .insert(digest, artifact.clone());
        reference
    }

    /// Deletes a plugin.
    pub(crate) fn lose(&self, artifact: &Artifact) {
        self.0.artifacts.lock().unwrap().remove(&artifact.digest());
    }

    /// Pushes a plugin with a tag.
    pub(crate) fn tag(&self, reference: &str, artifact: &Artifact) {
        self.push(artifact);
        let mut tags = self.0.tags.lock().unwrap();
        tags.insert(reference.to_owned(), artifact.digest());
    }

    pub(crate) fn set_down(&self, is_down: bool) {
        self.0.is_down.store(is_down, Ordering::SeqCst);
    }

    /// Refuses a plugin, such as for its signature.
    pub(crate) fn refuse(&self, artifact: &Artifact, condition: PluginCondition, reason: &str) {
        let problem = Problem {
            condition,
            reason: reason.to_owned(),
            message: format!("{reason} of {}", artifact.text("version")),
        };
        self.0
            .refused
            .lock()
            .unwrap()
            .insert(artifact.digest(), problem);
    }

    /// Does not refuse a plugin any more, such as because it was signed.
    pub(crate) fn accept(&self, artifact: &Artifact) {
        self.0.refused.lock().unwrap().remove(&artifact.digest());
    }

    /// Lets the loader refuse a plugin.
    pub(crate) fn break_it(&self, artifact: &Artifact) {
        self.0.broken.lock().unwrap().insert(artifact.digest());
    }

    /// Turns the feature gate of a plugin off.
    pub(crate) fn turn_off(&self, artifact: &Artifact) {
        self.0.gated.lock().unwrap().insert(artifact.digest());
    }

    /// Ships a plugin with the program, as another image does.
    pub(crate) fn ship(&self, artifact: &Artifact) {
        *self.0.built_in.lock().unwrap() = Some(artifact.clone());
    }

    /// Loads the built-in plugin.
    fn built_in(&self) -> Option<Arc<dyn Plugin>> {
        let built_in = self.0.built_in.lock().unwrap();
        let built_in = built_in.as_ref();
        built_in.map(|it| it.plugin(OfPlugin::built_in()))
    }

    /// Returns the built-in plugin of this name.
    fn shipped(&self, name: &str) -> Option<Artifact> {
        let built_in = self.0.built_in.lock().unwrap();
        built_in.clone().filter(|it| it.text("name") == name)
    }

    /// Lets the loader load it again.
    pub(crate) fn mend(&self, artifact: &Artifact) {
        self.0.broken.lock().unwrap().remove(&artifact.digest());
    }

    pub(crate) fn pins(&self) -> usize {
        self.0.pins.load(Ordering::SeqCst)
    }

    pub(crate) fn loads(&self) -> usize {
        self.0.loads.load(Ordering::SeqCst)
    }

    fn metrics(&self) -> Arc<Metrics> {
        self.0.metrics.lock().unwrap().clone().unwrap()
    }

    pub(crate) fn plugins(&self) -> ClusterPlugins {
        ClusterPlugins {
            source: Arc::new(self.clone()),
            loader: Arc::new(self.clone()),
        }
    }

    fn answer(&self, digest: &str) -> Result<Artifact, SourceError> {
        if self.0.is_down.load(Ordering::SeqCst) {
            return Err(SourceError::Retry {
                after: None,
                message: "registry.example does not answer".to_owned(),
            });
        }
        if let Some(problem) = self.0.refused.lock().unwrap().get(digest) {
            return Err(SourceError::Refused(problem.clone()));
        }
        let artifacts = self.0.artifacts.lock().unwrap();
        artifacts.get(digest).cloned().ok_or_else(|| {
            SourceError::Refused(Problem {
                condition: PluginCondition::Pulled,
                reason: "NotFound".to_owned(),
                message: format!("registry.example has no {digest}; push it"),
            })
        })
    }
}

impl PluginSource for Registry {
    fn pin<'a>(
        &'a self,
        _: &'a str,
        source: &'a Source,
    ) -> BoxFuture<'a, Result<Pinned, SourceError>> {
        async move {
            self.0.pins.fetch_add(1, Ordering::SeqCst);
            let Source::Oci(oci) = source else {
                unreachable!("the tests have no files")
            };
            let tagged = self.0.tags.lock().unwrap().get(&oci.reference).cloned();
            let digest = tagged.or_else(|| Some(oci.reference.split_once('@')?.1.to_owned()));
            let artifact = self.answer(&digest.unwrap_or_default())?;
            let repository = oci.reference.split(['@', ':']).next().unwrap();
            Ok(Pinned {
                origin: Origin::Oci(OciOrigin {
                    repository: repository.to_owned(),
                    manifest_digest: artifact.digest(),
                }),
                digest: artifact.digest(),
                version: artifact.text("version"),
                active_when: artifact.text("activeWhen"),
                signer: Some("tests".to_owned()),
            })
        }
        .boxed()
    }

    fn fetch<'a>(
        &'a self,
        plugin: &'a ResolvedPlugin,
    ) -> BoxFuture<'a, Result<Verified, SourceError>> {
        async move {
            self.answer(plugin.digest.as_ref().unwrap())?;
            Ok(Verified {
                signer: Some("tests".to_owned()),
            })
        }
        .boxed()
    }

    fn keep(&self, _: &BTreeSet<String>) {}
}

impl PluginLoader for Registry {
    fn load(
        &self,
        set: &[FetchedPlugin],
        mode: Mode,
        _: &[Arc<Generation>],
        _: &HostFacts,
    ) -> Result<LoadedPlugins, Vec<Refusal>> {
        self.0.loads.fetch_add(1, Ordering::SeqCst);
        let mut warnings = BTreeMap::new();
        let (mut plugins, mut skipped, mut refusals) = (Vec::new(), Vec::new(), Vec::new());
        let is_replaced = |name: &str| {
            let mut named = set.iter().map(|it| &it.plugin).filter(|it| it.name == name);
            named.any(|it| it.digest.is_some() && self.built_in_instead(it).is_none())
        };
        let built_in = self.built_in();
        plugins.extend(built_in.filter(|it| !is_replaced(&it.info().id.name)));
        for FetchedPlugin { plugin, content } in set {
            if self.built_in_instead(plugin).is_some() || plugin.settings.disabled {
                continue;
            }
            let Some(digest) = plugin.digest.clone() else {
                continue;
            };
            let skip = |why: &str, is_disabled| SkippedPlugin {
                declared: Some(Declared {
                    name: plugin.name.clone(),
                    active_when: plugin.active_when.as_ref().unwrap().parse().unwrap(),
                    exemptions: trainyard_model::plugin_info::Exemptions::default(),
                }),
                why: why.to_owned(),
                is_disabled,
            };
            if self.0.gated.lock().unwrap().contains(&digest) {
                skipped.push(skip("the feature gate Tests is off", true));
                continue;
            }
            let artifact = self.0.artifacts.lock().unwrap().get(&digest).cloned();
            let is_broken = self.0.broken.lock().unwrap().contains(&digest);
            match artifact.filter(|_| content.is_ok() && !is_broken) {
                Some(artifact) => {
                    let settings = plugin.settings.settings(OfPlugin::built_in());
                    let metrics = self.metrics();
                    let loaded = artifact.plugin(settings);
                    let unused = unused(loaded.info(), &plugin.settings.grants);
                    warnings.extend(unused.map(|unused| (plugin.name.clone(), unused)));
                    plugins.push(measured(guarded(loaded, &metrics), &metrics));
                }
                None if mode == Mode::Strict => refusals.push(Refusal {
                    plugins: vec![plugin.name.clone()],
                    problem: Problem {
                        condition: PluginCondition::Loaded,
                        reason: "NotAComponent".to_owned(),
                        message: "it is not a component; build it again".to_owned(),
                    },
                }),
                None => {
                    skipped.push(skip(&format!("{} is not available", plugin.name), false));
                }
            }
        }
        if !refusals.is_empty() {
            return Err(refusals);
        }
        let renderer = Renderer::new(plugins, ClusterFacts::default()).map_err(|errors| {
            let refusal = |error: &trainyard_model::plan::PlanError| Refusal {
                plugins: error.plugins().into_iter().map(str::to_owned).collect(),
                problem: Problem {
                    condition: PluginCondition::Conflicting,
                    reason: "Conflict".to_owned(),
                    message: error.to_string(),
                },
            };
            errors.iter().map(refusal).collect::<Vec<_>>()
        })?;
        Ok(LoadedPlugins {
            renderer: renderer.with_skipped(skipped),
            warnings,
        })
    }

    fn built_in_instead(&self, plugin: &ResolvedPlugin) -> Option<String> {
        let shipped = self.shipped(&plugin.name)?.text("version");
        let version = plugin.version.as_ref()?;
        (*version <= shipped).then(|| format!("version {version} is not newer than {shipped}"))
    }

    fn always_built_in(&self) -> BTreeSet<String> {
        let built_in = self.0.built_in.lock().unwrap();
        let always = built_in
            .iter()
            .filter(|it| it.text("activeWhen") == "always");
        always.map(|it| it.text("name")).collect()
    }
}

/// Returns a warning for the grants that a plugin does not claim.
fn unused(plugin: &PluginInfo, grants: &[ClaimPath]) -> Option<Vec<String>> {
    let unused = grants.iter().filter(|grant| !plugin.manifest.uses(grant));
    let unused: Vec<_> = unused
        .map(|grant| format!("`{grant}` has no effect"))
        .collect();
    (!unused.is_empty()).then_some(unused)
}

/// A cluster with a registry and a clock.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) registry: Registry,
    pub(crate) clock: TestClock,
    pub(crate) settings: Settings,
}

impl World {
    pub(crate) fn new() -> Self {
        let settings = Settings {
            metrics_bind_address: BindAddress::Off,
            health_probe_bind_address: BindAddress::Off,
            plugins: PluginSettings {
                source: PluginsSource::Cluster,
                ..PluginSettings::default()
            },
            ..Settings::default()
        };
        Self {
            cluster: Cluster::new(),
            registry: Registry::default(),
            clock: TestClock::new(),
            settings,
        }
    }

    /// A cluster with a runtime that uses a plugin, and a queued TrainJob.
    pub(crate) fn stamped() -> Self {
        let world = Self::new();
        world.cluster.put(runtime("stamped", &["stamp"]));
        world.cluster.put(job(LATE, "queued", "stamped", true));
        world.upgrade(&Artifact::stamp("stamp", "1.0.0"));
        world
    }

    /// The same with a queued TrainJob in both namespaces, where half of the namespaces get a change first.
    pub(crate) fn half() -> Self {
        let mut world = Self::stamped();
        world.settings.plugins.rollout.steps = vec![50];
        world.settings.plugins.rollout.interval = Duration::from_secs(30);
        world.cluster.put(job(EARLY, "queued", "stamped", true));
        world
    }

    /// The same with a controller, which leaves the second version in the share.
    pub(crate) async fn left_in_a_share() -> (Self, Controller) {
        let mut world = Self::half();
        world.settings.plugins.rollout.interval = Duration::from_secs(3_600);
        let controller = world.start("one").await;
        world.until_stamped(LATE, "queued", "1.0.0").await;
        world.upgrade(&Artifact::second());
        world.until_stage(2, "Share").await;
        (world, controller)
    }

    /// Starts a controller, and waits until the first version runs.
    pub(crate) async fn running(&self) -> Controller {
        let controller = self.start("one").await;
        self.until_stamped(LATE, "queued", "1.0.0").await;
        self.until_condition("stamp", "Active", "True", "Running")
            .await;
        controller
    }

    /// Declares a version of the plugin `stamp`.
    pub(crate) fn upgrade(&self, artifact: &Artifact) {
        self.declare("stamp", &self.registry.push(artifact));
    }

    /// Elects leaders, so that several controllers can run.
    pub(crate) fn with_leader_election(mut self) -> Self {
        self.settings.leader_election = LeaderElection {
            leader_elect: true,
            retry_period: Duration::from_millis(100),
            ..LeaderElection::default()
        };
        self
    }

    /// Starts a controller.
    pub(crate) async fn start(&self, name: &'static str) -> Controller {
        let metrics = |queue: &_| {
            let metrics = Arc::new(Metrics::new(queue));
            *self.registry.0.metrics.lock().unwrap() = Some(metrics.clone());
            metrics
        };
        let replica = Replica {
            name,
            clock: Arc::new(self.clock.clone()),
            plugins: Some(self.registry.plugins()),
        };
        let settings = self.settings.clone();
        let shipped = |_: &_| self.registry.built_in().into_iter().collect();
        Controller::start_replica(&self.cluster, replica, settings, metrics, shipped).await
    }

    pub(crate) fn metrics(&self) -> Arc<Metrics> {
        self.registry.metrics()
    }

    /// Waits until a condition holds, while time passes.
    pub(crate) async fn pass(&self, what: &str, holds: impl Fn(&Cluster) -> bool) {
        let passes = |cluster: &Cluster| {
            self.clock.advance(Duration::from_secs(1));
            holds(cluster)
        };
        self.until(what, passes).await;
    }

    /// Waits until a condition holds, in no time.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Cluster) -> bool) {
        let waits = self.cluster.until(what, holds);
        tokio::select! {
            () = waits => {}
            () = tokio::time::sleep(Duration::from_secs(45)) => panic!(
                "still not: {what}\n{:#?}\n{:#?}",
                self.cluster.all("policyplugins"),
                self.cluster.all("pluginrevisions"),
            ),
        }
    }

    /// Declares a plugin by a reference.
    pub(crate) fn declare(&self, name: &str, reference: &str) {
        self.declare_with(name, json!({"source": {"oci": {"reference": reference}}}));
    }

    pub(crate) fn declare_with(&self, name: &str, spec: Value) {
        if self.cluster.get("policyplugins", "", name).is_some() {
            let change = |object: &mut Value| object["spec"] = spec;
            return self.cluster.edit("policyplugins", ("", name), change);
        }
        self.cluster.put(json!({
            "apiVersion": "trainyard.dev/v1alpha1", "kind": "PolicyPlugin", "metadata": {"name": name},
            "spec": spec,
        }));
    }

    /// Returns number, stage and reason of the revisions, the oldest first.
    pub(crate) fn revisions(&self) -> Vec<(u64, String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let revision = |it: &Value| {
            let number = it["spec"]["number"].as_u64().unwrap_or_default();
            (
                number,
                text(&it["status"]["stage"]),
                text(&it["status"]["reason"]),
            )
        };
        let mut all: Vec<_> = self
            .cluster
            .all("pluginrevisions")
            .iter()
            .map(revision)
            .collect();
        all.sort();
        all
    }

    /// Returns the stage of a revision.
    pub(crate) fn stage(&self, number: u64) -> String {
        let all = self.revisions();
        let found = all.into_iter().find(|(of, ..)| *of == number);
        found.map_or_else(String::new, |(_, stage, _)| stage)
    }

    /// Waits until a controller renders with a revision in a share: until then, a TrainJob may start with the running one.
    pub(crate) async fn until_used_in_a_share(&self, number: u64) {
        self.until_stage(number, "Share").await;
        let what = format!("a replica uses revision {number}");
        let is_used = |cluster: &Cluster| {
            let all = cluster.all("pluginrevisions");
            let mut revisions = all.iter();
            let it = revisions.find(|it| it["spec"]["number"] == number);
            it.is_some_and(|it| it["status"]["replicas"][0]["plan"].is_string())
        };
        self.pass(&what, is_used).await;
    }

    /// Waits until a revision is at a stage.
    pub(crate) async fn until_stage(&self, number: u64, stage: &str) {
        let what = format!("revision {number} is at {stage}");
        self.pass(&what, |_| self.stage(number) == stage).await;
    }

    /// Sets an annotation of a revision.
    pub(crate) fn annotate(&self, number: u64, annotation: &str, value: &str) {
        let all = self.cluster.all("pluginrevisions");
        let found = all
            .iter()
            .find(|it| it["spec"]["number"] == number)
            .unwrap();
        let name = found["metadata"]["name"].as_str().unwrap();
        let patch = json!({"metadata": {"annotations": {annotation: value}}});
        self.cluster.merge("pluginrevisions", "", name, &patch);
    }

    /// Returns status, reason and message of a condition of a PolicyPlugin.
    pub(crate) fn condition(&self, name: &str, kind: &str) -> [String; 3] {
        let object = self
            .cluster
            .get("policyplugins", "", name)
            .unwrap_or_default();
        let conditions = object["status"]["conditions"].as_array().cloned();
        let found = conditions
            .into_iter()
            .flatten()
            .find(|it| it["type"] == kind);
        let found = found.unwrap_or_default();
        ["status", "reason", "message"]
            .map(|key| found[key].as_str().unwrap_or_default().to_owned())
    }

    pub(crate) async fn until_condition(&self, name: &str, kind: &str, status: &str, reason: &str) {
        let what = format!("{kind} of {name} is {status} ({reason})");
        let holds = |_: &Cluster| {
            let [is, because, _] = self.condition(name, kind);
            is == status && because == reason
        };
        self.pass(&what, holds).await;
    }

    /// Returns the stamp of a TrainJob's JobSet.
    pub(crate) fn stamp(&self, namespace: &str, name: &str) -> Option<String> {
        let job_set = self.cluster.get("jobsets", namespace, name)?;
        Some(
            job_set["metadata"]["annotations"][STAMP]
                .as_str()?
                .to_owned(),
        )
    }

    pub(crate) async fn until_stamped(&self, namespace: &str, name: &str, version: &str) {
        let what = format!("{namespace}/{name} has the stamp {version}");
        let holds = |_: &Cluster| self.stamp(namespace, name).as_deref() == Some(version);
        self.pass(&what, holds).await;
    }

    /// Returns the reasons of the Events about an object.
    pub(crate) fn events(&self, name: &str) -> BTreeSet<String> {
        let events = self.cluster.all("events");
        let about = events
            .iter()
            .filter(|it| it["involvedObject"]["name"] == name);
        about
            .map(|it| it["reason"].as_str().unwrap().to_owned())
            .collect()
    }
}
