//! Builds the built-in plugins as components, and writes the table that `src/built_ins.rs` includes in the program, and the table of
//! runtimes that `src/runtimes.rs` includes.

use std::{
    collections::BTreeMap,
    error::Error,
    ffi::OsStr,
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use trainyard_componentize::build::{self, Messages, Options};
use trainyard_model::names::sha256_digest;

fn main() -> ExitCode {
    match embed_plugins().and_then(|()| embed_runtimes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot embed the built-in plugins and the runtimes: {error}");
            ExitCode::FAILURE
        }
    }
}

fn root() -> Result<PathBuf, Box<dyn Error>> {
    let host = std::env::var("CARGO_MANIFEST_DIR")?;
    Ok(Path::new(&host).join("..").canonicalize()?)
}

fn embed_plugins() -> Result<(), Box<dyn Error>> {
    let root = root()?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let options = Options {
        target_dir: build::target_dir_of_environment(),
        locked: true,
        messages: Messages::Keep,
    };
    let folders = plugin_folders(&root.join("plugins"))?;
    let mut table =
        String::from("/// The built-in plugins.\npub(crate) static BUILT_INS: &[BuiltIn] = &[\n");
    // The SDK's macro reads the contract from there, which cargo does not know.
    watch(&root.join("wit"));
    // A new directory is a new plugin.
    watch(&root.join("plugins"));
    for built in build::build_all(&folders, &options)? {
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
    std::fs::write(out.join("built_ins.rs"), table)?;
    Ok(())
}

/// Returns the directories that have a `manifest.json`, by name.
fn plugin_folders(plugins: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(plugins)? {
        let folder = entry?.path();
        if folder.join("manifest.json").is_file() {
            folders.push(folder);
        }
    }
    folders.sort();
    Ok(folders)
}

/// Embeds the files of `deploy/runtimes`, each of which is named after its runtime.
fn embed_runtimes() -> Result<(), Box<dyn Error>> {
    let folder = root()?.join("deploy/runtimes");
    watch(&folder);
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(&folder)? {
        let file = entry?.path();
        let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
        match name.strip_suffix(".yaml") {
            Some("kustomization") | None => {}
            Some(name) => {
                files.insert(name.to_owned(), file);
            }
        }
    }
    let mut table =
        String::from("/// The shipped runtimes, by name.\nstatic RUNTIMES: &[Runtime] = &[\n");
    for (name, file) in files {
        writeln!(
            table,
            "    Runtime {{ name: {name:?}, text: include_str!({file:?}) }},"
        )?;
    }
    table.push_str("];\n");
    std::fs::write(
        PathBuf::from(std::env::var("OUT_DIR")?).join("runtimes.rs"),
        table,
    )?;
    Ok(())
}

fn watch(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}
