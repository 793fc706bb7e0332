//! Deferred loading: the code of a built-in plugin is loaded when it is first called, because most commands use only one of them.

use std::sync::{Arc, OnceLock};

use trainyard_model::{
    call::Call,
    plugin::{CallFailure, CallOutcome, Phase, Plugin},
    plugin_info::PluginInfo,
    text::clean,
};

use crate::{built_in::BuiltIn, plugin::SandboxedPlugin, sandbox::Sandbox};

/// A built-in plugin whose code is loaded when it is first called.
pub struct DeferredPlugin {
    sandbox: Arc<Sandbox>,
    plugin: Arc<PluginInfo>,
    built_in: BuiltIn,
    /// The loaded plugin, or why it cannot be loaded.
    loaded: OnceLock<Result<SandboxedPlugin, String>>,
}

impl DeferredPlugin {
    pub(crate) const fn new(
        sandbox: Arc<Sandbox>,
        plugin: Arc<PluginInfo>,
        built_in: BuiltIn,
    ) -> Self {
        Self {
            sandbox,
            plugin,
            built_in,
            loaded: OnceLock::new(),
        }
    }

    fn loaded(&self) -> &Result<SandboxedPlugin, String> {
        self.loaded.get_or_init(|| {
            let loaded = self
                .sandbox
                .load_trusted(self.plugin.clone(), self.built_in.component());
            loaded.map_err(|problem| clean(&problem.without_plugin()))
        })
    }
}

impl Plugin for DeferredPlugin {
    fn info(&self) -> &Arc<PluginInfo> {
        &self.plugin
    }

    fn prepare(&self) {
        // If this fails, each call reports it.
        let _ = self.loaded();
    }

    fn run(&self, phase: Phase, call: Box<Call>) -> CallOutcome {
        match self.loaded() {
            Ok(plugin) => plugin.run(phase, call),
            Err(problem) => CallOutcome {
                call,
                end: Err(CallFailure::NotLoaded(problem.clone())),
                fuel: None,
            },
        }
    }
}
