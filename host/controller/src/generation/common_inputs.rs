//! The digest of what all TrainJobs of a generation are rendered from.

use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use trainyard_model::plan::PlannedPlugin;
use trainyard_render::Renderer;

/// The inputs that all TrainJobs of a generation share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommonInputs(Arc<[u8]>);

impl CommonInputs {
    /// Returns the inputs of TrainJobs that are rendered with these plugins, whose plan has this digest.
    pub(super) fn new(renderer: &Renderer, plan: &str, write_defaults: bool) -> Self {
        let (generation, facts) = (renderer.generation(), renderer.facts());
        let plugins = generation.plugins();
        // The configuration of a runtime is in the snapshot.
        let plugins = plugins.map(|plugin| json!(PlannedPlugin::of(plugin, &Value::Null)));
        let all = json!({
            "sources": crate::SOURCES,
            "plugins": plugins.collect::<Vec<_>>(),
            // Which of them run, and in which order.
            "plan": plan,
            "clusterDomain": facts.cluster_domain,
            "accelerators": facts.accelerators.names().collect::<Vec<_>>(),
            "facts": facts.facts.all(),
            "catalog": facts.catalog.as_deref(),
            "writeDefaults": write_defaults,
        });
        Self(Sha256::digest(all.to_string()).as_slice().into())
    }

    /// Returns the inputs of TrainJobs that are rendered with a revision whose plugins have this digest, given those of the process' start:
    /// its sources, built-in plugins and settings. What this process could load does not count: a plugin that is not available concerns the
    /// TrainJobs that use it alone, and they wait.
    pub(super) fn of_revision(&self, hash: &str) -> Self {
        let mut all = Sha256::new();
        all.update(&self.0);
        all.update(hash);
        Self(all.finalize().as_slice().into())
    }

    /// Their digest.
    pub(crate) fn digest(&self) -> &[u8] {
        &self.0
    }

    #[cfg(test)]
    pub(crate) fn for_tests(number: u8) -> Self {
        Self([number].into())
    }
}
