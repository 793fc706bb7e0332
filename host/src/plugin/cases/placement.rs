//! Switches a plugin on in a shipped runtime, as the runtime's author would.

use serde_json::{Map, Value, json};
use trainyard_api::PluginUse;
use trainyard_model::manifest::{ActiveWhen, Manifest, Union};

/// The members of unions that are not policies.
const APART: &str = "numNodes";

/// Adds the plugin to a runtime, unless it is active without being named.
///
/// # Errors
/// Why the runtime cannot name it.
pub(super) fn switch_on(
    runtime: &mut Value,
    manifest: &Manifest,
    named_as: Option<&PluginUse>,
) -> Result<(), String> {
    let Some(spec) = runtime.get_mut("spec").and_then(Value::as_object_mut) else {
        return Ok(());
    };
    let mut named = json!({"name": manifest.name});
    if let (Some(as_named), Some(named)) = (named_as, named.as_object_mut()) {
        named.insert("config".to_owned(), as_named.config.clone());
        if !as_named.parameters.is_empty() {
            named.insert("parameters".to_owned(), json!(as_named.parameters));
        }
    }
    match &manifest.active_when {
        ActiveWhen::Plugins => {
            let plugins = spec.entry("plugins").or_insert_with(|| json!([]));
            if let Some(plugins) = plugins.as_array_mut() {
                plugins.push(named);
            }
        }
        ActiveWhen::Named(union) => return add_member(spec, *union, named),
        ActiveWhen::Key(..) | ActiveWhen::ResourceClaims | ActiveWhen::Always => {}
    }
    Ok(())
}

/// Adds the member `plugin` to a union that has no other member.
fn add_member(spec: &mut Map<String, Value>, union: Union, named: Value) -> Result<(), String> {
    let policy = spec.entry(union.name()).or_insert_with(|| json!({}));
    let Some(policy) = policy.as_object_mut() else {
        return Ok(());
    };
    if let Some(other) = policy.keys().find(|key| *key != APART) {
        let union = union.name();
        return Err(format!(
            "its `{union}` is `{other}`, and a runtime has at most one"
        ));
    }
    policy.insert("plugin".to_owned(), named);
    Ok(())
}
