//! Loading of plugins.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use trainyard_model::{
    manifest::Manifest,
    plugin::Plugin,
    plugin_info::{PluginInfo, Settings},
    text::clean,
};
use wasmtime::component::Linker;

use crate::{
    built_in::BuiltIn,
    cache::{Cache, CachePaths},
    compile::{self, Answer, CompilerCommand, Task},
    compiled::{self, CompiledFolder},
    contract::{Contract, OURS},
    deferred::DeferredPlugin,
    engine::RunningEngine,
    error::{CompileError, LoadError, LoadProblem, ScreenError, not_compiled},
    load_limits::LoadLimits,
    plugin::SandboxedPlugin,
    pool::Pool,
    sandbox::Sandbox,
    screen::{self, Outlined},
};

/// Options of a [`Loader`].
#[derive(Clone, Debug)]
pub struct LoaderOptions {
    /// The command that compiles untrusted components.
    pub compiler: CompilerCommand,
    /// The cache of compiled components. `None` disables it.
    pub cache: Option<CachePaths>,
    /// A directory that [`Loader::write_compiled`] wrote. It is read before the cache, and trusted like this program.
    pub compiled: Option<PathBuf>,
    /// The limits of plugin files.
    pub limits: LoadLimits,
    /// The number of concurrent calls.
    pub threads: usize,
}

/// Loads plugins.
pub struct Loader {
    options: LoaderOptions,
    sandbox: Arc<Sandbox>,
    pool: Pool,
}

/// Why the sandbox could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The engine or its threads could not be created.
    #[error("cannot set up the sandbox: {0}")]
    Engine(String),
    /// The directory of compiled plugins cannot be used.
    #[error("{}: cannot be used as the directory of compiled plugins: {error}", clean(&folder.display().to_string()))]
    Compiled {
        /// The directory.
        folder: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl Loader {
    /// Sets the sandbox up.
    ///
    /// # Errors
    /// Why it could not be set up.
    pub fn new(options: LoaderOptions) -> Result<Self, SetupError> {
        Self::for_contract(OURS, options)
    }

    /// Like [`Self::new`], for a host with that contract.
    pub(crate) fn for_contract(
        contract: Contract,
        options: LoaderOptions,
    ) -> Result<Self, SetupError> {
        let setup = |error: &dyn std::fmt::Display| SetupError::Engine(error.to_string());
        let threads = options.threads.max(1);
        // One more than there are threads, because a plugin can be tried out while all are busy.
        let calls = u32::try_from(threads + 1).map_err(|error| setup(&error))?;
        let engine = RunningEngine::new(calls).map_err(|error| setup(&format!("{error:#}")))?;
        let mut linker = Linker::new(&engine.engine);
        let linked = contract.add_to_linker(&mut linker);
        linked.map_err(|error| setup(&format!("{error:#}")))?;
        let pool = Pool::new(threads).map_err(|error| setup(&error))?;
        let cache = options.cache.as_ref().and_then(|paths| match Cache::open(paths, options.limits.cache_bytes) {
            Ok(cache) => Some(cache),
            Err(error) => {
                tracing::warn!(folder = %paths.folder.display(), %error, "compiled plugins cannot be cached; plugins are compiled each time");
                None
            }
        });
        let compiled = options.compiled.as_ref().map(|folder| {
            CompiledFolder::open(folder).map_err(|error| SetupError::Compiled {
                folder: folder.clone(),
                error,
            })
        });
        Ok(Self {
            options,
            sandbox: Arc::new(Sandbox {
                engine: Arc::new(engine),
                contract,
                linker,
                compiled: compiled.transpose()?,
                cache,
            }),
            pool,
        })
    }

    /// The threads that calls run on.
    #[must_use]
    pub const fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Loads a plugin file. `settings` returns the operator's settings for the plugin.
    ///
    /// # Errors
    /// Why it cannot be loaded.
    pub fn load_file(
        &self,
        path: &Path,
        settings: impl FnOnce(&Manifest) -> Settings,
    ) -> Result<SandboxedPlugin, LoadError> {
        let file = clean(&path.display().to_string());
        let load = || {
            let bytes = screen::read(path, &self.options.limits)?;
            self.load_untrusted(bytes, settings)
        };
        load().map_err(|problem: LoadProblem| LoadError {
            file,
            problem: Box::new(problem),
        })
    }

    /// Loads an untrusted component.
    ///
    /// # Errors
    /// Why it cannot be loaded.
    pub fn load_untrusted(
        &self,
        bytes: Vec<u8>,
        settings: impl FnOnce(&Manifest) -> Settings,
    ) -> Result<SandboxedPlugin, LoadProblem> {
        let compiler = &self.options.compiler;
        self.load_compiled_by(bytes, settings, |bytes, limits| {
            compile::in_child(compiler, Task::Compile, bytes, limits)
        })
    }

    /// Like [`Self::load_untrusted`], but compiles the component in this process, whose memory and time are then not limited. This is for
    /// fuzzers, for which a process for each input would be too slow.
    ///
    /// # Errors
    /// Why it cannot be loaded.
    pub fn load_without_a_process(
        &self,
        bytes: Vec<u8>,
        settings: impl FnOnce(&Manifest) -> Settings,
    ) -> Result<SandboxedPlugin, LoadProblem> {
        self.load_compiled_by(bytes, settings, |bytes, _| {
            compile::answer(bytes, Task::Compile, || {
                Ok(self.sandbox.engine.engine.clone())
            })
            .map_err(CompileError::Refused)
        })
    }

    fn load_compiled_by(
        &self,
        bytes: Vec<u8>,
        settings: impl FnOnce(&Manifest) -> Settings,
        compile: impl FnOnce(&[u8], &LoadLimits) -> Result<Answer, CompileError>,
    ) -> Result<SandboxedPlugin, LoadProblem> {
        let limits = &self.options.limits;
        let outlined = Outlined::new(bytes, limits, &self.sandbox.contract)?;
        let (plugin, bytes) = set_up(outlined, settings)?;
        let plugin = self.sandbox.load(plugin, &bytes, |plugin, bytes| {
            let limits = limits.with(&plugin.settings.compile);
            let answer = compile(bytes, &limits).map_err(not_compiled(plugin))?;
            // Entries of the cache have passed this check.
            answer.surface.imports_of(&plugin.manifest.phases)?;
            Ok(answer.code)
        })?;
        plugin.try_out()?;
        Ok(plugin)
    }

    /// Loads a plugin that is part of this program.
    ///
    /// # Errors
    /// Why it cannot be loaded.
    pub fn load_built_in(
        &self,
        built_in: &BuiltIn,
        settings: impl FnOnce(&Manifest) -> Settings,
    ) -> Result<SandboxedPlugin, LoadError> {
        let load = || {
            let plugin = self.set_up_built_in(built_in, settings)?;
            self.sandbox.load_trusted(plugin, built_in.component())
        };
        load().map_err(of_built_in(built_in.name()))
    }

    /// Reads the manifest of a plugin that is part of this program. Its code is loaded when the plugin is first called.
    ///
    /// # Errors
    /// Why it cannot be loaded.
    pub fn defer_built_in(
        &self,
        built_in: &BuiltIn,
        settings: impl FnOnce(&Manifest) -> Settings,
    ) -> Result<DeferredPlugin, LoadError> {
        let plugin = self
            .set_up_built_in(built_in, settings)
            .map_err(of_built_in(built_in.name()))?;
        let (sandbox, built_in) = (self.sandbox.clone(), built_in.clone());
        Ok(DeferredPlugin::new(sandbox, plugin, built_in))
    }

    /// Writes the code of a plugin into a directory, for [`LoaderOptions::compiled`]. Returns the name of the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_compiled(&self, plugin: &SandboxedPlugin, folder: &Path) -> io::Result<String> {
        let name = self.sandbox.entry_name(plugin.info());
        let code = plugin.compiled().map_err(io::Error::other)?;
        compiled::write(folder, &name, &code)?;
        Ok(name)
    }

    /// Combines a built-in plugin with the operator's settings. Its component was checked when this program was built.
    fn set_up_built_in(
        &self,
        built_in: &BuiltIn,
        settings: impl FnOnce(&Manifest) -> Settings,
    ) -> Result<Arc<PluginInfo>, LoadProblem> {
        let manifest = built_in
            .parsed_manifest(&self.sandbox.contract)
            .map_err(ScreenError::from)?;
        let settings = settings(&manifest);
        let plugin = PluginInfo::new(manifest, built_in.digest(), settings)?;
        Ok(Arc::new(plugin))
    }
}

/// Combines a component with the operator's settings.
fn set_up(
    outlined: Outlined,
    settings: impl FnOnce(&Manifest) -> Settings,
) -> Result<(Arc<PluginInfo>, Vec<u8>), LoadProblem> {
    let Outlined {
        bytes,
        digest,
        manifest,
    } = outlined;
    let settings = settings(&manifest);
    Ok((
        Arc::new(PluginInfo::new(manifest, &digest, settings)?),
        bytes,
    ))
}

fn of_built_in(name: &str) -> impl FnOnce(LoadProblem) -> LoadError {
    move |problem| LoadError {
        file: format!("built-in {name}"),
        problem: Box::new(problem),
    }
}
