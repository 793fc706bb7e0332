//! Loads plugins: the built-in ones and those given as files, each under what the operator sets for it.

mod beside;
mod lenient;
mod refused;

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
};

pub(crate) use beside::Beside;
pub(crate) use lenient::LenientLoad;
use refused::{Origin, Refused, shown};
use trainyard_api::Located;
use trainyard_model::{
    manifest::Manifest,
    names::sha256_digest,
    plugin::{PluginError, PluginId, Settings},
    policy::Policy,
    text::nearest,
};
use trainyard_render::{Declared, Renderer, SkippedPlugin};
use trainyard_sandbox::{
    CachePaths, LoadError, LoadLimits, LoadProblem, Loader, LoaderOptions, Panicked, screen,
};

use crate::{
    args::{CacheArgs, LoadArgs},
    built_ins::BUILT_INS,
    compile_worker,
    policy_file::PolicyFile,
    report::{self, ErrorList},
};

/// The plugins of one run of a command.
pub(crate) struct LoadedPlugins {
    pub(crate) renderer: Renderer,
    pub(crate) loader: Loader,
    /// The names of the plugins that the policy file disables.
    pub(crate) disabled: Vec<String>,
    /// Where the plugins come from, by name.
    origins: BTreeMap<Arc<str>, Origin>,
}

impl LoadedPlugins {
    /// Loads the built-in plugins and those that were given, and checks them against each other. A command works with all of
    /// them or not at all.
    pub(crate) fn load(args: &LoadArgs) -> Result<Self, ErrorList> {
        let (policy, loader) = prepared(args)?;
        let plugins = load(
            &loader,
            &files(&args.plugin, args.plugin_dir.as_deref())?,
            &policy,
            Code::WhenCalled,
        );
        let failure = ErrorList::from_iter(plugins.unknown_plugins(&policy, None));
        Self::of(plugins, loader, &policy, failure)
    }

    /// The same, and one more file that is seen beside them.
    pub(crate) fn load_beside(args: &LoadArgs, file: &Path) -> Result<(Self, Beside), ErrorList> {
        let (policy, loader) = prepared(args)?;
        let plugins = load(
            &loader,
            &files(&args.plugin, args.plugin_dir.as_deref())?,
            &policy,
            Code::WhenCalled,
        );
        let beside = Beside::load(&loader, file, &policy);
        let mut failure = match &beside {
            Ok(beside) => {
                let name = &*beside.plugin.id.name;
                ErrorList::from_iter(plugins.unknown_plugins(&policy, Some(name)))
            }
            // It may be the plugin that the policy file names.
            Err(error) => ErrorList::from_iter([error]),
        };
        match (
            Self::of(plugins, loader, &policy, ErrorList::default()),
            beside,
        ) {
            (Ok(loaded), Ok(beside)) => failure.or_ok((loaded, beside)),
            (Err(refused), _) => {
                failure.absorb(refused);
                Err(failure)
            }
            (Ok(_), Err(_)) => Err(failure),
        }
    }

    /// What was read, if nothing of it is refused.
    fn of(
        plugins: Read,
        loader: Loader,
        policy: &PolicyFile,
        mut failure: ErrorList,
    ) -> Result<Self, ErrorList> {
        let refused = plugins.refused.iter();
        refused.for_each(|refused| failure.add(refused));
        failure.or_ok(())?;
        let disabled = plugins.disabled_names();
        let skipped = plugins.disabled.iter().map(disabled_by_operator).collect();
        let named = |(policy, origin): &(Arc<dyn Policy>, Origin)| {
            (policy.plugin().id.name.clone(), origin.clone())
        };
        let origins = plugins.policies.iter().map(named).collect();
        plugins.misspelled_orders().iter().for_each(report::warn);
        let policies = plugins.policies.into_iter().map(|(policy, _)| policy);
        let renderer = Renderer::new(policies, policy.facts()).map_err(ErrorList::from_iter)?;
        Ok(Self {
            renderer: renderer.with_skipped(skipped),
            loader,
            disabled,
            origins,
        })
    }

    /// The component of a loaded plugin, read once more.
    ///
    /// # Errors
    /// Its file can't be read, or is not the one that was loaded.
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
                let built_in = BUILT_INS.iter().map(|built_in| built_in.component);
                let mut fitting =
                    built_in.filter(|component| sha256_digest(component) == *id.digest);
                let component = fitting.next().unwrap_or_default();
                (Origin::BuiltIn.to_string(), component.to_vec())
            }
        };
        if sha256_digest(&bytes) == *id.digest {
            return Ok(bytes);
        }
        let problem = format!("is not plugin {id} any more; run the command again");
        Err(failed(format!("{origin}: {problem}")))
    }

    /// Runs `run` for each item on the threads that plugin calls run on, and gives each result to `take`, in the order of the
    /// items; a panic is the result of its item.
    pub(crate) fn run_in_order<T: Sync, R: Send>(
        &self,
        items: &[T],
        run: impl Fn(&T) -> R + Sync,
        take: impl FnMut(&T, Result<R, Panicked>) -> Result<(), ErrorList>,
    ) -> Result<(), ErrorList> {
        self.loader.pool().run_in_order(items, run, take)
    }
}

/// The policy file, and what loads plugins.
fn prepared(args: &LoadArgs) -> Result<(PolicyFile, Loader), ErrorList> {
    let policy = match &args.policy {
        Some(path) => PolicyFile::read(path).map_err(ErrorList::from_iter)?,
        None => PolicyFile::default(),
    };
    Ok((policy, loader(&args.cache, cores())?))
}

/// When the code of the built-in plugins is loaded.
#[derive(Clone, Copy)]
enum Code {
    /// Before the first TrainJob, so that a process that runs for long finds out early.
    AtOnce,
    /// By those that are called: a command calls few of them.
    WhenCalled,
}

/// What became of the plugins of one run, in the order in which they were given.
struct Read {
    /// Those that are in order, with where they come from.
    policies: Vec<(Arc<dyn Policy>, Origin)>,
    refused: Vec<Refused>,
    /// Those that the policy file disables.
    disabled: Vec<Declared>,
}

impl Read {
    /// The names of the plugins that the policy file disables.
    fn disabled_names(&self) -> Vec<String> {
        let names: BTreeSet<_> = self.disabled.iter().map(|one| one.name.clone()).collect();
        names.into_iter().collect()
    }

    /// What may be misspelled in the `after` and `before` of manifests. These may name plugins that are not loaded, so that only a name
    /// that is almost one that is loaded says so.
    fn misspelled_orders(&self) -> Vec<String> {
        let policies = || self.policies.iter().map(|(policy, _)| policy.plugin());
        let loaded = policies().map(|plugin| &*plugin.id.name);
        let known: BTreeSet<&str> = loaded
            .chain(self.disabled.iter().map(|one| &*one.name))
            .collect();
        let mut found = Vec::new();
        for plugin in policies() {
            let manifest = &plugin.manifest;
            for (list, names) in [("after", &manifest.after), ("before", &manifest.before)] {
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

    /// The plugins that the policy file names and that nobody gave. A plugin that is refused was given; if its name could not
    /// be read, it may be any of them.
    fn unknown_plugins(&self, policy: &PolicyFile, beside: Option<&str>) -> Vec<Located> {
        let refused = self.refused.iter();
        // The first of a file that is given twice is judged by itself.
        let refused: Option<BTreeSet<&str>> = refused
            .filter(|refused| !matches!(refused, Refused::GivenTwice(_)))
            .map(Refused::plugin)
            .collect();
        let Some(mut known) = refused else {
            return Vec::new();
        };
        let policies = self.policies.iter();
        known.extend(policies.map(|(policy, _)| &*policy.plugin().id.name));
        known.extend(self.disabled.iter().map(|declared| &*declared.name));
        known.extend(beside);
        policy.unknown_plugins(&known)
    }
}

/// Loads the built-in plugins and those files, in this order. One that is refused keeps no other from being loaded; whether that
/// is good enough is the caller's affair.
///
/// The code of built-in plugins is loaded when they are first called, unless it is wanted at once.
fn load(loader: &Loader, files: &[PathBuf], policy: &PolicyFile, code: Code) -> Read {
    let mut loading = Loading {
        policy,
        loaded: Vec::new(),
        refused: Vec::new(),
        disabled: Vec::new(),
    };
    for plugin in BUILT_INS {
        let (name, component) = (plugin.name, plugin.component);
        loading.add(Origin::BuiltIn, Settings::built_in(), |settings| {
            Ok(match code {
                Code::AtOnce => Arc::new(loader.load_built_in(name, component, settings)?),
                Code::WhenCalled => Arc::new(loader.defer_built_in(name, component, settings)?),
            })
        });
    }
    let mut given = BTreeSet::new();
    for path in files {
        let file = path.canonicalize().unwrap_or_else(|_| path.clone());
        if !given.insert(file) {
            loading.refused.push(Refused::GivenTwice(path.clone()));
            continue;
        }
        let origin = Origin::File(path.clone());
        loading.add(origin, Settings::default(), |settings| {
            Ok(Arc::new(loader.load_file(path, settings)?))
        });
    }
    Read {
        policies: loading.loaded,
        refused: loading.refused,
        disabled: loading.disabled,
    }
}

/// Plugins that are being loaded, with where they come from.
struct Loading<'p> {
    policy: &'p PolicyFile,
    loaded: Vec<(Arc<dyn Policy>, Origin)>,
    refused: Vec<Refused>,
    disabled: Vec<Declared>,
}

/// What the operator sets for the plugin of a manifest.
type SettingsOf<'s> = &'s mut dyn FnMut(&Manifest) -> Settings;

impl Loading<'_> {
    fn add(
        &mut self,
        origin: Origin,
        defaults: Settings,
        load: impl FnOnce(SettingsOf<'_>) -> Result<Arc<dyn Policy>, LoadError>,
    ) {
        let policy = self.policy;
        let mut declared = None;
        let loaded = load(&mut |manifest| {
            declared = Some(self::declared(manifest));
            policy.settings(&manifest.name, defaults.clone())
        });
        match loaded {
            Ok(loaded) => self.keep(loaded, origin),
            Err(error) if is_disabled(&error) => self.disabled.extend(declared),
            Err(error) => self.refused.push(Refused::Load { declared, error }),
        }
    }

    /// Keeps a plugin unless an earlier one has its name.
    fn keep(&mut self, policy: Arc<dyn Policy>, origin: Origin) {
        let name = &policy.plugin().id.name;
        let mut earlier = self.loaded.iter();
        match earlier.find(|(earlier, _)| earlier.plugin().id.name == *name) {
            None => self.loaded.push((policy, origin)),
            Some((_, first)) => self.refused.push(Refused::Twice {
                name: name.to_string(),
                first: first.clone(),
                second: origin,
            }),
        }
    }
}

/// Whether a plugin is not loaded because the operator does not want it.
fn is_disabled(error: &LoadError) -> bool {
    matches!(
        &*error.problem,
        LoadProblem::Plugin(PluginError::Disabled(_))
    )
}

/// What TrainJobs have to know of a plugin that the policy file disables.
fn disabled_by_operator(declared: &Declared) -> SkippedPlugin {
    SkippedPlugin {
        declared: Some(declared.clone()),
        why: PluginError::Disabled(declared.name.clone()).to_string(),
        is_disabled: true,
    }
}

/// What a manifest says of what needs its plugin.
fn declared(manifest: &Manifest) -> Declared {
    Declared {
        name: manifest.name.clone(),
        active_when: manifest.active_when.clone(),
    }
}

/// The plugin files that are given, and those of the folder.
pub(crate) fn files(given: &[PathBuf], folder: Option<&Path>) -> Result<Vec<PathBuf>, ErrorList> {
    let mut files = given.to_owned();
    if let Some(folder) = folder {
        files.extend(files_in(folder)?);
    }
    Ok(files)
}

/// The plugin files of a folder, by name.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>, ErrorList> {
    let unreadable =
        |error: std::io::Error| ErrorList::from_iter([format!("{}: {error}", shown(folder))]);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|ending| ending == "wasm") && !path.is_dir() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// What loads plugins, with the compiled cache in the user's folders or in the one that is given; so many calls run at once.
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

/// How many processors this process may use.
pub(crate) fn cores() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}
