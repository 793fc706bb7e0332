//! A failing property test writes its counterexample to a file beside the tests, which Git tracks, and tries it first on the next run.

use std::{cell::RefCell, fs, path::Path, process::Command};

use proptest::test_runner::{Config, TestRunner};

/// The file with the counterexamples of this file.
const KEPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/proptest-regressions/counterexamples_are_kept.txt"
);

/// Runs a property that fails for numbers of at least 1,000, with the settings of all property tests, and returns the values that
/// were tried.
fn tried() -> Vec<u32> {
    let config = Config {
        source_file: Some(file!()),
        test_name: Some("tried"),
        ..Config::default()
    };
    let values = RefCell::new(Vec::new());
    let result = TestRunner::new(config).run(&proptest::num::u32::ANY, |value| {
        values.borrow_mut().push(value);
        proptest::prop_assert!(value < 1000);
        Ok(())
    });
    assert!(
        result.is_err(),
        "numbers are tried until one breaks the property"
    );
    values.into_inner()
}

#[test]
fn counterexamples_are_tried_first_by_the_next_run() {
    let _ = fs::remove_file(KEPT);
    tried();
    let kept = fs::read_to_string(KEPT).unwrap_or_default();
    let ignored = Command::new("git")
        .args(["check-ignore", "-q", KEPT])
        .status();
    let again = tried();
    let _ = fs::remove_file(KEPT);
    assert!(
        kept.lines().any(|line| line.starts_with("cc ")),
        "{KEPT}: {kept}"
    );
    assert!(
        again.first().is_some_and(|value| *value >= 1000),
        "{again:?}"
    );
    // Without git, as in an archive of the sources, nothing is ignored.
    assert!(
        !ignored.is_ok_and(|status| status.success()),
        "git ignores {KEPT}"
    );
}

#[test]
fn every_property_test_keeps_counterexamples() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders: Vec<_> = ["host", "plugins", "tests"]
        .map(|name| root.join(name))
        .into();
    let mut tests = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap_or_default();
            if path.extension().is_some_and(|ending| ending == "rs") && text.contains("proptest! {")
            {
                tests += 1;
                let setting = ["failure", "persistence"].join("_");
                assert!(!text.contains(&setting), "{} keeps none", path.display());
            }
        }
    }
    assert!(tests > 5, "{tests} files with property tests");
}
