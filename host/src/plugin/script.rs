//! Plugins that the tools of their language build: a directory with a `build.sh` instead of a crate. The script writes NAME.wasm into the
//! directory, where NAME is the name in `manifest.json`.

use std::{
    env, fs, io,
    io::Write as _,
    path::Path,
    process::{Command, ExitStatus, Stdio},
};

use trainyard_api::{error::InputProblem, inputs};
use trainyard_componentize::{
    component::{self, Component, ComponentError},
    wrap,
};
use trainyard_model::{
    manifest::{Manifest, PartsError},
    text::clean,
};
use trainyard_sandbox::{LoadLimits, ScreenError, screen};

use crate::output;

/// The script that builds the plugin in its directory.
pub(super) const SCRIPT: &str = "build.sh";

/// The largest `manifest.json` that is read, in bytes. A manifest itself is smaller.
pub(super) const MAX_MANIFEST: u64 = 1 << 20;

/// Why a plugin was not built.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScriptError {
    #[error("{path}: cannot be read: {error}")]
    Read { path: String, error: InputProblem },
    #[error("{path}: {error}")]
    Manifest { path: String, error: PartsError },
    #[error("{path}: cannot be run: {error}{}", advice(error, path))]
    Run { path: String, error: io::Error },
    #[error("{file}: cannot be removed before {path} writes it: {error}")]
    Stale {
        path: String,
        file: String,
        error: io::Error,
    },
    #[error("{path}: failed ({status}); correct what it printed above")]
    Failed { path: String, status: ExitStatus },
    #[error(
        "{script}: did not write the plugin to {file}: {error}; name the file after `name` in manifest.json"
    )]
    NoOutput {
        script: String,
        file: String,
        error: ScreenError,
    },
    #[error("{file}: {error}")]
    NotPlugin { file: String, error: ComponentError },
    #[error(
        "{file}: contains the plugin `{found}`, but manifest.json in its directory has the name `{name}`; pass that manifest.json to `trainyard plugin wrap` in build.sh"
    )]
    OtherName {
        file: String,
        found: String,
        name: String,
    },
}

/// Returns what to do about a script that cannot be run.
fn advice(error: &io::Error, path: &str) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!("; make it executable with `chmod +x {path}`"),
        io::ErrorKind::NotFound => "; install the program in its first line".to_owned(),
        _ => String::new(),
    }
}

/// Whether a script builds the plugin in a directory. A crate is built by cargo, even if it has a script of this name.
pub(super) fn is_in(dir: &Path) -> bool {
    !dir.join("Cargo.toml").exists() && dir.join(SCRIPT).exists()
}

/// Reads the manifest of the plugin in a directory, with all phases if it does not list its own.
pub(super) fn manifest(dir: &Path) -> Result<Manifest, ScriptError> {
    let path = dir.join("manifest.json");
    let text = inputs::read_file(&path, MAX_MANIFEST).map_err(|error| ScriptError::Read {
        path: output::path(&path),
        error,
    })?;
    wrap::check_manifest(text.as_bytes()).map_err(|error| ScriptError::Manifest {
        path: output::path(&path),
        error,
    })
}

/// Runs the script in a directory, and returns the plugin that it built.
pub(super) fn run(dir: &Path) -> Result<Component, ScriptError> {
    // Before the script, which may take long.
    let manifest = manifest(dir)?;
    let script = dir.join(SCRIPT);
    let failed = |error| ScriptError::Run {
        path: output::path(&script),
        error,
    };
    let file = dir.join(format!("{}.wasm", manifest.name));
    // A file of an earlier build is not the result of this one.
    if let Err(error) = fs::remove_file(&file)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(ScriptError::Stale {
            path: output::path(&script),
            file: output::path(&file),
            error,
        });
    }
    let output = command(&script, dir)
        .and_then(|mut command| command.output())
        .map_err(failed)?;
    if !output.status.success() {
        // Some tools print their errors to the standard output. That of this command has only its own result.
        let printed = String::from_utf8_lossy(&output.stdout);
        let printed = output::cleaned(printed.lines());
        // If it cannot be written, neither can the error.
        let _ = io::stderr().write_all(printed.as_bytes());
        return Err(ScriptError::Failed {
            path: output::path(&script),
            status: output.status,
        });
    }
    let bytes = screen::read(&file, &LoadLimits::default());
    let bytes = bytes.map_err(|error| ScriptError::NoOutput {
        script: output::path(&script),
        file: output::path(&file),
        error,
    })?;
    let component = component::read(bytes).map_err(|error| ScriptError::NotPlugin {
        file: output::path(&file),
        error,
    })?;
    if component.manifest.name == manifest.name {
        return Ok(component);
    }
    Err(ScriptError::OtherName {
        file: output::path(&file),
        found: clean(&component.manifest.name),
        name: manifest.name,
    })
}

fn command(script: &Path, dir: &Path) -> io::Result<Command> {
    // A relative path would be looked up in the script's directory.
    let mut command = Command::new(script.canonicalize()?);
    command
        .current_dir(dir)
        .env("TRAINYARD", env::current_exe()?)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    Ok(command)
}
