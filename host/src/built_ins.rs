//! The built-in plugins, as components that `build.rs` builds.

use trainyard_controller::settings::{FeatureGate, FeatureGateError};
use trainyard_model::manifest::Manifest;
use trainyard_oci::PluginName;
use trainyard_sandbox::BuiltIn;

include!(concat!(env!("OUT_DIR"), "/built_ins.rs"));

/// Returns the feature gate that switches a built-in plugin on; `None` if it is always loaded.
///
/// # Errors
/// The gate that the plugin's folder names does not exist.
pub(crate) fn feature_gate(plugin: &str) -> Result<Option<FeatureGate>, FeatureGateError> {
    let mut gated = GATED.iter();
    let gate = gated.find(|(name, _)| *name == plugin);
    gate.map(|(_, gate)| gate.parse()).transpose()
}

/// Returns the name of a plugin, with whether a built-in one has it.
pub(crate) fn plugin_name(name: &str) -> PluginName<'_> {
    if BUILT_INS.iter().any(|built_in| built_in.name() == name) {
        PluginName::BuiltIn(name)
    } else {
        PluginName::Custom(name)
    }
}

/// Returns the manifest of a built-in plugin; `None` if none has that name.
pub(crate) fn manifest(name: &str) -> Option<Manifest> {
    let mut built_ins = BUILT_INS.iter();
    let found = built_ins.find(|built_in| built_in.name() == name)?;
    // `embedded_manifests_can_be_parsed` parses all of them.
    Manifest::parse(found.manifest().as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn feature_gates_of_plugins_exist() {
        let gates = BUILT_INS.iter().map(|it| feature_gate(it.name()).unwrap());
        let gates: Vec<_> = gates.flatten().collect();
        assert_eq!(gates, [FeatureGate::TrainJobStatus]);
    }

    #[test]
    fn embedded_manifests_can_be_parsed() {
        for built_in in BUILT_INS {
            let parsed = manifest(built_in.name()).map(|it| it.name);
            assert_eq!(parsed.as_deref(), Some(built_in.name()));
        }
    }

    #[test]
    fn embedded_digest_and_manifest_are_those_of_the_component() {
        for built_in in BUILT_INS {
            let read = BuiltIn::read(built_in.name(), built_in.component().to_vec()).unwrap();
            assert_eq!(built_in.digest(), read.digest());
            assert_eq!(built_in.manifest(), read.manifest());
        }
    }
}
