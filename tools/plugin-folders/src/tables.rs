//! The code that build scripts write, and the list of runtimes for kustomize.

use std::{fmt::Write as _, fs, io, path::Path};

use serde_json::Value;

use crate::{plugins, runtimes};

/// Returns the constants of the built-in plugins as native plugins: one for each, and `BUILT_INS` with those that are loaded without a
/// feature gate.
///
/// # Errors
/// A folder cannot be read.
pub fn native_plugins(root: &Path) -> io::Result<String> {
    let (mut table, mut all) = (String::new(), String::new());
    for (name, folder) in plugins(root)? {
        let module = module(&name);
        let constant = module.to_uppercase();
        add(
            &mut table,
            format_args!(
                "/// The plugin in `plugins/{name}`.\npub const {constant}: BuiltInParts = (\"plugins/{name}\", &trainyard_plugin_{module}::PLUGIN);\n"
            ),
        );
        if !folder.join("feature-gate").is_file() {
            add(&mut all, format_args!("{constant}, "));
        }
    }
    Ok(format!(
        "{table}/// The built-in plugins, by name.\npub const BUILT_INS: &[BuiltInParts] = &[{all}];\n"
    ))
}

/// Returns the list of shipped runtimes, each with its name and its text.
///
/// # Errors
/// As for [`runtimes`].
pub fn shipped_runtimes(root: &Path) -> io::Result<String> {
    let mut table = String::from("&[\n");
    for (name, file) in runtimes(root)? {
        add(
            &mut table,
            format_args!("    Runtime {{ name: {name:?}, text: include_str!({file:?}) }},\n"),
        );
    }
    Ok(table + "]\n")
}

/// Returns the kustomization of all shipped runtimes.
///
/// # Errors
/// As for [`runtimes`].
pub fn kustomization(root: &Path) -> io::Result<String> {
    let mut text = String::from(
        "# The runtimes for TrainJobs, which are in the folders of their plugins. They are cluster-scoped. Each folder can be left out.\n\
         apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n",
    );
    for (name, folder) in plugins(root)? {
        if folder.join("runtimes").is_dir() {
            add(&mut text, format_args!("- ../../plugins/{name}/runtimes\n"));
        }
    }
    Ok(text)
}

/// Returns the list of members that plugins add to the unions of runtimes: the union and the key in a plugin's `activeWhen`, with the text of
/// its `schema.yaml`.
///
/// # Errors
/// A manifest or a schema cannot be read.
pub fn union_members(root: &Path) -> io::Result<String> {
    let mut table = String::from("&[\n");
    for folder in plugins(root)?.into_values() {
        let manifest: Value = serde_json::from_slice(&fs::read(folder.join("manifest.json"))?)?;
        let active_when = manifest.get("activeWhen").and_then(Value::as_str);
        if let Some((union, key)) = active_when.and_then(|when| when.split_once('.')) {
            let schema = fs::read_to_string(folder.join("schema.yaml"))?;
            add(
                &mut table,
                format_args!("    ({union:?}, {key:?}, {schema:?}),\n"),
            );
        }
    }
    Ok(table + "]\n")
}

/// Returns the modules in the folders of the plugins with the matchers of their differences from the reference, and the list `PLUGINS` of
/// each folder with the constant `PLUGIN` of its module.
///
/// # Errors
/// A folder cannot be read.
pub fn references(root: &Path) -> io::Result<String> {
    let list = modules(root, "reference/mod.rs", "PLUGIN")?;
    Ok(list.replace(
        LIST,
        "/// The plugins with rows of their own, each with its folder.\npub const PLUGINS: &[(&str, Plugin)] =",
    ))
}

/// Returns the modules in the folders of the plugins that generate inputs for the comparison with the reference, and the list `PLUGINS` of
/// each folder with the constant `GENERATORS` of its module.
///
/// # Errors
/// A folder cannot be read.
pub fn generators(root: &Path) -> io::Result<String> {
    let list = modules(root, "reference/inputs/mod.rs", "GENERATORS")?;
    Ok(list.replace(
        LIST,
        "/// The plugins that the reference has as well, each with its folder.\npub(crate) const PLUGINS: &[(&str, &[Generator])] =",
    ))
}

/// Returns the pages of the plugins with their differences from the reference, each with its folder and its text.
///
/// # Errors
/// A folder cannot be read.
pub fn divergences(root: &Path) -> io::Result<String> {
    let mut table = String::from("&[\n");
    for (name, folder) in plugins(root)? {
        let file = folder.join("reference/divergences.md");
        if file.is_file() {
            add(
                &mut table,
                format_args!("    (\"plugins/{name}\", include_str!({file:?})),\n"),
            );
        }
    }
    Ok(table + "]\n")
}

/// Stands for the declaration of a list.
const LIST: &str = "LIST";

/// Returns a module for each plugin with this file, and a list of each folder with this constant of its module.
fn modules(root: &Path, file: &str, constant: &str) -> io::Result<String> {
    let (mut modules, mut list) = (String::new(), String::new());
    for (name, folder) in plugins(root)? {
        let file = folder.join(file);
        if file.is_file() {
            let module = module(&name);
            add(
                &mut modules,
                format_args!("#[path = {file:?}]\nmod {module};\n"),
            );
            add(
                &mut list,
                format_args!("    (\"plugins/{name}\", {module}::{constant}),\n"),
            );
        }
    }
    Ok(format!("{modules}\n{LIST} &[\n{list}];\n"))
}

/// Returns the name of a plugin as one of a module.
fn module(plugin: &str) -> String {
    plugin.replace('-', "_")
}

fn add(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(more);
}
