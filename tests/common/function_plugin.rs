//! A plugin that is a function, for the tests of several crates.

#![allow(unreachable_pub, missing_docs)]

use std::sync::Arc;

use trainyard_model::{
    call::Call,
    plugin::{CallFailure, CallOutcome, Phase, Plugin},
    plugin_info::PluginInfo,
};

type Function = Box<dyn Fn(Phase, &mut Call) -> Result<(), CallFailure> + Send + Sync>;

/// A plugin that calls a function in each of its phases.
pub struct FunctionPlugin {
    plugin: Arc<PluginInfo>,
    function: Function,
}

impl FunctionPlugin {
    pub fn new(
        plugin: Arc<PluginInfo>,
        function: impl Fn(Phase, &mut Call) -> Result<(), CallFailure> + Send + Sync + 'static,
    ) -> Self {
        let function = Box::new(function);
        Self { plugin, function }
    }
}

impl Plugin for FunctionPlugin {
    fn info(&self) -> &Arc<PluginInfo> {
        &self.plugin
    }

    fn run(&self, phase: Phase, mut call: Box<Call>) -> CallOutcome {
        let end = (self.function)(phase, &mut call);
        CallOutcome {
            call,
            end,
            fuel: None,
        }
    }
}
