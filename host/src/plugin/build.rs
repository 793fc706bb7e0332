//! `trainyard plugin build`.

use std::path::PathBuf;

use clap::Args;
use trainyard_componentize::build;
use trainyard_model::{manifest::ActiveWhen, plugin_info::PluginId, text::clean};
use trainyard_sandbox::{LoadLimits, screen};
use trainyard_schema::documents::union_keys;

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
    if let Some(problem) = unreachable_problem(&manifest.active_when) {
        return Err(failure(problem));
    }
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

/// Returns what is wrong if no runtime can activate the plugin: an API server drops members of a union that the CRDs do not have.
fn unreachable_problem(when: &ActiveWhen) -> Option<String> {
    let ActiveWhen::Key(union, key) = when else {
        return None;
    };
    let keys: Vec<_> = union_keys(union.name()).collect();
    let named = ActiveWhen::Named(*union);
    (!keys.contains(&key.as_str())).then(|| {
        format!(
            "the manifest's `activeWhen` is `{when}`, but a runtime's `{}` has no such key ({}), so nothing would activate the plugin; write `{named}`, and runtimes name the plugin there",
            union.name(),
            keys.join(", ")
        )
    })
}
