//! `trainyard plugin build`, and the build of a plugin's directory for other commands.

use std::path::{Path, PathBuf};

use clap::Args;
use trainyard_componentize::{build, component::Component};
use trainyard_model::{
    manifest::{ActiveWhen, Manifest},
    plugin_info::PluginId,
};
use trainyard_sandbox::{LoadLimits, screen};
use trainyard_schema::documents::union_keys;

use super::script;
use crate::{compile_worker, output, report::ErrorList};

/// Arguments of `plugin build`.
#[derive(Debug, Args)]
pub(crate) struct BuildArgs {
    /// The plugin's directory: a crate, or one with a `build.sh` that writes NAME.wasm there.
    #[arg(value_name = "DIR", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    dir: PathBuf,
    /// The file to write [default: NAME.wasm in the current directory].
    #[arg(short, long, value_name = "FILE.wasm", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// For a crate: fail if Cargo.lock is missing or would change.
    #[arg(long)]
    locked: bool,
}

pub(super) fn run(args: &BuildArgs) -> Result<(), ErrorList> {
    write(component(&args.dir, args.locked)?, args.output.as_deref())
}

/// Screens a component, and writes it to the file or to one with its name in the current directory.
pub(super) fn write(component: Component, output: Option<&Path>) -> Result<(), ErrorList> {
    let manifest = &component.manifest;
    let path = output
        .map(Path::to_owned)
        .unwrap_or_else(|| PathBuf::from(format!("{}.wasm", manifest.name)));
    let shown = output::path(&path);
    let failure = |problem: String| ErrorList::from_iter([format!("{shown}: {problem}")]);
    let screened = screen::screen(
        component.bytes,
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

/// Builds the plugin in a directory.
pub(super) fn component(dir: &Path, locked: bool) -> Result<Component, ErrorList> {
    let failure = |problem: String| ErrorList::from_iter([problem]);
    let component = if script::is_in(dir) {
        script::run(dir).map_err(|error| failure(error.to_string()))?
    } else {
        let options = build::Options {
            target_dir: build::target_dir_of_environment(),
            locked,
            ..build::Options::default()
        };
        let built = build::build(dir, &options).map_err(|error| failure(error.to_string()))?;
        built.component
    };
    match unreachable_problem(&component.manifest.active_when) {
        Some(problem) => Err(failure(format!("{}: {problem}", output::path(dir)))),
        None => Ok(component),
    }
}

/// Returns the manifest of the plugin in a directory, as far as it is known before the plugin is built.
pub(super) fn manifest(dir: &Path) -> Result<Manifest, ErrorList> {
    let manifest = match script::is_in(dir) {
        true => script::manifest(dir).map_err(|error| error.to_string()),
        false => build::check(dir).map_err(|error| error.to_string()),
    };
    manifest.map_err(|error| ErrorList::from_iter([error]))
}

/// Returns what is wrong if no runtime can activate the plugin: an API server drops members of a union that the CRDs do not have.
pub(super) fn unreachable_problem(when: &ActiveWhen) -> Option<String> {
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
