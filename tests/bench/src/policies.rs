//! The plugins, as components in the sandbox and natively in this process.

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, Result, anyhow};
use serde_json::{Value, json};
use trainyard_componentize::build::{self, Built, Messages, Options};
use trainyard_model::{
    plugin::{Phase, Plugin},
    plugin_info::Settings,
    session::Session,
};
pub use trainyard_policies::{BUILT_INS, DRA};
use trainyard_policies::{BuiltInParts, TORCH};
use trainyard_render::{ClusterFacts, Renderer};
use trainyard_sandbox::{BuiltIn, CompilerCommand, LoadLimits, Loader, LoaderOptions};
use trainyard_sdk::{PluginParts, native::NativePlugin};

/// Plugins, each with its folder and its native form.
pub type Plugins = &'static [BuiltInParts];

/// Torch, an example and two test plugins.
pub const CHAIN: Plugins = &[
    TORCH,
    ("examples/plugins/nccl-fabric", &nccl_fabric::PLUGIN),
    (
        "tests/plugins/shared-memory",
        &trainyard_test_plugin_shared_memory::PLUGIN,
    ),
    ("tests/plugins/team", &trainyard_test_plugin_team::PLUGIN),
];

/// Returns the configuration of a plugin of the chain.
pub(crate) fn config(plugin: &str) -> Value {
    match plugin {
        "nccl-fabric" => json!({"env": {
            "NCCL_DEBUG": "WARN", "NCCL_IB_DISABLE": "0", "NCCL_SOCKET_IFNAME": "eth0", "NCCL_SOCKET_NTHREADS": "4",
        }}),
        _ => json!({}),
    }
}

/// Policies in the order in which they run.
pub struct Chain {
    plugins: Vec<Arc<dyn Plugin>>,
    configs: Vec<Arc<Value>>,
}

impl Chain {
    fn new(plugins: Vec<Arc<dyn Plugin>>) -> Result<Self> {
        let configs = plugins
            .iter()
            .map(|plugin| plugin.info().config(config(&plugin.info().manifest.name)))
            .collect::<Result<_, _>>()
            .map_err(|errors| anyhow!("{errors:?}"))?;
        Ok(Self { plugins, configs })
    }

    /// Returns a renderer with all plugins.
    ///
    /// # Errors
    /// The plugins conflict.
    pub fn renderer(&self) -> Result<Renderer> {
        Renderer::new(self.plugins.iter().cloned(), ClusterFacts::default())
            .map_err(|errors| anyhow!("{errors:?}"))
    }

    /// Calls `transform` of the first plugins, one after the other.
    ///
    /// # Errors
    /// A call failed.
    pub fn call(&self, session: &mut Session, count: usize) -> Result<()> {
        let calls = self
            .plugins
            .iter()
            .zip(&self.configs)
            .zip(0u16..)
            .take(count);
        for ((plugin, config), rank) in calls {
            session.call(&**plugin, Phase::Transform, rank, config.clone())?;
        }
        Ok(())
    }
}

/// Returns a loader for this number of concurrent calls, without a cache.
///
/// # Errors
/// The sandbox cannot be set up.
pub fn loader(threads: usize) -> Result<Loader> {
    // All components are trusted, so they are compiled in this process.
    let compiler = CompilerCommand {
        program: "none".into(),
        args: Vec::new(),
    };
    loader_with(compiler, None, threads)
}

/// Returns a loader with this compiler and this directory of compiled plugins, without a cache.
///
/// # Errors
/// The sandbox cannot be set up.
pub fn loader_with(
    compiler: CompilerCommand,
    compiled: Option<&Path>,
    threads: usize,
) -> Result<Loader> {
    Ok(Loader::new(LoaderOptions {
        compiler,
        cache: None,
        compiled: compiled.map(Path::to_owned),
        limits: LoadLimits::default(),
        threads,
    })?)
}

/// Returns the plugins as components.
///
/// # Errors
/// A component cannot be built or loaded.
pub fn sandboxed(loader: &Loader, plugins: &[BuiltInParts]) -> Result<Chain> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .context("no workspace")?;
    let options = Options {
        target_dir: None,
        locked: true,
        messages: Messages::Keep,
    };
    let folders: Vec<_> = plugins
        .iter()
        .map(|(folder, _)| root.join(folder))
        .collect();
    let load = |((folder, _), built): (&BuiltInParts, Built)| -> Result<Arc<dyn Plugin>> {
        let built_in = BuiltIn::read(folder, built.component.bytes)?;
        Ok(Arc::new(
            loader.load_built_in(&built_in, |_| Settings::built_in())?,
        ))
    };
    let built = plugins.iter().zip(build::build_all(&folders, &options)?);
    Chain::new(built.map(load).collect::<Result<_>>()?)
}

/// Returns the same plugins without a sandbox.
///
/// # Errors
/// A manifest is invalid.
pub fn native(plugins: &[BuiltInParts]) -> Result<Chain> {
    let load = |(_, parts): &(&str, &PluginParts)| -> Result<Arc<dyn Plugin>> {
        Ok(Arc::new(NativePlugin::new(parts, Settings::built_in())?))
    };
    Chain::new(plugins.iter().map(load).collect::<Result<_>>()?)
}
