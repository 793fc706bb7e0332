//! `trainyard plugin pull`.

use std::path::{Path, PathBuf};

use clap::Args;
use trainyard_model::plugin_info::PluginId;
use trainyard_oci::Location;

use super::location;
use crate::{
    args::RegistryArgs,
    output::{self, Transfer},
    plugin::screened::screened_bytes,
    report::ErrorList,
};

/// Arguments of `plugin pull`.
#[derive(Debug, Args)]
pub(crate) struct PullArgs {
    /// The plugin: REGISTRY/REPOSITORY with `:TAG`, `@DIGEST` or both, or oci:DIR[:NAME] for a directory.
    #[arg(value_name = "REFERENCE", value_parser = location)]
    source: Location,
    /// The file to write [default: NAME.wasm in the current directory, if there is no such file].
    #[arg(short, long, value_name = "FILE.wasm", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
    #[command(flatten)]
    registry: RegistryArgs,
}

pub(crate) fn run(args: &PullArgs) -> Result<(), ErrorList> {
    if let Some(path) = &args.output {
        check_folder(path)?;
    }
    let transfer = Transfer::new("pulling");
    let pulled = args.registry.run(async |client| {
        let pulled = client.pull(&args.source, &transfer.progress()).await;
        pulled.map_err(|error| ErrorList::from_iter([error.to_string()]))
    })?;
    drop(transfer);
    // Nothing is written that is not a plugin.
    let screened = screened_bytes(pulled.file, &args.source.to_string())?;
    let manifest = &screened.manifest;
    let path = match &args.output {
        Some(path) => path.clone(),
        None => unused(format!("{}.wasm", manifest.name).into())?,
    };
    let shown = output::path(&path);
    output::replace(&path, &screened.bytes)
        .map_err(|error| ErrorList::from_iter([format!("{shown}: cannot be written: {error}")]))?;
    let id = PluginId {
        name: manifest.name.as_str().into(),
        version: manifest.version.as_str().into(),
        digest: screened.digest.as_str().into(),
    };
    let bytes = screened.bytes.len();
    output::lines([
        format!("{shown}: plugin {id}, {bytes} bytes"),
        args.source.pinned(&pulled.digest),
    ])
}

/// Refuses a file in a folder that does not exist, before anything is pulled.
fn check_folder(path: &Path) -> Result<(), ErrorList> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    match folder.filter(|folder| !folder.is_dir()) {
        Some(folder) => Err(ErrorList::from_iter([format!(
            "{}: the directory {} does not exist; create it, or choose another file with -o",
            output::path(path),
            output::path(folder)
        )])),
        None => Ok(()),
    }
}

/// Refuses a file that exists, because the plugin chose its name.
fn unused(path: PathBuf) -> Result<PathBuf, ErrorList> {
    if path.symlink_metadata().is_err() {
        return Ok(path);
    }
    Err(ErrorList::from_iter([format!(
        "{}: exists, and is not overwritten because the plugin chose the name; choose the file with -o",
        output::path(&path)
    )]))
}
