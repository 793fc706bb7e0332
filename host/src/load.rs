//! Loads plugins: the built-in ones and those given as files, each under what the operator sets for it.

use std::{
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use thiserror::Error;
use trainyard_model::{manifest::Manifest, plan::PlanError, plugin::Settings, policy::Policy};
use trainyard_render::Renderer;
use trainyard_sandbox::{
    CachePaths, CompilerCommand, LoadError, LoadLimits, Loader, LoaderOptions, SandboxedPolicy,
};

use crate::{
    built_ins::BUILT_INS, cli::LoadArgs, plugin::COMPILE_WORKER, policy_file::PolicyFile, report,
    report::Failure,
};

/// The plugins of one run of a command.
pub(crate) struct Loaded {
    pub(crate) renderer: Renderer,
    pub(crate) loader: Loader,
}

impl Loaded {
    /// Loads the built-in plugins and those that were given, and checks them against each other. A command works with all of
    /// them or not at all.
    pub(crate) fn load(args: &LoadArgs) -> Result<Self, Failure> {
        let policy = match &args.policy {
            Some(path) => PolicyFile::read(path).map_err(Failure::from_iter)?,
            None => PolicyFile::default(),
        };
        let loader = loader(args.cache_dir.as_deref())?;
        let plugins = load(&loader, &args.plugin, &policy);
        for name in plugins.not_loaded(&policy) {
            report::warn(format!(
                "the policy file speaks of the plugin `{name}`, which is not loaded"
            ));
        }
        Failure::from_iter(&plugins.refused).or_ok(())?;
        Renderer::new(plugins.policies, policy.facts())
            .map(|renderer| Self { renderer, loader })
            .map_err(Failure::from_iter)
    }

    /// Runs `run` for each item on the threads that plugin calls run on.
    pub(crate) fn run_each<T: Sync, R: Send>(
        &self,
        items: &[T],
        run: impl Fn(&T) -> R + Send + Sync,
    ) -> Vec<R> {
        self.loader.pool().run_each(items, run)
    }
}

/// Plugins for a process that goes on without those that are refused.
pub(crate) struct Fitting {
    pub(crate) renderer: Renderer,
    pub(crate) loader: Loader,
    /// What was left out: the file or plugin, and why.
    pub(crate) refused: Vec<(String, String)>,
}

impl Fitting {
    /// Loads the built-in plugins and those files. One that can't run beside the others is left out as one that does not load.
    pub(crate) fn load(
        files: &[PathBuf],
        policy: &PolicyFile,
        cache_dir: Option<&Path>,
        wrap: impl Fn(Arc<dyn Policy>) -> Arc<dyn Policy>,
    ) -> Result<Self, Failure> {
        let loader = loader(cache_dir)?;
        let plugins = load(&loader, files, policy);
        for name in plugins.not_loaded(policy) {
            tracing::warn!(
                plugin = name,
                "the policy file speaks of a plugin that is not loaded"
            );
        }
        let refused = plugins.refused.iter();
        let mut refused: Vec<_> = refused
            .map(|refused| (refused.file(), refused.to_string()))
            .collect();
        let mut policies = plugins.policies;
        let renderer = loop {
            let wrapped = policies.iter().cloned().map(&wrap);
            let errors = match Renderer::new(wrapped, policy.facts()) {
                Ok(renderer) => break renderer,
                Err(errors) => errors,
            };
            // Built-in plugins come first, so that the last one is a file's: without it the first error is gone.
            let is_named = |policy: &Arc<dyn Policy>, error: &PlanError| {
                error.plugins().contains(&&*policy.plugin().id.name)
            };
            let found = errors.first().and_then(|error| {
                let at = policies
                    .iter()
                    .rposition(|policy| is_named(policy, error))?;
                Some((at, error))
            });
            match found {
                Some((at, error)) if at >= BUILT_INS.len() => {
                    let left_out = policies.remove(at);
                    let name = &left_out.plugin().id.name;
                    refused.push((
                        name.to_string(),
                        format!("plugin {name} is left out: {error}"),
                    ));
                }
                _ => return Err(Failure::from_iter(errors)),
            }
        };
        Ok(Self {
            renderer,
            loader,
            refused,
        })
    }
}

/// Plugins, and those that are refused.
pub(crate) struct Plugins {
    pub(crate) policies: Vec<Arc<dyn Policy>>,
    pub(crate) refused: Vec<Refused>,
}

impl Plugins {
    /// The names that the policy file speaks of, and that nothing has. Of a plugin that is refused there is something better to
    /// say, and a refused file may be any of them where its name is not known.
    fn not_loaded<'p>(&self, policy: &'p PolicyFile) -> Vec<&'p str> {
        let refused = self.refused.iter();
        // The first of a file that is given twice is judged by itself.
        let refused: Option<Vec<&str>> = refused
            .filter(|refused| !matches!(refused, Refused::GivenTwice(_)))
            .map(Refused::plugin)
            .collect();
        let Some(refused) = refused else {
            return Vec::new();
        };
        let loaded = |name: &str| {
            let mut policies = self.policies.iter();
            policies.any(|policy| *policy.plugin().id.name == *name)
        };
        let mut names = policy.names();
        names.retain(|name| !loaded(name) && !refused.contains(name));
        names
    }
}

/// A plugin that is not loaded.
#[derive(Debug, Error)]
pub(crate) enum Refused {
    /// It is not in order, or not what the operator allows.
    #[error("{error}")]
    Load {
        /// Its name, where its manifest could be read.
        name: Option<String>,
        /// Why.
        error: LoadError,
    },
    /// Another one has its name.
    #[error("{second} has the name `{name}`, as {first} has: a run has one plugin of a name")]
    Twice {
        /// The name.
        name: String,
        /// Where the one that stays comes from.
        first: Origin,
        /// Where this one comes from.
        second: Origin,
    },
    /// The same file was given before.
    #[error("the plugin file {} is given twice: give it once", .0.display())]
    GivenTwice(PathBuf),
}

impl Refused {
    /// The file, or the name of a built-in plugin.
    fn file(&self) -> String {
        match self {
            Self::Load { error, .. } => error.file.clone(),
            Self::Twice { second, .. } => second.to_string(),
            Self::GivenTwice(file) => file.display().to_string(),
        }
    }

    /// The plugin's name, where it is known.
    fn plugin(&self) -> Option<&str> {
        match self {
            Self::Load { name, .. } => name.as_deref(),
            Self::Twice { name, .. } => Some(name),
            Self::GivenTwice(_) => None,
        }
    }
}

/// Where a plugin comes from.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// It is part of this program.
    BuiltIn,
    /// A file.
    File(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("the built-in plugin"),
            Self::File(path) => write!(f, "the plugin file {}", path.display()),
        }
    }
}

/// Loads the built-in plugins and those files, in this order. One that is refused keeps no other from being loaded; whether that
/// is good enough is the caller's affair.
pub(crate) fn load(loader: &Loader, files: &[PathBuf], policy: &PolicyFile) -> Plugins {
    let mut loading = Loading {
        policy,
        loaded: Vec::new(),
        refused: Vec::new(),
    };
    for plugin in BUILT_INS {
        let (name, component) = (plugin.name, plugin.component);
        loading.add(Origin::BuiltIn, Settings::built_in(), |settings| {
            loader.load_built_in(name, component, settings)
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
            loader.load_file(path, settings)
        });
    }
    let policies = loading.loaded.into_iter().map(|(policy, _)| policy);
    Plugins {
        policies: policies.collect(),
        refused: loading.refused,
    }
}

/// Plugins that are being loaded, with where they come from.
struct Loading<'p> {
    policy: &'p PolicyFile,
    loaded: Vec<(Arc<dyn Policy>, Origin)>,
    refused: Vec<Refused>,
}

/// What the operator sets for the plugin of a manifest.
type SettingsOf<'s> = &'s mut dyn FnMut(&Manifest) -> Settings;

impl Loading<'_> {
    fn add(
        &mut self,
        origin: Origin,
        defaults: Settings,
        load: impl FnOnce(SettingsOf<'_>) -> Result<SandboxedPolicy, LoadError>,
    ) {
        let policy = self.policy;
        let mut name = None;
        let loaded = load(&mut |manifest| {
            name = Some(manifest.name.clone());
            policy.settings(&manifest.name, defaults.clone())
        });
        match loaded {
            Ok(loaded) => self.keep(Arc::new(loaded), origin),
            Err(error) => self.refused.push(Refused::Load { name, error }),
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

/// The plugin files of a folder, by name.
pub(crate) fn files_in(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable =
        |error: std::io::Error| Failure::from_iter([format!("{}: {error}", folder.display())]);
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

/// What loads plugins, with the compiled cache in the user's folders or in the one that is given.
pub(crate) fn loader(cache_dir: Option<&Path>) -> Result<Loader, Failure> {
    let options = LoaderOptions {
        compiler: CompilerCommand::this_program(COMPILE_WORKER)?,
        cache: cache(CachePaths::of_user(), cache_dir),
        limits: LoadLimits::default(),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
    };
    Loader::new(options).map_err(|error| Failure::from_iter([error]))
}

/// The cache's key lies outside of its folder: in the user's, else, as in a container without a home, beside it.
fn cache(of_user: Option<CachePaths>, cache_dir: Option<&Path>) -> Option<CachePaths> {
    let Some(folder) = cache_dir else {
        return of_user;
    };
    Some(match of_user {
        Some(of_user) => CachePaths {
            folder: folder.to_owned(),
            ..of_user
        },
        None => CachePaths {
            folder: folder.join("compiled"),
            key: folder.join("cache.key"),
        },
    })
}
