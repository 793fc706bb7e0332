//! Plugins that are functions of a test.

use std::sync::Arc;

use serde_json::{Value, json};
use trainyard_model::{
    call::Call,
    contract::VERSION,
    manifest::Manifest,
    plugin::{CallFailure, Phase, Plugin},
    plugin_info::{PluginInfo, Settings},
};

use super::function_plugin::FunctionPlugin;

/// A plugin of `plugins` with the phase `transform`, which reads those paths.
pub(crate) fn plugin(
    name: &str,
    reads: &[&str],
    run: impl Fn(&mut Call) -> Result<(), CallFailure> + Send + Sync + 'static,
) -> Arc<dyn Plugin> {
    native(name, "transform", &json!({"reads": reads}), run)
}

/// The same with the phase `build`, which emits those objects.
pub(crate) fn builder(
    name: &str,
    objects: &[&str],
    run: impl Fn(&mut Call) -> Result<(), CallFailure> + Send + Sync + 'static,
) -> Arc<dyn Plugin> {
    native(name, "build", &json!({"writes": objects}), run)
}

fn native(
    name: &str,
    phase: &str,
    claims: &Value,
    run: impl Fn(&mut Call) -> Result<(), CallFailure> + Send + Sync + 'static,
) -> Arc<dyn Plugin> {
    let manifest = json!({
        "name": name, "version": "1.0.0", "contract": VERSION, "activeWhen": "plugins", "phases": [phase],
        "claims": claims,
    });
    let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
    let plugin = PluginInfo::new(manifest, "native", Settings::built_in()).unwrap();
    let function = move |_: Phase, call: &mut Call| run(call);
    Arc::new(FunctionPlugin::new(Arc::new(plugin), function))
}
