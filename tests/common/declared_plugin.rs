//! Plugins that are made for the declarations of their manifests, and policy files for them.

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

pub fn policy(folder: &Path, plugins: &str) {
    let text =
        format!("apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins: {plugins}\n");
    fs::write(folder.join("policy.yaml"), text).unwrap();
}
