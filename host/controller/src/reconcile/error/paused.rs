//! Errors of TrainJobs whose plugins are missing, are paused for all namespaces, or take too long.

use trainyard_model::{
    plugin::{Busy, CallFailure},
    plugin_info::PluginId,
};
use trainyard_render::Problem;

use super::ReconcileError;

impl ReconcileError {
    /// Returns the plugin that is paused for all namespaces; `None` if none is the reason.
    pub(crate) fn paused(&self) -> Option<&PluginId> {
        let Self::Busy(problems) = self else {
            return None;
        };
        problems.iter().find_map(|problem| match problem {
            Problem::Call(error) => match error.cause {
                CallFailure::Busy(Busy::OpenEverywhere { .. }) => Some(&error.plugin),
                _ => None,
            },
            _ => None,
        })
    }

    /// Whether a plugin that the TrainJob needs is not loaded.
    pub(crate) fn lacks_plugin(&self) -> bool {
        let is_missing =
            |it: &Problem| matches!(it, Problem::NotLoaded { .. } | Problem::PluginSkipped(_));
        matches!(self, Self::Render(refused) if refused.stopped.problems().iter().any(is_missing))
    }

    /// Whether a call of a plugin took as long as its limits allow.
    pub(crate) fn is_of_exhausted_call(&self) -> bool {
        let problems = match self {
            Self::Busy(problems) => problems,
            Self::Render(refused) => refused.stopped.problems(),
            _ => return false,
        };
        let is_exhausted = |problem: &Problem| matches!(problem, Problem::Call(error) if error.cause.is_exhausted());
        self.paused().is_some() || problems.iter().any(is_exhausted)
    }
}
