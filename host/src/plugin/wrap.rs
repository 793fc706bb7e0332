//! `trainyard plugin wrap`.

use std::path::PathBuf;

use clap::Args;
use trainyard_componentize::wrap;
use trainyard_model::text::clean;

use super::build;
use crate::{args::CacheArgs, load, report::ErrorList};

/// Arguments of `plugin wrap`.
#[derive(Debug, Args)]
pub(crate) struct WrapArgs {
    /// The core module or component that another tool built.
    #[arg(value_name = "FILE.wasm", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// The plugin's manifest, with `name` and `version`.
    #[arg(value_name = "manifest.json", value_hint = clap::ValueHint::FilePath)]
    manifest: PathBuf,
    /// The file to write [default: NAME.wasm in the current directory].
    #[arg(short, long, value_name = "FILE.wasm", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
    #[command(flatten)]
    cache: CacheArgs,
}

pub(super) fn run(args: &WrapArgs) -> Result<(), ErrorList> {
    let read = |path: &PathBuf| {
        std::fs::read(path).map_err(|error| {
            let path = clean(&path.display().to_string());
            ErrorList::from_iter([format!("{path}: cannot be read: {error}")])
        })
    };
    let (wasm, manifest) = (read(&args.file)?, read(&args.manifest)?);
    let wrapped = wrap::wrap(&wasm, &manifest).map_err(|error| {
        // An error of the manifest names the other file.
        let path = match error {
            wrap::WrapError::Manifest(_) | wrap::WrapError::Phases { .. } => &args.manifest,
            _ => &args.file,
        };
        let path = clean(&path.display().to_string());
        ErrorList::from_iter([format!("{path}: {error}")])
    })?;
    let path = clean(&args.file.display().to_string());
    load::check(&path, wrapped.bytes.clone(), &args.cache)?;
    build::write(wrapped, args.output.as_deref())
}
