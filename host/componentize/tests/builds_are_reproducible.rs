//! The same sources give the same component in any source and target directory.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
};

use trainyard_componentize::build::{self, Messages, Options};

/// The files of the repository that a build of a plugin reads.
const SOURCES: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "examples",
    "host",
    "plugins",
    "tests",
    "tools",
    "wit",
];

/// Returns options with a target directory. Target directories are kept between runs, so only the first run builds Torch's dependencies.
fn options(target_dir: PathBuf) -> Options {
    Options {
        target_dir: Some(target_dir),
        locked: true,
        messages: Messages::Keep,
    }
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
fn torch_built_in_two_folders_has_the_same_bytes() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (base, guests) = (tmp.join("same-bytes"), tmp.with_file_name("guest"));
    // As it is built into the program, after another plugin, and alone from a copy.
    let copy = copied(&repository, &base.join("a/longer path/to/the other"));
    let (one, other) = thread::scope(|scope| {
        let one = scope.spawn(|| {
            let folders = ["jax", "torch"].map(|name| repository.join("plugins").join(name));
            let mut built = build::build_all(&folders, &options(guests)).unwrap();
            built.pop().unwrap().component.bytes
        });
        let other = scope.spawn(|| {
            let options = options(base.join("elsewhere/target"));
            let built = build::build(&copy.join("plugins/torch"), &options);
            built.unwrap().component.bytes
        });
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
