//! `trainyard plugin new`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::Args;
use trainyard_model::{names::is_dns_label, text::clean};

use super::template::Kind;
use crate::{output, report::ErrorList};

/// Arguments of `plugin new`.
#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// The plugin's name, a DNS label that begins with a letter.
    #[arg(value_name = "NAME")]
    name: String,
    /// What the plugin is for.
    #[arg(short, long, value_enum)]
    kind: Kind,
    /// The folder of the SDK: `plugins/sdk` in a checkout of Trainyard.
    #[arg(long, value_name = "DIR", env = "TRAINYARD_SDK", value_hint = clap::ValueHint::DirPath)]
    sdk: PathBuf,
    /// The folder to create [default: NAME].
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

/// Why no plugin was created.
#[derive(Debug, thiserror::Error)]
enum NewError {
    #[error(
        "`{0}` cannot be the name of a plugin; choose at most 63 of a-z, 0-9 and `-`, beginning with a letter"
    )]
    Name(String),
    #[error("{0} exists; choose another name, or another folder with --dir")]
    Exists(String),
    #[error(
        "--sdk: {0} is not the SDK's folder: its Cargo.toml is not that of trainyard-sdk; pass plugins/sdk in a checkout of Trainyard"
    )]
    Sdk(String),
    #[error("{path} cannot be created: {error}")]
    Io { path: String, error: io::Error },
}

pub(super) fn run(args: &NewArgs) -> Result<(), ErrorList> {
    let dir = args.dir.clone().unwrap_or_else(|| (&args.name).into());
    create(args, &dir).map_err(|error| ErrorList::from_iter([error.to_string()]))?;
    let name = &args.name;
    let policy = args.kind.template().policy_flag();
    let shown = clean(&dir.display().to_string());
    output::lines([
        format!("created {shown}; now run"),
        format!("  cd {shown}"),
        "  cargo test".to_owned(),
        format!("  trainyard plugin build . --output {name}.wasm"),
        format!("  trainyard render -f cases/basic/input.yaml --plugin {name}.wasm{policy}"),
    ])
}

/// Creates the folder whole, or not at all.
fn create(args: &NewArgs, dir: &Path) -> Result<(), NewError> {
    let name = &args.name;
    if !is_dns_label(name) || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        return Err(NewError::Name(clean(name)));
    }
    let shown = |path: &Path| clean(&path.display().to_string());
    if dir.symlink_metadata().is_ok() {
        return Err(NewError::Exists(shown(dir)));
    }
    let manifest = fs::read_to_string(args.sdk.join("Cargo.toml"));
    if !manifest.is_ok_and(|text| text.contains("\"trainyard-sdk\"")) {
        return Err(NewError::Sdk(shown(&args.sdk)));
    }
    let failed = |error| NewError::Io {
        path: shown(dir),
        error,
    };
    let sdk = args.sdk.canonicalize().map_err(failed)?;
    let parent = dir.parent().filter(|path| !path.as_os_str().is_empty());
    let parent = parent.unwrap_or_else(|| Path::new("."));
    let made = tempfile::tempdir_in(parent).map_err(failed)?;
    for (file, text) in args.kind.template().files(name, &sdk) {
        write(&made.path().join(file), &text).map_err(failed)?;
    }
    fs::rename(made.path(), dir).map_err(failed)?;
    // It was renamed, so there is nothing to remove.
    let _ = made.keep();
    readable(dir).map_err(failed)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

/// Gives the folder the usual permissions. A temporary one is private.
fn readable(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755))
}
