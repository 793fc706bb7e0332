//! Tests that need what this machine lacks.

use std::{env, fs::OpenOptions, io::Write as _, thread};

/// The environment variable with the file to which `tools/skipped.sh` wants the skipped tests to be written.
const FILE: &str = "TRAINYARD_SKIPPED";

/// Notes that the test that calls this is skipped, in whole or in part, because of `missing`, which says what to install. libtest reports
/// such a test as passed, so `make test` and `.ci/run` count what is noted.
///
/// # Panics
/// If skipped tests are not counted, because `TRAINYARD_SKIPPED` is not set.
#[allow(clippy::panic, reason = "only tests call it")]
pub fn skip(missing: &str) {
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test");
    let Some(file) = env::var_os(FILE) else {
        panic!(
            "{missing}; `tools/skipped.sh COMMAND` skips the tests that need it, and counts them"
        );
    };
    // A line is a test.
    let missing = missing.lines().collect::<Vec<_>>().join(" ");
    let noted = OpenOptions::new().append(true).create(true).open(&file);
    let noted =
        noted.and_then(|mut file| file.write_all(format!("{test}: {missing}\n").as_bytes()));
    assert!(noted.is_ok(), "{FILE} cannot be written: {noted:?}");
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::{fs, process::Command};

    use super::*;

    /// The test that the next one runs as a process of its own, with other environment variables.
    #[test]
    fn a_tool_is_missing() {
        if env::var_os("TRAINYARD_SKIPS").is_some() {
            skip("a tool is missing:\ninstall it");
        }
    }

    #[test]
    fn skipped_tests_fail_unless_they_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("skipped");
        let run = || {
            let mut command = Command::new(env::current_exe().unwrap());
            command.args(["--exact", "skipped::tests::a_tool_is_missing"]);
            command.env("TRAINYARD_SKIPS", "1").env_remove(FILE);
            command
        };
        let alone = run().output().unwrap();
        assert!(!alone.status.success() && !file.exists(), "{alone:?}");
        for _ in 0..2 {
            let counted = run().env(FILE, &file).output().unwrap();
            assert!(counted.status.success(), "{counted:?}");
        }
        let line = "skipped::tests::a_tool_is_missing: a tool is missing: install it\n";
        assert_eq!(fs::read_to_string(&file).unwrap(), line.repeat(2));
    }
}
