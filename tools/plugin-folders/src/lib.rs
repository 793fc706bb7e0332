//! The folders of the built-in plugins. Everything that belongs to a plugin is in its folder, and is found by listing these folders: build
//! scripts list what the program contains, and tests what they check.
//!
//! [`tables`] has the Rust code and the YAML that name what was found.
//!
//! A build script watches `Cargo.lock`, which changes with each new plugin, and the files that it reads. If it watched the folders, each
//! changed case or README would build the program again.

pub mod tables;

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

/// Returns the root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_owned()
}

/// Returns the folders of the built-in plugins by name: each directory in `plugins` with a `manifest.json`.
///
/// # Errors
/// A folder cannot be read.
pub fn plugins(root: &Path) -> io::Result<BTreeMap<String, PathBuf>> {
    let mut folders = entries(&root.join("plugins"))?;
    folders.retain(|folder| folder.join("manifest.json").is_file());
    by_name(folders)
}

/// Returns what is in a directory of each plugin, such as `cases`, which a plugin may lack.
///
/// # Errors
/// A folder cannot be read.
pub fn of_each(root: &Path, directory: &str) -> io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for folder in plugins(root)?.into_values() {
        let directory = folder.join(directory);
        if directory.is_dir() {
            all.extend(entries(&directory)?);
        }
    }
    Ok(all)
}

/// Returns the folders of all cases by name: those of the plugins, and those in `tests/cases`, which belong to none.
///
/// # Errors
/// A folder cannot be read, or two cases have one name.
pub fn cases(root: &Path) -> io::Result<BTreeMap<String, PathBuf>> {
    let mut cases = of_each(root, "cases")?;
    cases.extend(entries(&root.join("tests/cases"))?);
    by_name(cases)
}

/// Returns the files of the shipped runtimes by name.
///
/// # Errors
/// A folder cannot be read, or two runtimes have one name.
pub fn runtimes(root: &Path) -> io::Result<BTreeMap<String, PathBuf>> {
    let mut files = of_each(root, "runtimes")?;
    files.retain(|file| !file.ends_with("kustomization.yaml"));
    by_name(files)
}

fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

/// Sorts files and folders by their names, without `.yaml`.
fn by_name(paths: Vec<PathBuf>) -> io::Result<BTreeMap<String, PathBuf>> {
    let mut all = BTreeMap::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(".yaml").unwrap_or(&name).to_owned();
        if let Some(other) = all.insert(name, path.clone()) {
            let (path, other) = (path.display(), other.display());
            return Err(io::Error::other(format!(
                "{path}: has the name of {other}; rename one of them"
            )));
        }
    }
    Ok(all)
}
