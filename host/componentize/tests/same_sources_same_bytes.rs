//! The same sources give the same component, in whatever folder they are and wherever cargo builds them.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use trainyard_componentize::build::{self, Messages, Options};

/// What a build of a plugin reads of the repository.
const SOURCES: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "host",
    "plugins",
    "tests",
    "wit",
];

/// Builds Torch from a copy of the sources. Target folders stay from run to run, so that only the first run takes a minute.
fn torch_from_copy(from: &Path, copy: &str, target: &str) -> Vec<u8> {
    let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join("same-bytes");
    let copy = copied(from, &base.join(copy));
    let target_dir = Some(base.join(target));
    let options = Options {
        target_dir,
        locked: true,
        messages: Messages::Keep,
    };
    build::build(&copy.join("plugins/torch"), &options)
        .unwrap_or_else(|error| panic!("{error}"))
        .component
        .bytes
}

fn copied(from: &Path, to: &Path) -> PathBuf {
    for name in SOURCES {
        let (from, to) = (from.join(name), to.join(name));
        if from.is_dir() {
            let _ = fs::remove_dir_all(&to);
        }
        copy(&from, &to);
    }
    to.to_owned()
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    }
}

#[test]
fn torch_from_two_folders_has_the_same_bytes() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sources = copied(
        &repository,
        &Path::new(env!("CARGO_TARGET_TMPDIR")).join("same-bytes/sources"),
    );
    let (one, other) = thread::scope(|scope| {
        let one = scope.spawn(|| torch_from_copy(&sources, "one", "one/target"));
        let other = scope
            .spawn(|| torch_from_copy(&sources, "a/longer path/to/the other", "elsewhere/target"));
        (one.join().unwrap(), other.join().unwrap())
    });
    assert!(
        one.len() > 10_000,
        "there is code in it: {} bytes",
        one.len()
    );
    assert!(
        one == other,
        "{} and {} bytes that differ",
        one.len(),
        other.len()
    );
}
