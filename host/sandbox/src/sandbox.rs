//! The environment that all plugins of a loader share: engine, linker, contract, and the cache of compiled components.

use std::sync::Arc;

use trainyard_model::{plugin_info::PluginInfo, text::clean};
use wasmtime::component::{Component, Linker};

use crate::{
    cache::{Cache, entry_name},
    compile,
    compiled::CompiledFolder,
    contract::Contract,
    engine::RunningEngine,
    error::{LoadProblem, not_compiled},
    plugin::SandboxedPlugin,
    state::State,
    trusted_code::{self, TrustedCode},
};

/// The environment of plugins.
pub(crate) struct Sandbox {
    pub(crate) engine: Arc<RunningEngine>,
    pub(crate) contract: Contract,
    pub(crate) linker: Linker<State>,
    pub(crate) compiled: Option<CompiledFolder>,
    pub(crate) cache: Option<Cache>,
}

impl Sandbox {
    /// Loads the code of a plugin from the cache, or compiles it, and links it.
    ///
    /// # Errors
    /// It could not be compiled, or does not match the contract.
    pub(crate) fn load(
        &self,
        plugin: Arc<PluginInfo>,
        bytes: &[u8],
        compile: impl FnOnce(&PluginInfo, &[u8]) -> Result<TrustedCode, LoadProblem>,
    ) -> Result<SandboxedPlugin, LoadProblem> {
        let component = self.component(&plugin, bytes, compile)?;
        let id = plugin.id.clone();
        let engine = self.engine.clone();
        SandboxedPlugin::new(engine, &self.contract, &self.linker, &component, plugin)
            .map_err(|problem| LoadProblem::Link { id, problem })
    }

    /// Like [`Self::load`], for a component that is part of this program and is compiled in this process.
    ///
    /// # Errors
    /// See [`Self::load`].
    pub(crate) fn load_trusted(
        &self,
        plugin: Arc<PluginInfo>,
        bytes: &[u8],
    ) -> Result<SandboxedPlugin, LoadProblem> {
        self.load(plugin, bytes, |plugin, bytes| {
            compile::in_process(&self.engine.engine, bytes).map_err(not_compiled(plugin))
        })
    }

    /// The compiled component, from the cache or by compiling.
    fn component(
        &self,
        plugin: &PluginInfo,
        bytes: &[u8],
        compile: impl FnOnce(&PluginInfo, &[u8]) -> Result<TrustedCode, LoadProblem>,
    ) -> Result<Component, LoadProblem> {
        let (id, engine) = (&plugin.id, &self.engine.engine);
        let name = self.entry_name(plugin);
        let compiled = || self.compiled.as_ref()?.get(&name, plugin);
        let cached = || self.cache.as_ref()?.get(&name);
        for code in [&compiled as &dyn Fn() -> _, &cached] {
            match code().map(|code| trusted_code::deserialize(engine, &code)) {
                Some(Ok(component)) => return Ok(component),
                Some(Err(error)) => {
                    tracing::warn!(plugin = %id, %error, "cannot load the compiled code of a plugin; compiling it again");
                }
                None => {}
            }
        }
        let code = compile(plugin, bytes)?;
        let component =
            trusted_code::deserialize(engine, &code).map_err(|error| LoadProblem::Code {
                id: id.clone(),
                problem: clean(&format!("{error:#}")),
            })?;
        if let Some(cache) = &self.cache {
            cache.put(&name, &code);
        }
        Ok(component)
    }

    /// The name of a plugin's compiled code, in the cache and in a directory of compiled plugins.
    pub(crate) fn entry_name(&self, plugin: &PluginInfo) -> String {
        entry_name(&plugin.id.digest, self.compatibility())
    }

    /// A number that differs between incompatible engines and between contracts.
    fn compatibility(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        let engine = &self.engine.engine;
        engine.precompile_compatibility_hash().hash(&mut hasher);
        self.contract.fingerprint().hash(&mut hasher);
        hasher.finish()
    }
}
