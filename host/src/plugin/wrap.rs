//! `trainyard plugin wrap`.

use std::{fmt::Display, path::PathBuf};

use clap::Args;
use trainyard_api::inputs;
use trainyard_componentize::wrap;
use trainyard_sandbox::{LoadLimits, ScreenError, screen};

use super::{build, script::MAX_MANIFEST};
use crate::{args::CacheArgs, load, output, report::ErrorList};

/// The most bytes of a file. What is removed from it, such as debug information, can be larger than a plugin.
const MAX_FILE: u64 = 256 << 20;

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
    /// A file with a PolicyPlugin whose `compile` limits apply.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    policy: Option<PathBuf>,
    #[command(flatten)]
    cache: CacheArgs,
}

pub(super) fn run(args: &WrapArgs) -> Result<(), ErrorList> {
    let failed = |path: &PathBuf, problem: &dyn Display| {
        let path = output::path(path);
        ErrorList::from_iter([format!("{path}: {problem}")])
    };
    let limits = LoadLimits {
        bytes: MAX_FILE,
        ..LoadLimits::default()
    };
    let wasm = screen::read(&args.file, &limits).map_err(|error| {
        let problem = match error {
            ScreenError::TooLarge(most) => format!(
                "exceeds the limit of {most} bytes for a file to wrap; build it without debug information"
            ),
            error => error.to_string(),
        };
        failed(&args.file, &problem)
    })?;
    let manifest = inputs::read_file(&args.manifest, MAX_MANIFEST);
    let manifest = manifest.map_err(|problem| failed(&args.manifest, &problem))?;
    let wrapped = wrap::wrap(&wasm, manifest.as_bytes()).map_err(|error| {
        // An error of the manifest names the other file.
        let path = match error {
            wrap::WrapError::Manifest(_) | wrap::WrapError::Phases { .. } => &args.manifest,
            _ => &args.file,
        };
        failed(path, &error)
    })?;
    let path = output::path(&args.file);
    load::check(
        &path,
        wrapped.bytes.clone(),
        args.policy.as_deref(),
        &args.cache,
    )?;
    build::write(wrapped, args.output.as_deref())
}
