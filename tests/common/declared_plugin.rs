//! Plugins that are made for the declarations of their manifests, and PolicyPlugins for them.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub
)]

use std::{fs, path::Path};

use serde_json::{Value, json};
use trainyard_cluster::with_manifest;

/// Writes a plugin with these claims. Its code is Torch's, which does not use them.
pub fn plugin(folder: &Path, name: &str, more: Value) {
    let torch = fs::read(concat!(env!("OUT_DIR"), "/torch.wasm")).unwrap();
    plugin_of(&torch, folder, name, more);
}

/// Writes a plugin with these claims and this code.
pub fn plugin_of(component: &[u8], folder: &Path, name: &str, more: Value) {
    let mut manifest = json!({
        "name": name, "version": "1.0.0", "contract": "1.0.0", "activeWhen": "plugins", "phases": ["transform"],
    });
    for (key, value) in more.as_object().unwrap() {
        manifest[key] = value.clone();
    }
    let plugin = with_manifest(component, &manifest.to_string()).unwrap();
    fs::write(folder.join(format!("{name}.wasm")), plugin).unwrap();
}

pub fn claims(reads: &[&str], writes: &[&str]) -> Value {
    json!({"claims": {"reads": reads, "writes": writes}})
}

/// Writes PolicyPlugins with these settings, a list as in a policy file.
pub fn policy(folder: &Path, plugins: &str) {
    fs::write(folder.join("policy.yaml"), policy_plugins(plugins)).unwrap();
}

/// Returns the objects that replace a policy file with this content.
pub fn policies(content: &str) -> String {
    let mut documents = trainyard_api::yaml::read(content);
    let mut rendering = documents
        .pop()
        .map_or_else(|| json!({}), |one| one.unwrap().value);
    let plugins = rendering.as_object_mut().unwrap().remove("plugins");
    let plugins = policy_plugins(&plugins.unwrap_or_else(|| json!([])).to_string());
    let configuration = json!({
        "apiVersion": "trainyard.dev/v1alpha1", "kind": "ControllerConfiguration", "rendering": rendering,
    });
    format!(
        "{plugins}---\n{}",
        trainyard_api::yaml::write(&configuration)
    )
}

/// Returns PolicyPlugins with these settings, a list as in a policy file.
pub fn policy_plugins(plugins: &str) -> String {
    let mut documents = trainyard_api::yaml::read(plugins);
    let plugins = documents.pop().unwrap().unwrap().value;
    let object = |plugin: &Value| {
        let mut spec = plugin.clone();
        let name = spec.as_object_mut().unwrap().remove("name").unwrap();
        json!({
            "apiVersion": "trainyard.dev/v1alpha1", "kind": "PolicyPlugin", "metadata": {"name": name}, "spec": spec,
        })
    };
    let objects: Vec<_> = plugins.as_array().unwrap().iter().map(object).collect();
    trainyard_api::yaml::write(&trainyard_api::list::list(objects))
}
