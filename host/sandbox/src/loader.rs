//! From bytes to a plugin that can be called.

use std::{path::Path, sync::Arc};

use trainyard_model::{
    manifest::Manifest,
    plugin::{Plugin, PluginError, PluginId, Settings},
    policy::CallFailure,
    text::clean,
};
use wasmtime::component::{Component, Linker};

use crate::{
    cache::{Cache, CachePaths, entry_name},
    compile::{self, CompileError, CompilerCommand, Task},
    contract::{Contract, OURS},
    engine::RunningEngine,
    policy::{LinkError, SandboxedPolicy},
    pool::Pool,
    screen::{self, LoadLimits, Outlined, ScreenError},
    state::State,
    vouched::{self, Vouched},
};

/// How plugins are loaded.
#[derive(Clone, Debug)]
pub struct LoaderOptions {
    /// The program that compiles foreign components.
    pub compiler: CompilerCommand,
    /// Where compiled components are kept; none keeps none.
    pub cache: Option<CachePaths>,
    /// What a file may be made of.
    pub limits: LoadLimits,
    /// Calls at once.
    pub threads: usize,
}

/// Loads plugins.
pub struct Loader {
    options: LoaderOptions,
    engine: Arc<RunningEngine>,
    contract: Contract,
    linker: Linker<State>,
    cache: Option<Cache>,
    pool: Pool,
}

/// Why the sandbox can't be set up.
#[derive(Debug, thiserror::Error)]
#[error("the sandbox can't be set up: {0}")]
pub struct SetupError(String);

/// A plugin file that is refused.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct LoadError {
    /// The file, or the name of a built-in plugin.
    pub file: String,
    /// Why.
    pub problem: Box<LoadProblem>,
}

/// Why a plugin file is refused.
#[derive(Debug, thiserror::Error)]
pub enum LoadProblem {
    /// It is no plugin.
    #[error(transparent)]
    Screen(#[from] ScreenError),
    /// It is not compiled.
    #[error("plugin {id}: {problem}")]
    Compile {
        /// The plugin.
        id: PluginId,
        /// Why.
        problem: CompileError,
    },
    /// Its claims or configuration are refused.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// It does not fit the contract.
    #[error("plugin {id}: {problem}")]
    Link {
        /// The plugin.
        id: PluginId,
        /// What does not fit.
        problem: LinkError,
    },
    /// It misbehaves while it is instantiated.
    #[error("plugin {id}: while it was instantiated it {cause}")]
    Instantiate {
        /// The plugin.
        id: PluginId,
        /// How.
        cause: Box<CallFailure>,
    },
    /// The compiled code does not load.
    #[error("plugin {id}: its compiled code does not load: {problem}")]
    Code {
        /// The plugin.
        id: PluginId,
        /// Why.
        problem: String,
    },
}

impl Loader {
    /// Sets the sandbox up.
    ///
    /// # Errors
    /// The engine or its threads can't be made.
    pub fn new(options: LoaderOptions) -> Result<Self, SetupError> {
        Self::speaking(OURS, options)
    }

    /// The same for a host of that contract.
    pub(crate) fn speaking(contract: Contract, options: LoaderOptions) -> Result<Self, SetupError> {
        let setup = |error: &dyn std::fmt::Display| SetupError(error.to_string());
        let threads = options.threads.max(1);
        // One more than threads call: a plugin may be tried out while all are busy.
        let calls = u32::try_from(threads + 1).map_err(|error| setup(&error))?;
        let engine = RunningEngine::new(calls).map_err(|error| setup(&format!("{error:#}")))?;
        let mut linker = Linker::new(&engine.engine);
        let linked = contract.add_to_linker(&mut linker);
        linked.map_err(|error| setup(&format!("{error:#}")))?;
        let pool = Pool::new(threads).map_err(|error| setup(&error))?;
        let cache = options.cache.as_ref().and_then(|paths| match Cache::open(paths, options.limits.cache_bytes) {
            Ok(cache) => Some(cache),
            Err(error) => {
                tracing::warn!(folder = %paths.folder.display(), %error, "no compiled cache; plugins are compiled each time");
                None
            }
        });
        Ok(Self {
            options,
            engine: Arc::new(engine),
            contract,
            linker,
            cache,
            pool,
        })
    }

    /// The threads that calls run on.
    #[must_use]
    pub const fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Loads a plugin file. `settings` gives what the operator sets for the plugin of that manifest.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn load_file(
        &self,
        path: &Path,
        settings: impl FnOnce(&Manifest) -> Settings,
    ) -> Result<SandboxedPolicy, LoadError> {
        let file = clean(&path.display().to_string());
        let load = || {
            let bytes = screen::read(path, &self.options.limits)?;
            self.load_foreign(bytes, settings)
        };
        load().map_err(|problem: LoadProblem| LoadError {
            file,
            problem: Box::new(problem),
        })
    }

    /// Loads a component that nobody vouches for.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn load_foreign(
        &self,
        bytes: Vec<u8>,
        settings: impl FnOnce(&Manifest) -> Settings,
    ) -> Result<SandboxedPolicy, LoadProblem> {
        let limits = &self.options.limits;
        let outlined = Outlined::new(bytes, limits, &self.contract)?;
        let policy = self.link(outlined, settings, |plugin, bytes| {
            let compile =
                || compile::in_child(&self.options.compiler, Task::Compile, bytes, limits);
            let answer = compile().map_err(not_compiled(plugin))?;
            // An entry of the cache stands for this check too.
            answer.surface.imports_of(&plugin.manifest.phases)?;
            Ok(answer.code)
        })?;
        policy.try_out()?;
        Ok(policy)
    }

    /// Loads a plugin that is part of this program.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn load_built_in(
        &self,
        name: &str,
        bytes: &[u8],
        settings: impl FnOnce(&Manifest) -> Settings,
    ) -> Result<SandboxedPolicy, LoadError> {
        let load = || {
            // It was checked when this program was built, so that a start costs no more than reading its manifest.
            let outlined = Outlined::new(bytes.to_vec(), &LoadLimits::default(), &self.contract)?;
            self.link(outlined, settings, |plugin, bytes| {
                compile::here(&self.engine.engine, bytes).map_err(not_compiled(plugin))
            })
        };
        load().map_err(|problem: LoadProblem| LoadError {
            file: format!("built-in {name}"),
            problem: Box::new(problem),
        })
    }

    fn link(
        &self,
        outlined: Outlined,
        settings: impl FnOnce(&Manifest) -> Settings,
        compile: impl FnOnce(&Plugin, &[u8]) -> Result<Vouched, LoadProblem>,
    ) -> Result<SandboxedPolicy, LoadProblem> {
        let Outlined {
            bytes,
            digest,
            manifest,
        } = outlined;
        let settings = settings(&manifest);
        let plugin = Arc::new(Plugin::new(manifest, &digest, settings)?);
        let component = self.component(&plugin, &bytes, compile)?;
        let id = plugin.id.clone();
        let (engine, contract) = (self.engine.clone(), &self.contract);
        SandboxedPolicy::new(engine, contract, &self.linker, &component, plugin)
            .map_err(|problem| LoadProblem::Link { id, problem })
    }

    /// The compiled component, from the cache or by compiling.
    fn component(
        &self,
        plugin: &Plugin,
        bytes: &[u8],
        compile: impl FnOnce(&Plugin, &[u8]) -> Result<Vouched, LoadProblem>,
    ) -> Result<Component, LoadProblem> {
        let (id, engine) = (&plugin.id, &self.engine.engine);
        let name = entry_name(&id.digest, self.compatibility());
        if let Some(code) = self.cache.as_ref().and_then(|cache| cache.get(&name)) {
            match vouched::deserialize(engine, &code) {
                Ok(component) => return Ok(component),
                Err(error) => {
                    tracing::warn!(%error, "a cached plugin does not load; it is compiled again")
                }
            }
        }
        let code = compile(plugin, bytes)?;
        let component = vouched::deserialize(engine, &code).map_err(|error| LoadProblem::Code {
            id: id.clone(),
            problem: clean(&format!("{error:#}")),
        })?;
        if let Some(cache) = &self.cache {
            cache.put(&name, &code);
        }
        Ok(component)
    }

    /// A number that differs between engines whose code does not fit each other, and between contracts.
    fn compatibility(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        let engine = &self.engine.engine;
        engine.precompile_compatibility_hash().hash(&mut hasher);
        self.contract.fingerprint().hash(&mut hasher);
        hasher.finish()
    }
}

fn not_compiled(plugin: &Plugin) -> impl FnOnce(CompileError) -> LoadProblem {
    let id = plugin.id.clone();
    move |problem| LoadProblem::Compile { id, problem }
}
