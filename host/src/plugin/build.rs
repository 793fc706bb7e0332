//! `trainyard plugin build`.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::Args;
use trainyard_componentize::build;
use trainyard_model::{plugin::PluginId, text::clean};
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
    let built = build::build(&args.dir, &options).map_err(|error| ErrorList::from_iter([error]))?;
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
    replace(&path, &screened.bytes)
        .map_err(|error| failure(format!("cannot be written: {error}")))?;
    let id = PluginId {
        name: manifest.name.as_str().into(),
        version: manifest.version.as_str().into(),
        digest: screened.digest.as_str().into(),
    };
    let bytes = screened.bytes.len();
    output::lines([format!("{shown}: plugin {id}, {bytes} bytes")])
}

/// Replaces a file atomically.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let directory = path
        .parent()
        .filter(|directory| !directory.as_os_str().is_empty());
    let mut file = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The mode of any new file, to which the user's umask applies.
        file.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = file.tempfile_in(directory.unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;

    #[test]
    fn file_is_replaced_without_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, other) = (folder.path().join("a.wasm"), folder.path().join("b"));
        fs::write(&ours, "an earlier and longer one").unwrap();
        fs::write(&other, "").unwrap();
        replace(&ours, b"new").unwrap();
        assert_eq!(fs::read(&ours).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        let mode = |path| fs::metadata(path).unwrap().permissions();
        assert_eq!(mode(&ours), mode(&other));
    }

    #[test]
    fn failed_write_keeps_the_earlier_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wasm");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("inside"), "").unwrap();
        assert!(replace(&path, b"new").is_err());
        assert!(path.join("inside").is_file());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
