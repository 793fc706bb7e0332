//! Every file in a folder of tests is a module of that folder's `main.rs`: a file that is not would never run.

#![allow(clippy::unwrap_used)]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The folders whose tests are one program.
fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let crates = ["host", "plugins"]
        .into_iter()
        .flat_map(|rooms| fs::read_dir(root.join(rooms)).unwrap())
        .map(|entry| entry.unwrap().path().join("tests"));
    crates
        .chain([root.join("tests")])
        .filter(|folder| folder.is_dir())
        .collect()
}

#[test]
fn in_every_folder() {
    let folders = folders();
    assert!(folders.len() > 8, "{folders:?}");
    let mut missing = Vec::new();
    for folder in folders {
        let main = fs::read_to_string(folder.join("main.rs")).unwrap();
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let is_module = path.extension().is_some_and(|end| end == "rs") && name != "main";
            if is_module && !main.contains(&format!("\nmod {name};")) {
                missing.push(path);
            }
        }
    }
    assert!(
        missing.is_empty(),
        "add these to their main.rs: {missing:#?}"
    );
}
