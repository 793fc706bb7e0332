//! What loading plugins returns: those that are loaded, refused and disabled.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use trainyard_api::{Located, Location};
use trainyard_controller::settings::FeatureGate;
use trainyard_model::{
    claims::Grants,
    manifest::Manifest,
    plugin::Plugin,
    plugin_info::{PluginError, PluginInfo, Settings},
    text::nearest,
};
use trainyard_render::{Declared, SkippedPlugin};
use trainyard_sandbox::{BuiltIn, LoadError, LoadProblem, Loader};

use super::{
    loading::{CodeLoading, Loading, SettingsOf},
    refused::{Origin, Refused},
};
use crate::{
    built_ins::{self, BUILT_INS},
    policy::{PluginContent, PluginFile, Policy, Warning},
};

/// The result of loading plugins, in order.
#[derive(Default)]
pub(super) struct LoadResult {
    /// The loaded plugins with their origins.
    pub(super) loaded: Vec<(Arc<dyn Plugin>, Origin)>,
    pub(super) refused: Vec<Refused>,
    /// The plugins that PolicyPlugins disable.
    pub(super) disabled: Vec<Declared>,
    /// The built-in plugins whose feature gate is off, with its name.
    pub(super) gated: Vec<(Declared, &'static str)>,
    /// If set, plugins whose claims or digest the settings refuse are loaded with all their claims granted, and this has the refusals.
    pub(super) granted_anyway: Option<Vec<PluginError>>,
}

impl LoadResult {
    /// Loads a plugin with the operator's settings, which are based on `defaults`.
    pub(super) fn add(
        &mut self,
        origin: Origin,
        defaults: Settings,
        policy: &Policy,
        load: impl Fn(SettingsOf<'_>) -> Result<Arc<dyn Plugin>, LoadError>,
    ) {
        self.add_named(origin, defaults, policy, Name::Any, load);
    }

    /// Loads a plugin like [`Self::add`], if it may have its name.
    fn add_named(
        &mut self,
        origin: Origin,
        defaults: Settings,
        policy: &Policy,
        allowed: Name<'_>,
        load: impl Fn(SettingsOf<'_>) -> Result<Arc<dyn Plugin>, LoadError>,
    ) {
        let mut declared = None;
        let mut settings = |manifest: &Manifest| {
            let settings = policy.settings(&manifest.name, defaults.clone());
            declared = Some(super::declared(manifest, &settings));
            settings
        };
        let loaded = match &mut self.granted_anyway {
            None => load(&mut settings),
            Some(refusals) => load_anyway(&mut settings, load).map(|(plugin, refused)| {
                refusals.extend(refused);
                plugin
            }),
        };
        let found = declared.as_ref().map(|declared| &declared.name);
        if let Some(refused) = found.and_then(|name| allowed.refusal(name, &origin, policy)) {
            self.refused.push(refused);
            return;
        }
        match loaded {
            Ok(loaded) => self.keep(loaded, origin),
            Err(error) if is_disabled(&error) => self.disabled.extend(declared),
            Err(error) => self.refused.push(Refused::Load {
                origin,
                declared,
                error,
            }),
        }
    }

    /// Keeps a plugin unless an earlier one has its name.
    fn keep(&mut self, plugin: Arc<dyn Plugin>, origin: Origin) {
        let name = &plugin.info().id.name;
        let mut earlier = self.loaded.iter();
        match earlier.find(|(earlier, _)| earlier.info().id.name == *name) {
            None => self.loaded.push((plugin, origin)),
            Some((_, first)) => self.refused.push(Refused::SameName {
                name: name.to_string(),
                first: first.clone(),
                second: origin,
            }),
        }
    }

    /// Removes a plugin, and what is known of it. Returns whether it was loaded.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        let loaded = self.loaded.len();
        self.loaded
            .retain(|(plugin, _)| *plugin.info().id.name != *name);
        self.disabled.retain(|disabled| disabled.name != *name);
        self.gated.retain(|(gated, _)| gated.name != *name);
        let is_other = |refused: &Refused| refused.declared().is_none_or(|one| one.name != *name);
        self.refused.retain(is_other);
        let refusals = self.granted_anyway.iter_mut();
        refusals.for_each(|all| all.retain(|refused| refused.plugin() != name));
        self.loaded.len() < loaded
    }

    /// Adds the plugins of another result.
    pub(super) fn absorb(&mut self, other: Self) {
        self.loaded.extend(other.loaded);
        self.refused.extend(other.refused);
        self.disabled.extend(other.disabled);
        self.gated.extend(other.gated);
        let refusals = other.granted_anyway.into_iter().flatten();
        if let Some(all) = &mut self.granted_anyway {
            all.extend(refusals);
        }
    }

    /// Returns the names of the plugins that PolicyPlugins disable.
    pub(super) fn disabled_names(&self) -> Vec<String> {
        let names: BTreeSet<_> = self.disabled.iter().map(|one| one.name.clone()).collect();
        names.into_iter().collect()
    }

    /// Returns the warnings about all plugins: those of [`misspelled_orders`], and grants and PolicyPlugins that have no effect.
    pub(super) fn warnings(&self, policy: &Policy) -> Vec<Warning> {
        let plugins = || self.loaded.iter().map(|(plugin, _)| plugin.info());
        let loaded = plugins().map(|plugin| &*plugin.id.name);
        let known: BTreeSet<&str> = loaded
            .chain(self.disabled.iter().map(|one| &*one.name))
            .collect();
        let gated = self.gated.iter();
        plugins()
            .flat_map(|plugin| misspelled_orders(plugin, &known))
            .chain(policy.unused_grants(plugins()))
            .chain(gated.filter_map(|(it, gate)| policy.without_its_gate(&it.name, gate)))
            .collect()
    }

    /// Returns the errors of PolicyPlugins that depend on the plugins, which may include a `new` one: names that no plugin has, and
    /// exemptions of plugins that are not always active.
    pub(super) fn policy_errors(&self, policy: &Policy, new: Option<&PluginInfo>) -> Vec<Located> {
        let loaded = self.loaded.iter().map(|(plugin, _)| &**plugin.info());
        let loaded = loaded.chain(new);
        let loaded = loaded.map(|plugin| (&*plugin.id.name, &plugin.manifest.active_when));
        let others = self
            .disabled
            .iter()
            .chain(self.gated.iter().map(|(declared, _)| declared))
            .chain(self.refused.iter().filter_map(Refused::declared));
        let others = others.map(|declared| (&*declared.name, &declared.active_when));
        // A loaded plugin replaces a refused one of the same name.
        let all: BTreeMap<_, _> = others.chain(loaded).collect();
        // A plugin whose manifest cannot be read may have any of the names.
        let is_unread = |refused: &Refused| {
            matches!(
                refused,
                Refused::Load { declared: None, .. } | Refused::WrongName { .. }
            )
        };
        let mut errors = match self.refused.iter().any(is_unread) {
            true => Vec::new(),
            false => policy.unknown_plugins(&all.keys().copied().collect()),
        };
        errors.extend(policy.impossible_exemptions(&all));
        errors
    }
}

/// Returns a warning for each name in the `after`, `before` and `excludes` of a manifest that is similar to a known plugin's name. Other names
/// are valid, because these lists may name plugins that are not loaded.
pub(super) fn misspelled_orders<'a>(
    plugin: &'a PluginInfo,
    known: &'a BTreeSet<&'a str>,
) -> impl Iterator<Item = Warning> + 'a {
    let manifest = &plugin.manifest;
    let lists = [
        ("after", &manifest.after),
        ("before", &manifest.before),
        ("excludes", &manifest.excludes),
    ];
    let names = lists.into_iter().flat_map(|(list, names)| {
        let names = names.iter().enumerate();
        names.map(move |(at, name)| (list, at, name))
    });
    let unknown = names.filter(|(.., name)| !known.contains(&***name));
    unknown.filter_map(|(list, at, name)| {
        let others = known.iter().copied();
        let near = nearest(name, others.filter(|other| *other != manifest.name))?;
        Some(Warning::Manifest {
            plugin: plugin.id.clone(),
            message: format!(
                "`{list}[{at}]` in the manifest names `{name}`, which is not loaded; did you mean `{near}`?"
            ),
        })
    })
}

/// Loads the built-in plugins and these files, in this order, and continues after a plugin that is refused.
pub(super) fn load(
    loader: &Loader,
    files: &[PluginFile],
    policy: &Policy,
    code: CodeLoading,
) -> LoadResult {
    let mut result = LoadResult::default();
    result.add_all(&Loading::new(loader, code), files, policy);
    result
}

impl LoadResult {
    /// Loads the built-in plugins and these files, in this order, and continues after a plugin that is refused.
    pub(super) fn add_all(&mut self, loading: &Loading<'_>, files: &[PluginFile], policy: &Policy) {
        let replaced = files.iter().filter_map(|file| file.replaced.as_ref());
        let replaced: BTreeSet<_> = replaced.map(|manifest| &*manifest.name).collect();
        for plugin in BUILT_INS {
            if let Some(gate) = closed_gate(plugin.name(), policy) {
                self.leave_out(plugin, policy, gate);
                continue;
            }
            if loading.leaves_out(plugin.name()) || replaced.contains(plugin.name()) {
                continue;
            }
            let defaults = Settings::built_in();
            self.add(Origin::BuiltIn, defaults, policy, |settings| {
                loading.built_in(plugin, settings)
            });
        }
        let mut seen = BTreeSet::new();
        for file in files {
            if let PluginContent::File(path) = &file.content {
                let canonical = path.canonicalize().unwrap_or_else(|_| path.clone());
                if !seen.insert(canonical) {
                    self.refused.push(Refused::SameFile(path.clone()));
                    continue;
                }
            }
            // The gate of a built-in plugin is also that of what replaces it.
            let replaced = file.replaced.as_ref();
            if replaced.is_some_and(|it| closed_gate(&it.name, policy).is_some()) {
                continue;
            }
            let origin = Origin::from(&file.content);
            let allowed = file.wanted.as_ref().map_or(Name::Free, Name::Wanted);
            self.add_named(origin, file.defaults(), policy, allowed, |settings| {
                loading.content(&file.content, settings)
            });
        }
    }
}

impl LoadResult {
    /// Notes a built-in plugin whose feature gate is off.
    fn leave_out(&mut self, plugin: &BuiltIn, policy: &Policy, gate: FeatureGate) {
        if let Some(manifest) = built_ins::manifest(plugin.name()) {
            let settings = policy.settings(&manifest.name, Settings::built_in());
            let declared = super::declared(&manifest, &settings);
            self.gated.push((declared, gate.name()));
        }
    }

    /// Returns the plugins that are left out on purpose, for the errors of TrainJobs that name one of them.
    pub(super) fn left_out(&self) -> impl Iterator<Item = SkippedPlugin> {
        let gated = self.gated.iter().map(|(declared, gate)| SkippedPlugin {
            declared: Some(declared.clone()),
            why: format!("the feature gate {gate} is off"),
            is_disabled: true,
        });
        self.disabled
            .iter()
            .map(super::disabled_by_operator)
            .chain(gated)
    }
}

/// Which name a plugin may have.
#[derive(Clone, Copy)]
enum Name<'n> {
    /// Any name.
    Any,
    /// A name that no source of a PolicyPlugin decides.
    Free,
    /// That of the PolicyPlugin which has it as source.
    Wanted(&'n (String, Location)),
}

impl Name<'_> {
    /// Returns why a plugin may not have this name.
    fn refusal(self, name: &str, origin: &Origin, policy: &Policy) -> Option<Refused> {
        match self {
            Self::Any => None,
            Self::Free => policy.source_of(name).map(|place| Refused::Decided {
                place: place.to_string(),
                origin: origin.clone(),
                name: name.to_owned(),
            }),
            Self::Wanted((wanted, _)) if wanted == name => None,
            Self::Wanted((wanted, place)) => Some(Refused::WrongName {
                place: place.to_string(),
                origin: origin.clone(),
                name: name.to_owned(),
                wanted: wanted.clone(),
            }),
        }
    }
}

/// Returns the feature gate of a built-in plugin, if it is off.
pub(super) fn closed_gate(name: &str, policy: &Policy) -> Option<FeatureGate> {
    let gate = built_ins::feature_gate(name).ok().flatten()?;
    (!policy.is_on(gate)).then_some(gate)
}

/// Loads an untrusted component. Errors have this name.
pub(super) fn load_bytes(
    loader: &Loader,
    name: &str,
    component: &[u8],
    settings: SettingsOf<'_>,
) -> Result<Arc<dyn Plugin>, LoadError> {
    let loaded = loader.load_untrusted(component.to_vec(), settings);
    let loaded = loaded.map_err(|problem| LoadError {
        file: name.to_owned(),
        problem: Box::new(problem),
    })?;
    Ok(Arc::new(loaded))
}

/// Loads a plugin with the operator's settings. If these refuse it, loads it with all its claims granted, for any digest and, if need be,
/// without its configuration, and also returns the refusal, so that it can be compared as well.
///
/// # Errors
/// If it cannot be loaded even then.
pub(super) fn load_anyway(
    settings: SettingsOf<'_>,
    load: impl Fn(SettingsOf<'_>) -> Result<Arc<dyn Plugin>, LoadError>,
) -> Result<(Arc<dyn Plugin>, Option<PluginError>), LoadError> {
    let LoadError { file, problem } = match load(settings) {
        Ok(plugin) => return Ok((plugin, None)),
        Err(error) => error,
    };
    match *problem {
        LoadProblem::Plugin(
            refused @ (PluginError::Claims { .. }
            | PluginError::Digest { .. }
            | PluginError::OperatorConfig { .. }),
        ) => {
            let has_config = matches!(refused, PluginError::OperatorConfig { .. });
            let plugin = load(&mut |manifest| {
                let mut settings = settings(manifest);
                if has_config {
                    settings.operator_config = Settings::default().operator_config;
                }
                Settings {
                    grants: Grants::AsClaimed,
                    digest: None,
                    ..settings
                }
            })?;
            Ok((plugin, Some(refused)))
        }
        problem => Err(LoadError {
            file,
            problem: Box::new(problem),
        }),
    }
}

/// Whether a plugin is not loaded because the operator disabled it.
fn is_disabled(error: &LoadError) -> bool {
    matches!(
        &*error.problem,
        LoadProblem::Plugin(PluginError::Disabled(_))
    )
}
