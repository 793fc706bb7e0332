//! Checks the file of a plugin: it has no paths of a machine, and does not depend on where it is built.

use std::{collections::BTreeSet, env, fs, io, path::Path};

use trainyard_model::text::{clean, clean_to};

use super::report::{Check, CheckName};
use crate::{
    plugin::cases::{Cases, CasesArgs},
    report::ErrorList,
};

/// Beginnings of paths of users, on the systems that people build on.
const HOMES: [&str; 4] = ["/home/", "/Users/", "/root/", "C:\\Users\\"];

/// Parts of paths of sources and of tools. A plugin may name other paths, such as `/root/.ssh` in a container.
const OF_SOURCES: [&str; 10] = [
    ".c",
    ".cargo",
    ".go",
    ".js",
    ".py",
    ".rs",
    ".rustup",
    ".ts",
    "node_modules",
    "site-packages",
];

/// The longest part of a path that is printed.
const MAX_PATH: usize = 120;

/// What is not copied to the second directory.
const BUILT: [&str; 4] = ["target", "node_modules", ".git", "wit"];

/// Returns the checks of the file.
pub(super) fn checks(args: &CasesArgs, cases: &Cases) -> Result<[Check; 2], ErrorList> {
    let component = &cases.component;
    let tried = format!("{} bytes", component.len());
    let paths = Check::new(CheckName::Paths, tried, paths(component));
    let rebuilt = match args.dir() {
        None => Check::unneeded(CheckName::Rebuild, "a file was passed, not its directory"),
        Some(dir) if !is_whole(dir) => {
            let why = "the crate needs the workspace in a directory above";
            Check::unneeded(CheckName::Rebuild, why)
        }
        Some(dir) => rebuilt(args, cases, dir)?,
    };
    Ok([paths, rebuilt])
}

/// Whether a plugin's directory can be built in another place.
fn is_whole(dir: &Path) -> bool {
    let cargo = fs::read_to_string(dir.join("Cargo.toml"));
    // Other languages have no workspaces.
    cargo.map_or(true, |cargo| {
        cargo.lines().any(|line| line.trim() == "[workspace]")
    })
}

/// Builds a copy of the directory, and compares the files.
fn rebuilt(args: &CasesArgs, cases: &Cases, dir: &Path) -> Result<Check, ErrorList> {
    let failed = |error: io::Error| {
        let dir = clean(&dir.display().to_string());
        ErrorList::from_iter([format!(
            "{dir}: cannot be copied, to build it in another directory: {error}"
        )])
    };
    let copy = tempfile::tempdir().map_err(failed)?;
    copy_folder(dir, copy.path()).map_err(failed)?;
    let other = args.build_copy(copy.path())?;
    let failures = (other != cases.component).then(|| {
        "the file differs if the same sources are built in another directory, so nobody can check what it was built from".to_owned()
    });
    let tried = "1 other directory".to_owned();
    Ok(Check::new(
        CheckName::Rebuild,
        tried,
        failures.into_iter().collect(),
    ))
}

/// Returns what a component contains of the directories of the machine that built it.
fn paths(component: &[u8]) -> Vec<String> {
    let own = [env::var("HOME").ok(), env::var("CARGO_HOME").ok()];
    let own = own.into_iter().flatten().filter(|path| path.len() > 2);
    let homes = HOMES.iter().map(|home| (*home).to_owned());
    let beginnings: BTreeSet<_> = homes.chain(own).collect();
    let mut found = BTreeSet::new();
    // A path is printable, and ends at a character that no path of a source has.
    let is_of_path = |byte: &u8| byte.is_ascii_graphic() && !b"\"'<>|;,`".contains(byte);
    for text in component.split(|byte| !is_of_path(byte)) {
        let text = String::from_utf8_lossy(text);
        let starts = beginnings
            .iter()
            .filter_map(|start| text.find(start.as_str()));
        let Some(path) = starts.min().and_then(|at| text.get(at..)) else {
            continue;
        };
        if OF_SOURCES.iter().any(|part| path.contains(part)) {
            found.insert(format!("it contains `{}`", clean_to(path, MAX_PATH)));
        }
    }
    found.into_iter().collect()
}

/// Copies the files of a directory, without what was built in it.
fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if BUILT.iter().any(|built| *name == **built) {
            continue;
        }
        let target = to.join(&name);
        match entry.file_type()? {
            kind if kind.is_dir() => copy_folder(&entry.path(), &target)?,
            kind if kind.is_file() => drop(fs::copy(entry.path(), target)?),
            // A link may lead out of the directory.
            _ => {}
        }
    }
    Ok(())
}
