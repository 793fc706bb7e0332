//! Writes the list of members that plugins add to the unions of runtimes.

use std::{error::Error, fs, path::PathBuf};

use trainyard_plugin_folders::{plugins, root, tables};

fn main() -> Result<(), Box<dyn Error>> {
    // A new plugin is a new member of the workspace.
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    for folder in plugins(&root())?.into_values() {
        println!("cargo::rerun-if-changed={}/manifest.json", folder.display());
    }
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let table = tables::union_members(&root())?;
    Ok(fs::write(out.join("unions.rs"), table)?)
}
