//! The folders of plugins, such as those that `trainyard plugin new` creates.

#![allow(clippy::unwrap_used)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use super::{root, stderr};

/// Returns the target folder of plugins outside of this repository, which is kept between runs. In the workspace's own, cargo would replace
/// crates that have the same name, and compile those of guests again whenever a guest of the workspace is built: their paths are replaced
/// by other names.
pub fn target() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_trainyard"));
    program.ancestors().nth(2).unwrap().join("outside")
}

/// Runs a program in a plugin's folder, which does not belong to the workspace whose cargo runs this test.
pub fn run(program: impl AsRef<Path>, args: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(program.as_ref());
    for (name, _) in std::env::vars_os() {
        let is_of = |tool| name.to_string_lossy().starts_with(tool);
        if is_of("CARGO_") || is_of("RUSTC_") {
            command.env_remove(name);
        }
    }
    command
        .args(args)
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target())
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        // Scripts in the folder run this command, like `trainyard plugin build`.
        .env("TRAINYARD", env!("CARGO_BIN_EXE_trainyard"))
        .env("NO_COLOR", "1");
    command.output().unwrap()
}

/// Runs the command in a plugin's folder.
pub fn trainyard(args: &[&str], folder: &Path) -> Output {
    run(env!("CARGO_BIN_EXE_trainyard"), args, folder)
}

/// Creates a plugin in a folder.
pub fn new(name: &str, kind: &str, language: &str, folder: &Path) -> Output {
    let sdk = root().join("plugins/sdk");
    let sdk = sdk.to_str().unwrap();
    let args = ["plugin", "new", name, "--kind", kind, "--sdk", sdk];
    trainyard(&[&args[..], &["--language", language]].concat(), folder)
}

/// Selects the workspace's versions of packages for a plugin: they are on this machine, and compiled for the others. Users have the newest.
pub fn lock(folder: &Path) {
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
}

/// Creates a plugin in a folder, and returns its own.
pub fn created(name: &str, kind: &str, language: &str, folder: &Path) -> PathBuf {
    succeeded(&new(name, kind, language, folder), kind);
    let created = folder.join(name);
    if language == "rust" {
        lock(&created);
    }
    created
}

/// Fails with what a run printed, if it did not succeed.
pub fn succeeded(output: &Output, what: &str) {
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{what}: {printed}{}",
        stderr(output)
    );
}

/// Fails unless the cases of a plugin are as expected and use all of its claims. Returns the report of `plugin test`.
pub fn cases_are_as_expected(folder: &Path, what: &str) -> String {
    let tested = trainyard(&["plugin", "test"], folder);
    succeeded(&tested, what);
    let printed = String::from_utf8(tested.stdout).unwrap();
    assert!(printed.ends_with(": all as expected\n"), "{printed}");
    let claims = trainyard(&["plugin", "claims"], folder);
    succeeded(&claims, what);
    assert!(!stderr(&claims).contains("warning"), "{}", stderr(&claims));
    printed
}
