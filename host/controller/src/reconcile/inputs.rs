//! The digest of a TrainJob's inputs, an annotation of a suspended JobSet. It tells a controller after a restart whether the JobSet is up to
//! date.
//!
//! The digest does not cover the runtime, which is pinned in the snapshot. A user who changes the annotation causes one more rendering, or
//! none until the JobSet is unsuspended, when it is always applied.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use trainyard_model::{lookup::Lookups, plan::PlannedPlugin};

use crate::{plugins::Plugins, watch::TrainJobState};

/// The inputs that all TrainJobs of a controller share.
#[derive(Debug)]
pub(crate) struct CommonInputs(Vec<u8>);

impl CommonInputs {
    pub(crate) fn new(plugins: &Plugins, write_defaults: bool) -> Self {
        let renderer = &plugins.renderer;
        let plugins = renderer.generation().plugins();
        // The configuration of a runtime is in the snapshot.
        let plugins = plugins.map(|plugin| json!(PlannedPlugin::of(plugin, &Value::Null)));
        let facts = renderer.facts();
        let all = json!({
            "sources": crate::SOURCES,
            "plugins": plugins.collect::<Vec<_>>(),
            "clusterDomain": facts.cluster_domain,
            "accelerators": facts.accelerators.names().collect::<Vec<_>>(),
            "facts": facts.facts.all(),
            "writeDefaults": write_defaults,
        });
        Self(Sha256::digest(all.to_string()).to_vec())
    }
}

/// The digest of a TrainJob's inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inputs(String);

impl Inputs {
    pub(crate) fn of(common: &CommonInputs, job: &TrainJobState) -> Self {
        let mut hash = Sha256::new();
        hash.update(&common.0);
        hash.update(job.text());
        Self(hex::encode(hash.finalize()))
    }

    #[cfg(test)]
    pub(crate) fn for_tests(digest: &str) -> Self {
        Self(digest.to_owned())
    }

    /// Whether a JobSet with this annotation was rendered from these inputs without lookups.
    pub(crate) fn are_all_of(&self, annotation: Option<&str>) -> bool {
        annotation == Some(&self.0)
    }

    /// Returns the annotation of a JobSet that was rendered from these inputs and lookups.
    pub(crate) fn annotation(&self, lookups: &Lookups) -> String {
        if lookups.is_empty() {
            return self.0.clone();
        }
        let lookups = Sha256::digest(json!(lookups).to_string());
        format!("{}/{}", self.0, hex::encode(lookups))
    }
}

#[cfg(test)]
mod tests {
    use trainyard_model::lookup::{LookupAnswer, LookupKey};

    use super::*;

    #[test]
    fn only_inputs_without_lookups_are_complete() {
        let inputs = Inputs("abc".to_owned());
        let mut lookups = Lookups::default();
        let without = inputs.annotation(&lookups);
        assert!(inputs.are_all_of(Some(&without)));
        assert!(!inputs.are_all_of(Some("abd")) && !inputs.are_all_of(None));
        let key = LookupKey::Served {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
        };
        lookups.insert(key.clone(), LookupAnswer::Served(true));
        let with = inputs.annotation(&lookups);
        assert!(!inputs.are_all_of(Some(&with)));
        lookups.insert(key, LookupAnswer::Served(false));
        assert_ne!(with, inputs.annotation(&lookups));
    }
}
