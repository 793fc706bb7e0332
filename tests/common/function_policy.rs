//! A policy that is a function, for the tests of several crates.

#![allow(unreachable_pub, missing_docs)]

use std::sync::Arc;

use trainyard_model::{
    call::Call,
    plugin::Plugin,
    policy::{CallFailure, CallOutcome, Phase, Policy},
};

type Function = Box<dyn Fn(Phase, &mut Call) -> Result<(), CallFailure> + Send + Sync>;

/// A policy that calls a function in each of its phases.
pub struct FunctionPolicy {
    plugin: Arc<Plugin>,
    function: Function,
}

impl FunctionPolicy {
    pub fn new(
        plugin: Arc<Plugin>,
        function: impl Fn(Phase, &mut Call) -> Result<(), CallFailure> + Send + Sync + 'static,
    ) -> Self {
        let function = Box::new(function);
        Self { plugin, function }
    }
}

impl Policy for FunctionPolicy {
    fn plugin(&self) -> &Arc<Plugin> {
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
