//! Loads the built-in plugins and plugin files, each with the operator's settings for it.

mod lenient;
mod loading;
mod new_plugin;
mod next;
mod refused;
mod result;
mod strict;

use std::{
    collections::BTreeMap,
    fmt,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
};

pub(crate) use lenient::LenientLoad;
use loading::load_content;
pub(crate) use loading::{CodeLoading, Loading};
use new_plugin::NewPlugin;
pub(crate) use next::NextPlugins;
use refused::{Origin, Refused};
use result::{LoadResult, load, load_bytes, misspelled_orders};
pub(crate) use strict::StrictRefusal;
use trainyard_api::Object;
use trainyard_model::{
    manifest::Manifest,
    names::sha256_digest,
    plugin::Plugin,
    plugin_info::{Exemptions, PluginError, PluginId, PluginInfo, Settings},
};
use trainyard_render::{ClusterFacts, Declared, Renderer, SkippedPlugin};
use trainyard_sandbox::{
    BuiltIn, CachePaths, LoadError, LoadLimits, LoadProblem, Loader, LoaderOptions, Panicked,
    SandboxedPlugin, screen,
};

use crate::{
    args::{CacheArgs, LoadArgs},
    built_ins::BUILT_INS,
    compile_worker, output,
    policy::{Declared as DeclaredPolicy, PluginFile, Policy},
    report::{self, ErrorList},
};

/// The plugins of a command.
pub(crate) struct LoadedPlugins {
    pub(crate) renderer: Renderer,
    pub(crate) loader: Loader,
    /// The names of the plugins that PolicyPlugins disable.
    pub(crate) disabled: Vec<String>,
    /// The origins of the plugins, by name.
    origins: BTreeMap<Arc<str>, Origin>,
}

impl LoadedPlugins {
    /// Loads the built-in plugins and the plugin files, and checks them against each other. Fails if one of them is refused.
    pub(crate) fn load(args: &LoadArgs) -> Result<Self, ErrorList> {
        Self::load_with(args, &[])
    }

    /// Loads the plugins like [`Self::load`], with PolicyPlugins of the input.
    pub(crate) fn load_with(args: &LoadArgs, objects: &[Object]) -> Result<Self, ErrorList> {
        Self::load_based_on(args, objects, None)
    }

    /// Loads the plugins like [`Self::load_with`], with the settings for all TrainJobs of a bundle, if no file has others.
    pub(crate) fn load_based_on(
        args: &LoadArgs,
        objects: &[Object],
        recorded: Option<ClusterFacts>,
    ) -> Result<Self, ErrorList> {
        let policy = policy(args, &args.plugins.policy, objects)?;
        let mut policy = policy.based_on(recorded);
        let loader = loader(&args.plugins.cache, cores())?;
        let files = plugin_files(args, &mut policy)?;
        let plugins = load(&loader, &files, &policy, CodeLoading::Lazy);
        let failure = ErrorList::from_iter(plugins.policy_errors(&policy, None));
        Self::of(plugins, loader, &policy, failure)
    }

    /// Loads the built-in plugins and the component of one plugin, and checks them against each other. Without PolicyPlugins, the plugin is
    /// granted what it claims. Errors call the component `path`.
    pub(crate) fn load_component(
        path: &Path,
        component: Vec<u8>,
        policy: Option<&Path>,
        cache: &CacheArgs,
    ) -> Result<(Self, Arc<PluginInfo>), ErrorList> {
        let defaults = match policy {
            Some(_) => Settings::default(),
            None => Settings::built_in(),
        };
        let (policy, loader) = prepare(policy, cache)?;
        let mut plugins = load(&loader, &[], &policy, CodeLoading::Lazy);
        let origin = Origin::File(path.to_owned());
        let mut own = LoadResult::default();
        own.add(origin, defaults, &policy, |settings| {
            load_bytes(&loader, &output::path(path), &component, settings)
        });
        if let Some((plugin, _)) = own.loaded.first() {
            let name = &plugin.info().id.name;
            if plugins.remove(name) {
                report::warn(format!(
                    "{}: has the name `{name}` of a built-in plugin, which it replaces here; a controller refuses it",
                    output::path(path)
                ));
            }
        }
        plugins.absorb(own);
        let is_it = |(_, of): &&(Arc<dyn Plugin>, Origin)| matches!(of, Origin::File(_));
        let loaded = plugins.loaded.iter().find(is_it);
        let loaded = loaded.map(|(plugin, _)| plugin.info().clone());
        let failure = ErrorList::from_iter(plugins.policy_errors(&policy, None));
        let all = Self::of(plugins, loader, &policy, failure)?;
        let loaded = loaded.ok_or_else(|| {
            let problem = "is disabled in its PolicyPlugin; remove `disabled` there";
            ErrorList::from_iter([format!("{}: the plugin {problem}", output::path(path))])
        })?;
        Ok((all, loaded))
    }

    /// Also loads the plugins after a change: those with a `new` file, with other PolicyPlugins, or both.
    pub(crate) fn load_now_and_next(
        args: &LoadArgs,
        new: Option<&Path>,
        next_policy: &[PathBuf],
        objects: &[Object],
    ) -> Result<(Self, NextPlugins), ErrorList> {
        let mut policy = policy(args, &args.plugins.policy, objects)?;
        let loader = loader(&args.plugins.cache, cores())?;
        let files = plugin_files(args, &mut policy)?;
        let plugins = load(&loader, &files, &policy, CodeLoading::Lazy);
        let is_new = !next_policy.is_empty();
        let of_now = is_new.then(|| plugins.policy_errors(&policy, None));
        let mut failure = ErrorList::from_iter(of_now.into_iter().flatten());
        let now = Self::of(plugins, loader, &policy, ErrorList::default());
        let next = match is_new {
            false => Ok((policy, files)),
            true => self::policy(args, next_policy, &[]).and_then(|mut next| {
                next.verify_like(&policy)?;
                plugin_files(args, &mut next).map(|files| (next, files))
            }),
        };
        let now = now.map_err(|refused| failure.absorb(refused));
        let next = next.map_err(|refused| failure.absorb(refused));
        let (Ok(now), Ok((next_policy, files))) = (now, next) else {
            return Err(failure);
        };
        let next = NextPlugins::load(&now.loader, &files, new, next_policy);
        match next.map_err(|refused| failure.absorb(refused)) {
            Ok(next) => failure.or_ok((now, next)),
            Err(()) => Err(failure),
        }
    }

    /// Returns the plugins, unless one is refused.
    fn of(
        plugins: LoadResult,
        loader: Loader,
        policy: &Policy,
        mut failure: ErrorList,
    ) -> Result<Self, ErrorList> {
        let refused = plugins.refused.iter();
        refused.for_each(|refused| failure.add(refused));
        failure.or_ok(())?;
        let disabled = plugins.disabled_names();
        let skipped = plugins.left_out().collect();
        let named = |(plugin, origin): &(Arc<dyn Plugin>, Origin)| {
            (plugin.info().id.name.clone(), origin.clone())
        };
        let origins = plugins.loaded.iter().map(named).collect();
        plugins.warnings(policy).iter().for_each(report::warn);
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
                let file = output::path(path);
                let read = screen::read(path, &LoadLimits::default());
                let bytes = read.map_err(|error| failed(format!("{file}: {error}")))?;
                (file, bytes)
            }
            Some(Origin::Pulled {
                reference,
                component,
            }) => (reference.clone(), component.to_vec()),
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

/// Reads the operator's settings for a plugin that is given, whose source is not read, and creates the loader.
fn prepare(policy: Option<&Path>, cache: &CacheArgs) -> Result<(Policy, Loader), ErrorList> {
    let paths: Vec<_> = policy.into_iter().map(Path::to_owned).collect();
    let policy = DeclaredPolicy::read(&paths, &[])?.into_policy(None)?;
    Ok((policy, loader(cache, cores())?))
}

/// Reads the operator's settings for the plugins of a command: files and directories, and PolicyPlugins of the input.
pub(crate) fn policy(
    args: &LoadArgs,
    paths: &[PathBuf],
    objects: &[Object],
) -> Result<Policy, ErrorList> {
    let declared = DeclaredPolicy::read(paths, objects)?;
    let policy = declared.into_policy(args.signed.signers()?)?;
    Ok(policy.for_process(args.plugins.feature_gates.clone(), None))
}

/// Returns the plugin files of the command line, and those that PolicyPlugins name.
fn plugin_files(args: &LoadArgs, policy: &mut Policy) -> Result<Vec<PluginFile>, ErrorList> {
    policy.files(
        files(&args.plugins.plugin, args.plugins.plugin_dir.as_deref())?,
        &args.plugins.source,
    )
}

/// Checks that a component can be loaded with some grants: it is screened, compiled and linked. Errors call it `file`.
pub(crate) fn check(
    file: &str,
    component: Vec<u8>,
    policy: Option<&Path>,
    cache: &CacheArgs,
) -> Result<(), ErrorList> {
    let (policy, loader) = prepare(policy, cache)?;
    let loaded = loader.load_untrusted(component, |manifest| Settings {
        compile: policy.settings(&manifest.name, Settings::default()).compile,
        ..Settings::built_in()
    });
    let loaded = loaded.map(drop);
    loaded.map_err(|problem| ErrorList::from_iter([format!("{file}: {problem}")]))
}

/// Compiles the built-in plugins and the plugin files into a directory, and calls `written` with each of them. Only what is needed to compile
/// them is read from PolicyPlugins, because grants may change before the code is used.
pub(crate) fn compile(
    args: &LoadArgs,
    output: &Path,
    mut written: impl FnMut(&PluginInfo) -> Result<(), ErrorList>,
) -> Result<(), ErrorList> {
    let mut policy = policy(args, &args.plugins.policy, &[])?;
    let files = plugin_files(args, &mut policy)?;
    let loader = loader(&args.plugins.cache, cores())?;
    let settings = |manifest: &Manifest| Settings {
        is_disabled: false,
        ..policy.settings(&manifest.name, Settings::built_in())
    };
    let mut write = |loaded: Result<SandboxedPlugin, LoadError>| {
        let plugin = loaded.map_err(|error| ErrorList::from_iter([error]))?;
        let wrote = loader.write_compiled(&plugin, output);
        wrote.map_err(|error| {
            ErrorList::from_iter([format!(
                "{}: cannot be written: {error}",
                output::path(output)
            )])
        })?;
        written(plugin.info())
    };
    for file in files {
        write(load_content(&loader, &file.content, settings))?;
    }
    let mut built_ins = BUILT_INS.iter();
    built_ins.try_for_each(|built_in| write(loader.load_built_in(built_in, settings)))
}

/// Returns why the plugin of a component would not be loaded beside the built-in plugins, if there were no PolicyPlugins: because of its settings or
/// of another plugin.
///
/// # Errors
/// It cannot be loaded, whatever a PolicyPlugin grants and configures.
pub(crate) fn refusals(
    name: &str,
    component: &[u8],
    cache: &CacheArgs,
) -> Result<Vec<String>, ErrorList> {
    let (policy, loader) = prepare(None, cache)?;
    let built_ins = load(&loader, &[], &policy, CodeLoading::Lazy);
    let loaded = LoadedPlugins::of(built_ins, loader, &policy, ErrorList::default())?;
    match NewPlugin::load(&loaded.loader, name, component, &policy) {
        Ok(new) => Ok(new.refusals(&loaded.renderer)),
        Err(error) => match *error.problem {
            LoadProblem::Plugin(refused) => Ok(vec![refused.to_string()]),
            _ => Err(ErrorList::from_iter([error])),
        },
    }
}

/// Returns the built-in plugins, with the settings of PolicyPlugins, the TrainJobs for which the plugin of a manifest in `file` is disabled, and
/// why it would not be loaded beside them.
///
/// # Errors
/// A PolicyPlugin is refused, or the plugin could not be loaded with any PolicyPlugin.
pub(crate) fn check_manifest(
    file: &Path,
    manifest: Manifest,
    policy: Option<&Path>,
    cache: &CacheArgs,
) -> Result<(LoadedPlugins, Exemptions, ErrorList), ErrorList> {
    let is_granted = policy.is_none();
    let (policy, loader) = prepare(policy, cache)?;
    let built_ins = load(&loader, &[], &policy, CodeLoading::Lazy);
    let in_file = |problem: &dyn fmt::Display| format!("{}: {problem}", output::path(file));
    let mut new = NewPlugin::of_manifest(manifest, &policy)
        .map_err(|error| ErrorList::from_iter([in_file(&error)]))?;
    let mut failure = ErrorList::from_iter(built_ins.policy_errors(&policy, Some(&new.plugin)));
    let loaded = LoadedPlugins::of(built_ins, loader, &policy, ErrorList::default())?;
    if is_granted {
        new.refused = None;
    }
    let generation = loaded.renderer.generation();
    let refusals = new.refusals(&loaded.renderer);
    let refusals = refusals.iter().map(|refusal| in_file(refusal));
    refusals.for_each(|refusal| failure.add(refusal));
    let names = generation.plugins().map(|plugin| &*plugin.id.name);
    let names = names.collect();
    misspelled_orders(&new.plugin, &names).for_each(report::warn);
    Ok((loaded, new.plugin.settings.exemptions.clone(), failure))
}

/// Returns a plugin that its PolicyPlugin disables, for the errors of TrainJobs that name it.
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
    let unreadable = |error: std::io::Error| {
        ErrorList::from_iter([format!("{}: {error}", output::path(directory))])
    };
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
        compiled: cache.compiled_dir.clone(),
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
