//! Lists the modules in the folders of the plugins with the matchers of their rows, and the pages with the tables.

use std::{error::Error, path::PathBuf};

use trainyard_plugin_folders::{self as folders, tables};

fn main() -> Result<(), Box<dyn Error>> {
    let root = folders::root();
    // It changes with each new plugin.
    println!(
        "cargo::rerun-if-changed={}",
        root.join("Cargo.lock").display()
    );
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("plugins.rs"), tables::references(&root)?)?;
    std::fs::write(out.join("pages.rs"), tables::divergences(&root)?)?;
    Ok(())
}
