//! The watches and the printed permissions of the controller know nothing of reconciles.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Whether a line of code, which is not a comment, names the module `reconcile`.
fn names_reconcile(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .any(|word| word == "reconcile")
}

/// The source files of a directory.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else {
            files.push(path);
        }
    }
    files
}

#[test]
fn no_line_of_watch_or_rbac_names_reconcile() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for module in ["watch", "rbac"] {
        let files = sources(&src.join(module));
        assert!(files.len() > 3, "{module} has {} files", files.len());
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let found = text.lines().find(|line| names_reconcile(line));
            assert_eq!(found, None, "{}", file.display());
        }
    }
}

#[test]
fn imports_and_paths_are_found() {
    assert!(names_reconcile("use crate::reconcile::Reconciler;"));
    assert!(names_reconcile("    reconcile::{Snapshot, status},"));
    assert!(names_reconcile("let x = crate::reconcile::status::end(y);"));
    assert!(!names_reconcile(
        "/// Triggers a reconcile of the TrainJob."
    ));
    assert!(!names_reconcile("self.reconcile_again();"));
}
