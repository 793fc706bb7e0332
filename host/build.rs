//! Builds the built-in plugins as components, and writes the table that `src/built_ins.rs` includes in the program, the list of runtimes
//! that `src/runtimes.rs` includes, and the list of modules that a test includes.

use std::{
    error::Error,
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use trainyard_componentize::build::{self, Messages, Options};
use trainyard_model::names::sha256_digest;
use trainyard_plugin_folders::{self as folders, tables};

fn main() -> ExitCode {
    match embed_plugins().and_then(|()| list()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot embed the built-in plugins and the runtimes: {error}");
            ExitCode::FAILURE
        }
    }
}

fn embed_plugins() -> Result<(), Box<dyn Error>> {
    let root = folders::root();
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let options = Options {
        target_dir: build::target_dir_of_environment(),
        locked: true,
        messages: Messages::Keep,
    };
    let plugins: Vec<_> = folders::plugins(&root)?.into_values().collect();
    let mut table =
        String::from("/// The built-in plugins.\npub(crate) static BUILT_INS: &[BuiltIn] = &[\n");
    let gates = feature_gates(&plugins)?;
    // The SDK's macro reads the contract from there, which cargo does not know.
    watch(&root.join("wit"));
    for built in build::build_all(&plugins, &options)? {
        let name = &built.component.manifest.name;
        let file = out.join(format!("{name}.wasm"));
        std::fs::write(&file, &built.component.bytes)?;
        let digest = sha256_digest(&built.component.bytes);
        let manifest = serde_json::to_string(&built.component.manifest)?;
        writeln!(
            table,
            "    BuiltIn::embedded({name:?}, include_bytes!({file:?}), {digest:?}, {manifest:?}),"
        )?;
        built.sources.iter().for_each(|source| watch(source));
    }
    table.push_str("];\n");
    std::fs::write(out.join("built_ins.rs"), table + &gates)?;
    Ok(())
}

/// Returns the list of plugins that a feature gate switches on: their names and those of the gates, which are in their folders.
fn feature_gates(plugins: &[PathBuf]) -> Result<String, Box<dyn Error>> {
    let mut table = String::from(
        "/// The plugins that a feature gate switches on, with its name.\nstatic GATED: &[(&str, &str)] = &[\n",
    );
    for folder in plugins {
        let file = folder.join("feature-gate");
        if file.is_file() {
            let gate = std::fs::read_to_string(&file)?;
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            writeln!(table, "    ({name:?}, {:?}),", gate.trim())?;
            watch(&file);
        }
    }
    Ok(table + "];\n")
}

/// Lists the runtimes of the plugins, and the modules in their folders that tests/differences_from_the_reference_are_listed contains.
fn list() -> Result<(), Box<dyn Error>> {
    let root = folders::root();
    // The list of the folders with runtimes, of which there may be more.
    watch(&root.join("deploy/runtimes/kustomization.yaml"));
    for file in folders::runtimes(&root)?.into_values() {
        file.parent().into_iter().for_each(watch);
    }
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("runtimes.rs"), tables::shipped_runtimes(&root)?)?;
    std::fs::write(out.join("generators.rs"), tables::generators(&root)?)?;
    Ok(())
}

fn watch(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}
