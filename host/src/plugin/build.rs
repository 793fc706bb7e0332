//! `trainyard plugin build`.

use std::path::PathBuf;

use clap::Args;
use trainyard_componentize::build;
use trainyard_model::{plugin_info::PluginId, text::clean};
use trainyard_sandbox::{LoadLimits, screen};

use crate::{compile_worker, output, report::ErrorList};

/// Arguments of `plugin build`.
#[derive(Debug, Args)]
pub(crate) struct BuildArgs {
    /// The directory of the crate.
    #[arg(value_name = "DIR", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    dir: PathBuf,
    /// The file to write [default: NAME.wasm in the current directory].
    #[arg(short, long, value_name = "FILE.wasm", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Fail if Cargo.lock is missing or would change.
    #[arg(long)]
    locked: bool,
}

pub(super) fn run(args: &BuildArgs) -> Result<(), ErrorList> {
    let options = build::Options {
        target_dir: build::target_dir_of_environment(),
        locked: args.locked,
        ..build::Options::default()
    };
    let built = build::build(&args.dir, &options);
    let built = built.map_err(|error| ErrorList::from_iter([error.to_string()]))?;
    let manifest = &built.component.manifest;
    let path = args
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("{}.wasm", manifest.name)));
    let shown = clean(&path.display().to_string());
    let failure = |problem: String| ErrorList::from_iter([format!("{shown}: {problem}")]);
    let screened = screen::screen(
        built.component.bytes,
        &LoadLimits::default(),
        &compile_worker::compiler()?,
    )
    .map_err(|error| failure(error.to_string()))?;
    output::replace(&path, &screened.bytes)
        .map_err(|error| failure(format!("cannot be written: {error}")))?;
    let id = PluginId {
        name: manifest.name.as_str().into(),
        version: manifest.version.as_str().into(),
        digest: screened.digest.as_str().into(),
    };
    let bytes = screened.bytes.len();
    output::lines([format!("{shown}: plugin {id}, {bytes} bytes")])
}
