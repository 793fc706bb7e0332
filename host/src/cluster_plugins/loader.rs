//! Loading sets of plugins with the sandbox of the process.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use trainyard_api::{FieldPath, Location, ObjectId};
use trainyard_config::{
    RenderingSection,
    policy_plugin::{Origin, POLICY_PLUGIN, PolicyPlugin, ResolvedPlugin},
};
use trainyard_controller::{
    generation::Generation,
    metrics::Metrics,
    plugins::{
        FetchedPlugin, LoadedPlugins, Mode, PluginCondition, PluginLoader, Problem, Refusal,
        SourceError,
    },
    settings::FeatureGates,
};
use trainyard_model::{
    facts::HostFacts,
    manifest::ActiveWhen,
    plugin::Plugin,
    plugin_info::{Exemptions, PluginError},
};
use trainyard_render::{Declared, Renderer, SkippedPlugin};
use trainyard_sandbox::Loader;

use crate::{
    built_ins::{self, BUILT_INS},
    load::{CodeLoading, LenientLoad, Loading, StrictRefusal},
    policy::{PluginContent, PluginFile, Policy, Warning},
    report::ErrorList,
    sources::{Content, LoadedAs, loaded_as, problem},
};

/// What all loads of a process share.
pub(crate) struct Shared {
    /// The sandbox.
    pub(crate) loader: Loader,
    /// The settings for all TrainJobs.
    pub(crate) rendering: RenderingSection,
    /// The feature gates.
    pub(crate) gates: FeatureGates,
    /// The URL of the status server.
    pub(crate) status_url: Option<String>,
    /// The metrics of plugin calls.
    pub(crate) metrics: Arc<Metrics>,
}

impl Shared {
    /// Returns the settings of these PolicyPlugins, and of the process.
    pub(crate) fn policy(&self, plugins: Vec<PolicyPlugin>) -> Result<Policy, ErrorList> {
        let policy = Policy::new(plugins, vec![self.rendering.clone()])?;
        Ok(policy.for_process(self.gates.clone(), self.status_url.clone()))
    }

    /// Measures a plugin, and pauses it if it keeps exhausting its limits.
    pub(crate) fn wrap(&self, plugin: Arc<dyn Plugin>) -> Arc<dyn Plugin> {
        let guarded = trainyard_controller::guarded(plugin, &self.metrics);
        trainyard_controller::measured(guarded, &self.metrics)
    }
}

/// What a set of plugins is loaded from.
pub(super) struct LoaderParts {
    files: Vec<PluginFile>,
    policies: Vec<PolicyPlugin>,
    missing: Vec<SkippedPlugin>,
    /// The built-in plugins that are not loaded, because a plugin of their name is skipped.
    without: BTreeSet<String>,
    refusals: Vec<Refusal>,
}

/// Loads sets of plugins, by the loader of the process.
pub(crate) struct ProcessLoader {
    pub(super) shared: Arc<Shared>,
    pub(super) content: Arc<Content>,
}

impl PluginLoader for ProcessLoader {
    fn load(
        &self,
        set: &[FetchedPlugin],
        mode: Mode,
        reuse: &[Arc<Generation>],
        host: &HostFacts,
    ) -> Result<LoadedPlugins, Vec<Refusal>> {
        let mut parts = self.parts(set, mode);
        if !parts.refusals.is_empty() {
            return Err(parts.refusals);
        }
        let policies = std::mem::take(&mut parts.policies);
        let policy = self.shared.policy(policies).map_err(|errors| {
            let of_all = set.iter().map(|it| it.plugin.name.clone()).collect();
            vec![refusal(
                of_all,
                problem(PluginCondition::Loaded, "Invalid", all(&errors)),
            )]
        })?;
        let wrap = |plugin| self.shared.wrap(plugin);
        let loaded = reuse.iter().flat_map(|generation| {
            let renderer = generation.renderer();
            let names = renderer.generation().plugins().map(|it| &*it.id.name);
            names
                .filter_map(|name| renderer.plugin(name).cloned())
                .collect::<Vec<_>>()
        });
        let loading = Loading::new(&self.shared.loader, CodeLoading::Eager)
            .wrapping(&wrap)
            .reusing(loaded)
            .without(parts.without);
        let (renderer, warnings) = match mode {
            Mode::Strict => StrictRefusal::load(&loading, &parts.files, &policy, parts.missing)
                .map_err(|refusals| refusals.into_iter().map(of_strict).collect::<Vec<_>>())?,
            Mode::Lenient => lenient(&loading, &parts.files, &policy, parts.missing)?,
        };
        Ok(LoadedPlugins {
            renderer: renderer.with_host_facts(host.clone()),
            warnings: by_plugin(warnings),
        })
    }

    fn built_in_instead(&self, plugin: &ResolvedPlugin) -> Option<String> {
        let version = match &plugin.origin {
            Origin::Oci(_) | Origin::File(_) => plugin.version.as_deref(),
            Origin::BuiltIn(_) => return None,
        };
        // Whether it is signed does not matter for one that is not used.
        match loaded_as(&plugin.name, version, true) {
            Ok(LoadedAs::BuiltIn(why)) => Some(why),
            _ => None,
        }
    }

    fn always_built_in(&self) -> BTreeSet<String> {
        let is_on = |name: &str| match built_ins::feature_gate(name) {
            Ok(Some(gate)) => self.shared.gates.is_on(gate),
            _ => true,
        };
        let is_always = |name: &&str| {
            let manifest = built_ins::manifest(name);
            manifest.is_some_and(|it| it.active_when == ActiveWhen::Always) && is_on(name)
        };
        let names = BUILT_INS.iter().map(|it| it.name());
        names.filter(is_always).map(str::to_owned).collect()
    }
}

impl ProcessLoader {
    /// Sorts the plugins of a set.
    fn parts(&self, set: &[FetchedPlugin], mode: Mode) -> LoaderParts {
        let mut parts = LoaderParts {
            files: Vec::new(),
            policies: Vec::new(),
            missing: Vec::new(),
            without: BTreeSet::new(),
            refusals: Vec::new(),
        };
        for FetchedPlugin { plugin, content } in set {
            let outcome = match (&plugin.origin, content) {
                (Origin::BuiltIn(_), _) => self.built_in(plugin),
                // Nothing is wrong with what is not loaded.
                _ if plugin.settings.disabled => Err(disabled(plugin)),
                (_, Ok(verified)) => self.file(plugin, verified.signer.is_some()),
                (_, Err(error)) => Err(of_source(error)),
            };
            match outcome {
                Ok(file) => {
                    let mut policy = policy(plugin);
                    if file.is_none() && !matches!(plugin.origin, Origin::BuiltIn(_)) {
                        // It is that of the plugin which is not used.
                        policy.spec.digest = None;
                    }
                    parts.policies.push(policy);
                    parts.files.extend(file);
                }
                Err(problem) if mode == Mode::Strict && !plugin.settings.disabled => {
                    parts
                        .refusals
                        .push(refusal(vec![plugin.name.clone()], problem));
                }
                Err(problem) => {
                    // The TrainJobs that need it wait, even if a built-in plugin has its name.
                    parts.without.insert(plugin.name.clone());
                    parts.missing.push(missing(plugin, &problem));
                }
            }
        }
        parts
    }

    fn built_in(&self, plugin: &ResolvedPlugin) -> Result<Option<PluginFile>, Problem> {
        match built_ins::manifest(&plugin.name) {
            Some(_) => Ok(None),
            None => {
                let names: Vec<_> = BUILT_INS.iter().map(|it| it.name()).collect();
                let message = format!(
                    "no plugin `{}` is built in, only {}; set `source`, or correct the name",
                    plugin.name,
                    names.join(", ")
                );
                Err(problem(PluginCondition::Pulled, "NotBuiltIn", message))
            }
        }
    }

    /// Returns the file of a plugin; `None` if the built-in plugin is used in its place.
    fn file(
        &self,
        plugin: &ResolvedPlugin,
        is_signed: bool,
    ) -> Result<Option<PluginFile>, Problem> {
        let replaced = match loaded_as(&plugin.name, plugin.version.as_deref(), is_signed)? {
            LoadedAs::Added => None,
            LoadedAs::Replaces(shipped) => Some(*shipped),
            LoadedAs::BuiltIn(message) => {
                tracing::warn!(plugin = plugin.name, message, "the built-in plugin is used");
                return Ok(None);
            }
        };
        let bytes = self.content.of(plugin)?;
        Ok(Some(PluginFile {
            content: PluginContent::Pulled {
                reference: reference(plugin),
                component: bytes.into(),
            },
            wanted: Some((plugin.name.clone(), location(plugin))),
            replaced,
        }))
    }
}

fn lenient(
    loading: &Loading<'_>,
    files: &[PluginFile],
    policy: &Policy,
    missing: Vec<SkippedPlugin>,
) -> Result<(Renderer, Vec<Warning>), Vec<Refusal>> {
    let loaded = LenientLoad::load(loading, files, policy, missing).map_err(|errors| {
        let problem = problem(PluginCondition::Conflicting, "Conflict", all(&errors));
        vec![refusal(Vec::new(), problem)]
    })?;
    for (file, why) in &loaded.refused {
        tracing::error!(file, why, "plugin skipped");
    }
    Ok((loaded.renderer, loaded.warnings))
}

/// Returns the warnings of each plugin, for readers who know its PolicyPlugin.
fn by_plugin(warnings: Vec<Warning>) -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::<_, Vec<_>>::new();
    for (plugin, message) in warnings.iter().map(Warning::in_object) {
        all.entry(plugin).or_default().push(message);
    }
    all
}

/// Returns the PolicyPlugin that a plugin of a revision was made from.
fn policy(plugin: &ResolvedPlugin) -> PolicyPlugin {
    PolicyPlugin {
        name: plugin.name.clone(),
        generation: plugin.generation,
        spec: plugin.settings.clone(),
        location: location(plugin),
        name_field: FieldPath::of(["metadata", "name"]),
        spec_field: FieldPath::of(["spec"]),
    }
}

fn location(plugin: &ResolvedPlugin) -> Location {
    Location {
        object: Some(ObjectId {
            kind: POLICY_PLUGIN.to_owned(),
            namespace: None,
            name: plugin.name.clone(),
        }),
        ..Location::default()
    }
}

/// Names the content of a plugin in errors.
fn reference(plugin: &ResolvedPlugin) -> String {
    match &plugin.origin {
        Origin::Oci(oci) => format!("{}@{}", oci.repository, oci.manifest_digest),
        Origin::File(file) => file.name.clone(),
        Origin::BuiltIn(_) => plugin.name.clone(),
    }
}

fn missing(plugin: &ResolvedPlugin, problem: &Problem) -> SkippedPlugin {
    let active_when = plugin.active_when.as_ref();
    let active_when = active_when.and_then(|text| text.parse().ok());
    let is_disabled = plugin.settings.disabled;
    SkippedPlugin {
        declared: active_when.map(|active_when| Declared {
            name: plugin.name.clone(),
            active_when,
            exemptions: Exemptions {
                disabled_for: plugin.settings.disabled_for.clone(),
                enabled_for: plugin.settings.enabled_for.clone(),
                train_jobs_may_disable: plugin.settings.train_jobs_may_disable,
            },
        }),
        why: match is_disabled {
            true => disabled(plugin).message,
            false => format!("plugin {}: {}", plugin.name, problem.message),
        },
        is_disabled,
    }
}

fn disabled(plugin: &ResolvedPlugin) -> Problem {
    let message = PluginError::Disabled(plugin.name.clone()).to_string();
    problem(PluginCondition::Loaded, "Disabled", message)
}

fn of_source(error: &SourceError) -> Problem {
    match error {
        SourceError::Refused(problem) => problem.clone(),
        SourceError::Retry { message, .. } => {
            problem(PluginCondition::Pulled, "NotAvailable", message.clone())
        }
    }
}

fn of_strict(refused: StrictRefusal) -> Refusal {
    let condition = match refused.is_conflict {
        true => PluginCondition::Conflicting,
        false => PluginCondition::Loaded,
    };
    refusal(
        refused.plugins,
        problem(condition, refused.reason, refused.message),
    )
}

const fn refusal(plugins: Vec<String>, problem: Problem) -> Refusal {
    Refusal { plugins, problem }
}

/// Returns all errors as one text.
fn all(errors: &ErrorList) -> String {
    errors.lines().collect::<Vec<_>>().join("; ")
}
