//! Loads the built-in plugins and plugin files, each with the operator's settings for it.

mod lenient;
mod new_plugin;
mod refused;

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
};

pub(crate) use lenient::LenientLoad;
pub(crate) use new_plugin::NewPlugin;
use refused::{Origin, Refused, shown};
use trainyard_api::Located;
use trainyard_model::{
    manifest::Manifest,
    names::sha256_digest,
    plugin::Plugin,
    plugin_info::{PluginError, PluginId, PluginInfo, Settings},
    text::nearest,
};
use trainyard_render::{Declared, Renderer, SkippedPlugin};
use trainyard_sandbox::{
    BuiltIn, CachePaths, LoadError, LoadLimits, LoadProblem, Loader, LoaderOptions, Panicked,
    screen,
};

use crate::{
    args::{CacheArgs, LoadArgs},
    built_ins::BUILT_INS,
    compile_worker,
    policy_file::PolicyFile,
    report::{self, ErrorList},
};

/// The plugins of a command.
pub(crate) struct LoadedPlugins {
    pub(crate) renderer: Renderer,
    pub(crate) loader: Loader,
    /// The names of the plugins that the policy file disables.
    pub(crate) disabled: Vec<String>,
    /// The origins of the plugins, by name.
    origins: BTreeMap<Arc<str>, Origin>,
}

impl LoadedPlugins {
    /// Loads the built-in plugins and the plugin files, and checks them against each other. Fails if one of them is refused.
    pub(crate) fn load(args: &LoadArgs) -> Result<Self, ErrorList> {
        let (policy, loader) = prepare(args)?;
        let plugins = load(
            &loader,
            &files(&args.plugin, args.plugin_dir.as_deref())?,
            &policy,
            CodeLoading::Lazy,
        );
        let failure = ErrorList::from_iter(plugins.policy_errors(&policy, None));
        Self::of(plugins, loader, &policy, failure)
    }

    /// Also loads another plugin file, to compare it with the others.
    pub(crate) fn load_with_new(
        args: &LoadArgs,
        file: &Path,
    ) -> Result<(Self, NewPlugin), ErrorList> {
        let (policy, loader) = prepare(args)?;
        let plugins = load(
            &loader,
            &files(&args.plugin, args.plugin_dir.as_deref())?,
            &policy,
            CodeLoading::Lazy,
        );
        let new = NewPlugin::load(&loader, file, &policy);
        let mut failure = match &new {
            Ok(new) => ErrorList::from_iter(plugins.policy_errors(&policy, Some(&new.plugin))),
            // It may be the plugin that the policy file names, so unknown names are not reported.
            Err(error) => ErrorList::from_iter([error]),
        };
        match (
            Self::of(plugins, loader, &policy, ErrorList::default()),
            new,
        ) {
            (Ok(loaded), Ok(new)) => failure.or_ok((loaded, new)),
            (Err(refused), _) => {
                failure.absorb(refused);
                Err(failure)
            }
            (Ok(_), Err(_)) => Err(failure),
        }
    }

    /// Returns the plugins, unless one is refused.
    fn of(
        plugins: LoadResult,
        loader: Loader,
        policy: &PolicyFile,
        mut failure: ErrorList,
    ) -> Result<Self, ErrorList> {
        let refused = plugins.refused.iter();
        refused.for_each(|refused| failure.add(refused));
        failure.or_ok(())?;
        let disabled = plugins.disabled_names();
        let skipped = plugins.disabled.iter().map(disabled_by_operator).collect();
        let named = |(plugin, origin): &(Arc<dyn Plugin>, Origin)| {
            (plugin.info().id.name.clone(), origin.clone())
        };
        let origins = plugins.loaded.iter().map(named).collect();
        plugins.misspelled_orders().iter().for_each(report::warn);
        let loaded = plugins.loaded.into_iter().map(|(plugin, _)| plugin);
        let renderer = Renderer::new(loaded, policy.facts()).map_err(ErrorList::from_iter)?;
        Ok(Self {
            renderer: renderer.with_skipped(skipped),
            loader,
            disabled,
            origins,
        })
    }

    /// Reads the component of a loaded plugin again.
    ///
    /// # Errors
    /// If its file cannot be read or changed since it was loaded.
    pub(crate) fn component(&self, id: &PluginId) -> Result<Vec<u8>, ErrorList> {
        let failed = |what: String| ErrorList::from_iter([what]);
        let (origin, bytes) = match self.origins.get(&id.name) {
            Some(Origin::File(path)) => {
                let file = shown(path);
                let read = screen::read(path, &LoadLimits::default());
                let bytes = read.map_err(|error| failed(format!("{file}: {error}")))?;
                (file, bytes)
            }
            Some(Origin::BuiltIn) | None => {
                let mut built_ins = BUILT_INS.iter();
                let found = built_ins.find(|built_in| *built_in.digest() == *id.digest);
                let component = found.map(BuiltIn::component).unwrap_or_default();
                (Origin::BuiltIn.to_string(), component.to_vec())
            }
        };
        if sha256_digest(&bytes) == *id.digest {
            return Ok(bytes);
        }
        let problem = format!("changed after plugin {id} was loaded; run the command again");
        Err(failed(format!("{origin}: {problem}")))
    }

    /// Calls `run` for each item on the threads for plugin calls, and `take` with each result in the order of the items. A panic is the result of
    /// its item.
    pub(crate) fn run_in_order<T: Sync, R: Send>(
        &self,
        items: &[T],
        run: impl Fn(&T) -> R + Sync,
        take: impl FnMut(&T, Result<R, Panicked>) -> Result<(), ErrorList>,
    ) -> Result<(), ErrorList> {
        self.loader.pool().run_in_order(items, run, take)
    }
}

/// Reads the policy file and creates the loader.
fn prepare(args: &LoadArgs) -> Result<(PolicyFile, Loader), ErrorList> {
    let policy = match &args.policy {
        Some(path) => PolicyFile::read(path).map_err(ErrorList::from_iter)?,
        None => PolicyFile::default(),
    };
    Ok((policy, loader(&args.cache, cores())?))
}

/// Returns why the plugin in a file would not be loaded beside the built-in plugins, if there were no policy file: because of its settings or
/// of another plugin.
///
/// # Errors
/// It cannot be loaded, whatever the policy file grants and configures.
pub(crate) fn refusals(file: &Path, cache: &CacheArgs) -> Result<Vec<String>, ErrorList> {
    let (policy, loader) = (PolicyFile::default(), loader(cache, cores())?);
    let built_ins = load(&loader, &[], &policy, CodeLoading::Lazy);
    let loaded = LoadedPlugins::of(built_ins, loader, &policy, ErrorList::default())?;
    match NewPlugin::load(&loaded.loader, file, &policy) {
        Ok(new) => Ok(new.refusals(loaded.renderer.generation())),
        Err(error) => match *error.problem {
            LoadProblem::Plugin(refused) => Ok(vec![refused.to_string()]),
            _ => Err(ErrorList::from_iter([error])),
        },
    }
}

/// When the code of the built-in plugins is loaded.
#[derive(Clone, Copy)]
enum CodeLoading {
    /// At once, so a long-running process detects errors at its start.
    Eager,
    /// At the first call, because a command calls few plugins.
    Lazy,
}

/// The result of loading plugins, in order.
struct LoadResult {
    /// The loaded plugins with their origins.
    loaded: Vec<(Arc<dyn Plugin>, Origin)>,
    refused: Vec<Refused>,
    /// The plugins that the policy file disables.
    disabled: Vec<Declared>,
}

impl LoadResult {
    /// Returns the names of the plugins that the policy file disables.
    fn disabled_names(&self) -> Vec<String> {
        let names: BTreeSet<_> = self.disabled.iter().map(|one| one.name.clone()).collect();
        names.into_iter().collect()
    }

    /// Returns a warning for each name in the `after`, `before` and `excludes` of a manifest that is similar to a loaded plugin's name. Other names are valid,
    /// because these lists may name plugins that are not loaded.
    fn misspelled_orders(&self) -> Vec<String> {
        let plugins = || self.loaded.iter().map(|(plugin, _)| plugin.info());
        let loaded = plugins().map(|plugin| &*plugin.id.name);
        let known: BTreeSet<&str> = loaded
            .chain(self.disabled.iter().map(|one| &*one.name))
            .collect();
        let mut found = Vec::new();
        for plugin in plugins() {
            let manifest = &plugin.manifest;
            for (list, names) in [
                ("after", &manifest.after),
                ("before", &manifest.before),
                ("excludes", &manifest.excludes),
            ] {
                for (at, name) in names.iter().enumerate() {
                    let unknown = (!known.contains(&**name)).then_some(&**name);
                    let others = known
                        .iter()
                        .copied()
                        .filter(|other| *other != manifest.name);
                    if let Some(near) = unknown.and_then(|name| nearest(name, others)) {
                        found.push(format!(
                            "plugin {}: `{list}[{at}]` in the manifest names `{name}`, which is not loaded; did you mean `{near}`?",
                            plugin.id
                        ));
                    }
                }
            }
        }
        found
    }

    /// Returns the errors of the policy file that depend on the plugins, which may include a `new` one: names that no plugin has, and
    /// exemptions of plugins that are not always active.
    fn policy_errors(&self, policy: &PolicyFile, new: Option<&PluginInfo>) -> Vec<Located> {
        let loaded = self.loaded.iter().map(|(plugin, _)| &**plugin.info());
        let loaded = loaded.chain(new);
        let loaded = loaded.map(|plugin| (&*plugin.id.name, &plugin.manifest.active_when));
        let others = self
            .disabled
            .iter()
            .chain(self.refused.iter().filter_map(Refused::declared));
        let others = others.map(|declared| (&*declared.name, &declared.active_when));
        // A loaded plugin replaces a refused one of the same name.
        let all: BTreeMap<_, _> = others.chain(loaded).collect();
        let mut errors = self.unknown_plugins(policy, new.map(|new| &*new.id.name));
        errors.extend(policy.impossible_exemptions(&all));
        errors
    }

    /// Returns an error for each name in the policy file that is neither a loaded, a disabled, a refused nor the `new` plugin's name. Returns none
    /// if the name of a refused plugin could not be read, because it may be any of them.
    fn unknown_plugins(&self, policy: &PolicyFile, new: Option<&str>) -> Vec<Located> {
        let refused = self.refused.iter();
        // The other plugin of the same file is known.
        let refused: Option<BTreeSet<&str>> = refused
            .filter(|refused| !matches!(refused, Refused::SameFile(_)))
            .map(Refused::plugin)
            .collect();
        let Some(mut known) = refused else {
            return Vec::new();
        };
        let loaded = self.loaded.iter();
        known.extend(loaded.map(|(plugin, _)| &*plugin.info().id.name));
        known.extend(self.disabled.iter().map(|declared| &*declared.name));
        known.extend(new);
        policy.unknown_plugins(&known)
    }
}

/// Loads the built-in plugins and these files, in this order, and continues after a plugin that is refused.
fn load(loader: &Loader, files: &[PathBuf], policy: &PolicyFile, code: CodeLoading) -> LoadResult {
    let mut loading = Loading {
        policy,
        loaded: Vec::new(),
        refused: Vec::new(),
        disabled: Vec::new(),
    };
    for plugin in BUILT_INS {
        loading.add(Origin::BuiltIn, Settings::built_in(), |settings| {
            Ok(match code {
                CodeLoading::Eager => Arc::new(loader.load_built_in(plugin, settings)?),
                CodeLoading::Lazy => Arc::new(loader.defer_built_in(plugin, settings)?),
            })
        });
    }
    let mut seen = BTreeSet::new();
    for path in files {
        let file = path.canonicalize().unwrap_or_else(|_| path.clone());
        if !seen.insert(file) {
            loading.refused.push(Refused::SameFile(path.clone()));
            continue;
        }
        let origin = Origin::File(path.clone());
        loading.add(origin, Settings::default(), |settings| {
            Ok(Arc::new(loader.load_file(path, settings)?))
        });
    }
    LoadResult {
        loaded: loading.loaded,
        refused: loading.refused,
        disabled: loading.disabled,
    }
}

/// The plugins that were loaded so far.
struct Loading<'p> {
    policy: &'p PolicyFile,
    loaded: Vec<(Arc<dyn Plugin>, Origin)>,
    refused: Vec<Refused>,
    disabled: Vec<Declared>,
}

/// Returns the operator's settings for the plugin of a manifest.
type SettingsOf<'s> = &'s mut dyn FnMut(&Manifest) -> Settings;

impl Loading<'_> {
    fn add(
        &mut self,
        origin: Origin,
        defaults: Settings,
        load: impl FnOnce(SettingsOf<'_>) -> Result<Arc<dyn Plugin>, LoadError>,
    ) {
        let policy = self.policy;
        let mut declared = None;
        let loaded = load(&mut |manifest| {
            let settings = policy.settings(&manifest.name, defaults.clone());
            declared = Some(self::declared(manifest, &settings));
            settings
        });
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
}

/// Whether a plugin is not loaded because the operator disabled it.
fn is_disabled(error: &LoadError) -> bool {
    matches!(
        &*error.problem,
        LoadProblem::Plugin(PluginError::Disabled(_))
    )
}

/// Returns a plugin that the policy file disables, for the errors of TrainJobs that name it.
fn disabled_by_operator(declared: &Declared) -> SkippedPlugin {
    SkippedPlugin {
        declared: Some(declared.clone()),
        why: PluginError::Disabled(declared.name.clone()).to_string(),
        is_disabled: true,
    }
}

/// Returns the declaration of a manifest, with the operator's settings for the plugin.
fn declared(manifest: &Manifest, settings: &Settings) -> Declared {
    Declared {
        name: manifest.name.clone(),
        active_when: manifest.active_when.clone(),
        exemptions: settings.exemptions.clone(),
    }
}

/// Returns these plugin files, followed by those in the directory.
pub(crate) fn files(
    files: &[PathBuf],
    directory: Option<&Path>,
) -> Result<Vec<PathBuf>, ErrorList> {
    let mut files = files.to_owned();
    if let Some(directory) = directory {
        files.extend(files_in(directory)?);
    }
    Ok(files)
}

/// Returns the plugin files in a directory, by name.
fn files_in(directory: &Path) -> Result<Vec<PathBuf>, ErrorList> {
    let unreadable =
        |error: std::io::Error| ErrorList::from_iter([format!("{}: {error}", shown(directory))]);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|ending| ending == "wasm") && !path.is_dir() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Creates a loader for a number of concurrent calls. The compiled cache is in the directory of `cache`, or else in the user's.
pub(crate) fn loader(cache: &CacheArgs, calls: NonZeroUsize) -> Result<Loader, ErrorList> {
    let options = LoaderOptions {
        compiler: compile_worker::compiler()?,
        cache: CachePaths::of_user(cache.cache_dir.as_deref()),
        limits: LoadLimits {
            cache_bytes: cache.cache_size,
            ..LoadLimits::default()
        },
        threads: calls.get(),
    };
    Loader::new(options).map_err(|error| ErrorList::from_iter([error]))
}

/// Returns the number of processors that this process may use.
pub(crate) fn cores() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}
