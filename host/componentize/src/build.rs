//! Builds a plugin crate as a component.

use std::{
    io,
    path::{Path, PathBuf},
};

use cargo_metadata::{Message, Metadata, MetadataCommand};
use serde_json::json;
use trainyard_model::{contract::VERSION, manifest::Manifest, phase::Phase};

use crate::{
    cargo::{Cargo, cargo_toml},
    component::{Component, componentize},
    sources::{Sources, plugin_package},
    toolchain::{self, Toolchain},
};
pub use crate::{
    error::BuildError,
    options::{Messages, Options},
};

/// The profile of every plugin. It overrides the profile of the plugin's workspace.
const PROFILE: &[&str] = &[
    "codegen-units=1",
    "debug=false",
    "debug-assertions=false",
    "incremental=false",
    "lto=\"fat\"",
    "opt-level=3",
    "panic=\"abort\"",
    "strip=\"symbols\"",
];

/// The prefix of a package's name that is not part of the plugin's name.
const PREFIX: &str = "trainyard-plugin-";

/// A plugin that was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// The plugin.
    pub component: Component,
    /// The toolchain that built it.
    pub toolchain: Toolchain,
    /// The files that determine its bytes, apart from crates of a registry.
    pub sources: Vec<PathBuf>,
}

/// Returns the directory `guest` in `CARGO_TARGET_DIR`, if that is an absolute path. Plugins of all workspaces share it. Unlike the `OUT_DIR`
/// of a build script, it is not deleted when the script changes, which matters because the first build takes long.
#[must_use]
pub fn target_dir_of_environment() -> Option<PathBuf> {
    let set = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    set.filter(|dir| dir.is_absolute())
        .map(|dir| dir.join("guest"))
}

/// Builds the plugin in `crate_dir`. The same sources and toolchain give the same bytes in any directory.
///
/// # Errors
///
/// If there is no toolchain or no plugin crate, if cargo fails, or if the plugin's manifest is invalid.
pub fn build(crate_dir: &Path, options: &Options) -> Result<Built, BuildError> {
    check_manifest(crate_dir)?;
    let toolchain = toolchain::find()?;
    build_in(crate_dir, &toolchain, &mut None, options)
}

/// Builds the plugins in these directories, in their order. Each has the same bytes as if [`build`] built it alone, but the toolchain is
/// searched once, all manifests are checked before the first crate is compiled, and the crates of a workspace are fetched and listed once.
///
/// # Errors
///
/// As for [`build`], for the first plugin that cannot be built.
pub fn build_all(crate_dirs: &[PathBuf], options: &Options) -> Result<Vec<Built>, BuildError> {
    for dir in crate_dirs {
        check_manifest(dir)?;
    }
    let toolchain = toolchain::find()?;
    let mut workspace = None;
    crate_dirs
        .iter()
        .map(|dir| build_in(dir, &toolchain, &mut workspace, options))
        .collect()
}

/// Builds a plugin, and uses the workspace of an earlier plugin if it is the same.
fn build_in(
    crate_dir: &Path,
    toolchain: &Toolchain,
    workspace: &mut Option<Metadata>,
    options: &Options,
) -> Result<Built, BuildError> {
    let cargo = Cargo::new(crate_dir, toolchain, options)?;
    let sources = Sources::of(&cargo, workspace)?;
    let path = build_module(&cargo, &sources, toolchain, options)?;
    let compiled = compiled(&path.with_extension("d"))?;
    let module = std::fs::read(&path).map_err(|error| BuildError::Read { path, error })?;
    let component = componentize(&module).map_err(|error| BuildError::Component {
        package: sources.package.name.to_string(),
        error,
    })?;
    Ok(Built {
        component,
        sources: sources.watched(compiled),
        toolchain: toolchain.clone(),
    })
}

/// Returns the local files that were compiled, which cargo lists as dependencies of the module in the form of a Makefile.
fn compiled(list: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let text = std::fs::read_to_string(list).map_err(|error| BuildError::Read {
        path: list.to_owned(),
        error,
    })?;
    let (_, files) = text.split_once(": ").unwrap_or_default();
    // A space that belongs to a path is escaped.
    let files = files.replace("\\ ", "\0");
    let files = files.split_whitespace();
    Ok(files.map(|file| file.replace('\0', " ").into()).collect())
}

/// Checks a plugin's crate without compiling it. Returns its manifest as far as it is known: with all phases, because its code declares them,
/// and without the schemas that its code derives.
///
/// # Errors
///
/// If it is not a plugin's crate, or if its manifest is invalid.
pub fn check(crate_dir: &Path) -> Result<Manifest, BuildError> {
    let cargo_toml = cargo_toml(crate_dir)?;
    let mut command = MetadataCommand::new();
    command.manifest_path(&cargo_toml).no_deps();
    let metadata = command.exec().map_err(BuildError::Metadata)?;
    let package = plugin_package(&metadata, &cargo_toml)?;
    let path = crate_dir.join("manifest.json");
    let file = std::fs::read(&path).map_err(|error| BuildError::Read {
        path: path.clone(),
        error,
    })?;
    // As the SDK's macro names it.
    let name = package.name.strip_prefix(PREFIX).unwrap_or(&package.name);
    let parts = json!({
        "name": name, "version": package.version, "contract": VERSION,
        "phases": Phase::ALL.map(Phase::name),
    });
    Manifest::from_parts(&file, parts.to_string().as_bytes())
        .map_err(|error| BuildError::Manifest { path, error })
}

/// Checks that it is a crate, and its `manifest.json`, before compiling, which takes long. If the file is missing, the compiler's error names it.
fn check_manifest(crate_dir: &Path) -> Result<(), BuildError> {
    cargo_toml(crate_dir)?;
    let path = crate_dir.join("manifest.json");
    match std::fs::read(&path) {
        Ok(file) => {
            Manifest::check_file(&file).map_err(|error| BuildError::Manifest { path, error })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(BuildError::Read { path, error }),
    }
}

/// Builds the core module and returns its path.
fn build_module(
    cargo: &Cargo<'_>,
    sources: &Sources,
    toolchain: &Toolchain,
    options: &Options,
) -> Result<PathBuf, BuildError> {
    let target_dir = options
        .target_dir
        .clone()
        .unwrap_or_else(|| sources.target_dir.join("guest"));
    let target_dir = std::path::absolute(&target_dir).map_err(|error| BuildError::Read {
        path: target_dir,
        error,
    })?;
    let flags = sources.flags(toolchain, &target_dir);
    let messages = cargo.build(&target_dir, PROFILE, &flags, &sources.last_flags())?;
    let module = Message::parse_stream(messages.as_slice()).find_map(|message| match message {
        Ok(Message::CompilerArtifact(artifact)) if artifact.package_id == sources.package.id => {
            artifact
                .filenames
                .into_iter()
                .find(|file| file.extension() == Some("wasm"))
        }
        _ => None,
    });
    module.map(Into::into).ok_or_else(|| BuildError::NoModule {
        package: sources.package.name.to_string(),
    })
}
