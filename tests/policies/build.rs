//! Writes the table of the built-in plugins.

use std::{error::Error, fs, path::PathBuf};

use trainyard_plugin_folders::{root, tables};

fn main() -> Result<(), Box<dyn Error>> {
    // A new plugin is a new member of the workspace.
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let table = tables::native_plugins(&root())?;
    Ok(fs::write(out.join("built_ins.rs"), table)?)
}
