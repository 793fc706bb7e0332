//! Errors of TrainJobs whose plugins are paused for all namespaces.

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
}
