//! Deferred loading: the code of a built-in plugin is loaded when it is first called, because most commands use only one of them.

use std::sync::{Arc, OnceLock};

use trainyard_model::{
    call::Call,
    plugin::Plugin,
    policy::{CallFailure, CallOutcome, Phase, Policy},
    text::clean,
};

use crate::{built_in::BuiltIn, policy::SandboxedPolicy, sandbox::Sandbox};

/// A built-in plugin whose code is loaded when it is first called.
pub struct DeferredPolicy {
    sandbox: Arc<Sandbox>,
    plugin: Arc<Plugin>,
    built_in: BuiltIn,
    /// The loaded plugin, or why it cannot be loaded.
    loaded: OnceLock<Result<SandboxedPolicy, String>>,
}

impl DeferredPolicy {
    pub(crate) const fn new(sandbox: Arc<Sandbox>, plugin: Arc<Plugin>, built_in: BuiltIn) -> Self {
        Self {
            sandbox,
            plugin,
            built_in,
            loaded: OnceLock::new(),
        }
    }

    fn loaded(&self) -> &Result<SandboxedPolicy, String> {
        self.loaded.get_or_init(|| {
            let loaded = self
                .sandbox
                .load_trusted(self.plugin.clone(), self.built_in.component());
            loaded.map_err(|problem| clean(&problem.without_plugin()))
        })
    }
}

impl Policy for DeferredPolicy {
    fn plugin(&self) -> &Arc<Plugin> {
        &self.plugin
    }

    fn prepare(&self) {
        // If this fails, each call reports it.
        let _ = self.loaded();
    }

    fn run(&self, phase: Phase, call: Box<Call>) -> CallOutcome {
        match self.loaded() {
            Ok(policy) => policy.run(phase, call),
            Err(problem) => CallOutcome {
                call,
                end: Err(CallFailure::NotLoaded(problem.clone())),
                fuel: None,
            },
        }
    }
}
