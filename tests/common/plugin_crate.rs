//! Commands in the crate of a plugin that is not part of this workspace, or does not depend on it.

#![allow(clippy::unwrap_used)]

use std::{
    path::Path,
    process::{Command, Output},
};

use super::stderr;

/// Runs a program in a crate's folder. All guests and their tests share the target folder.
pub fn run(program: &str, args: &[&str], folder: &Path) -> Output {
    let built = Path::new(env!("CARGO_BIN_EXE_trainyard"));
    let target = built.ancestors().nth(2).unwrap();
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        // The crate does not belong to the workspace whose cargo runs this test.
        if name.to_string_lossy().starts_with("CARGO_") {
            command.env_remove(name);
        }
    }
    command
        .args(args)
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target)
        .env("NO_COLOR", "1");
    command.output().unwrap()
}

/// Runs the command `trainyard` in a crate's folder.
pub fn trainyard(args: &[&str], folder: &Path) -> Output {
    run(env!("CARGO_BIN_EXE_trainyard"), args, folder)
}

/// Fails with the output of a run that did not succeed.
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
