//! The digest of a TrainJob's inputs, an annotation of a suspended JobSet. It tells a controller after a restart whether the JobSet is up to
//! date.
//!
//! The digest does not cover the runtime, which is pinned in the snapshot. A user who changes the annotation causes one more rendering, or
//! none until the JobSet is unsuspended, when it is always applied.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use trainyard_model::{lookup::Lookups, plan::PlannedPlugin};
use trainyard_render::Renderer;

use crate::watch::TrainJobState;

/// The inputs that all TrainJobs of a controller share.
#[derive(Clone, Debug)]
pub(crate) struct CommonInputs(Vec<u8>);

impl CommonInputs {
    pub(crate) fn new(renderer: &Renderer, write_defaults: bool) -> Self {
        let (generation, facts) = (renderer.generation(), renderer.facts());
        let plugins = generation.plugins();
        // The configuration of a runtime is in the snapshot.
        let plugins = plugins.map(|plugin| json!(PlannedPlugin::of(plugin, &Value::Null)));
        let all = json!({
            "sources": crate::SOURCES,
            "plugins": plugins.collect::<Vec<_>>(),
            // Which of them run, and in which order.
            "plan": generation.digest(&facts.facts),
            "clusterDomain": facts.cluster_domain,
            "accelerators": facts.accelerators.names().collect::<Vec<_>>(),
            "facts": facts.facts.all(),
            "catalog": facts.catalog.as_deref(),
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
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use trainyard_model::{
        call::Call,
        contract::VERSION,
        lookup::{LookupAnswer, LookupKey},
        manifest::Manifest,
        plugin::{CallOutcome, Phase, Plugin},
        plugin_info::{PluginInfo, Settings},
    };
    use trainyard_render::ClusterFacts;

    use super::*;

    /// A plugin that does nothing.
    struct Idle(Arc<PluginInfo>);

    impl Plugin for Idle {
        fn info(&self) -> &Arc<PluginInfo> {
            &self.0
        }

        fn run(&self, _: Phase, call: Box<Call>) -> CallOutcome {
            let (end, fuel) = (Ok(()), None);
            CallOutcome { call, end, fuel }
        }
    }

    /// After a restart, a suspended TrainJob follows the operator's settings.
    #[test]
    fn settings_that_decide_which_plugins_run_are_inputs() {
        let inputs = |exemptions: Value| {
            let manifest = json!({
                "name": "a", "version": "1.0.0", "contract": VERSION, "activeWhen": "always", "phases": ["check"],
            });
            let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
            let settings = Settings {
                exemptions: serde_json::from_value(exemptions).unwrap(),
                ..Settings::default()
            };
            let plugin = PluginInfo::new(manifest, "native", settings).unwrap();
            let plugin: Arc<dyn Plugin> = Arc::new(Idle(Arc::new(plugin)));
            let renderer = Renderer::new([plugin], ClusterFacts::default()).unwrap();
            CommonInputs::new(&renderer, false).0
        };
        let of_namespace = json!({"disabledFor": {"namespaces": ["ml"]}});
        let all = [
            json!({}),
            of_namespace,
            json!({"trainJobsMayDisable": true}),
        ]
        .map(inputs);
        let [first, second, third] = &all;
        assert!(first != second && first != third && second != third);
    }

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
