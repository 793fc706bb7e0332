//! Checks the file of a plugin: it has no paths of a machine, and does not depend on where it is built.

use std::{collections::BTreeSet, env, fs, io, path::Path};

use trainyard_model::text::clean_to;

use super::report::{Check, CheckName};
use crate::{
    output,
    plugin::{
        built::Built,
        cases::{Cases, CasesArgs},
    },
    report::ErrorList,
};

/// Beginnings of paths of users, on the systems that people build on.
const HOMES: [&str; 4] = ["/home/", "/Users/", "/root/", "C:\\Users\\"];

/// The ends of the names of sources.
const SOURCES: [&str; 8] = ["c", "cpp", "go", "h", "js", "py", "rs", "ts"];

/// Directories of tools. A plugin may name other paths, such as `/root/.ssh` in a container.
const OF_TOOLS: [&str; 4] = [".cargo", ".rustup", "node_modules", "site-packages"];

/// The longest part of a path that is printed.
const MAX_PATH: usize = 120;

/// What tools install in the directory of a plugin. The copy links to it.
const INSTALLED: [&str; 2] = [".venv", "node_modules"];

/// Returns the checks of the file.
pub(super) fn checks(args: &CasesArgs, cases: &Cases) -> Result<[Check; 2], ErrorList> {
    let component = &cases.component;
    let tried = format!("{} bytes", component.len());
    let paths = Check::new(CheckName::Paths, tried, paths(component, args.dir()));
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

/// Builds a copy of the directory, and compares the files. A copy that cannot be built is a failure of the check.
fn rebuilt(args: &CasesArgs, cases: &Cases, dir: &Path) -> Result<Check, ErrorList> {
    let failed = |error: io::Error| {
        let dir = output::path(dir);
        ErrorList::from_iter([format!(
            "{dir}: cannot be copied, to build it in another directory: {error}"
        )])
    };
    let copy = tempfile::tempdir().map_err(failed)?;
    let target = copy.path().canonicalize().map_err(failed)?;
    copy_folder(dir, &target, &Built::of(dir)).map_err(failed)?;
    let failures = match args.build_copy(copy.path()) {
        Ok(other) if other == cases.component => Vec::new(),
        Ok(_) => vec!["the file differs if the same sources are built in another directory, so nobody can check what it was built from".to_owned()],
        Err(errors) => {
            let errors = errors.lines();
            errors.map(|error| format!("a copy cannot be built: {error}")).collect()
        }
    };
    let tried = "1 other directory".to_owned();
    Ok(Check::new(CheckName::Rebuild, tried, failures))
}

/// Returns what a component contains of the directories of the machine that built it.
fn paths(component: &[u8], dir: Option<&Path>) -> Vec<String> {
    let dir = dir.and_then(|dir| dir.canonicalize().ok());
    let dir = dir.and_then(|dir| dir.to_str().map(str::to_owned));
    let own = [env::var("HOME").ok(), env::var("CARGO_HOME").ok(), dir];
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
        if is_of_build(path) {
            found.insert(format!("it contains `{}`", clean_to(path, MAX_PATH)));
        }
    }
    found.into_iter().collect()
}

/// Whether a path is that of a source or a tool. It may end with a line and a column.
fn is_of_build(path: &str) -> bool {
    let path = path.trim_end_matches(|end: char| end == ':' || end.is_ascii_digit());
    let mut names = path.split(['/', '\\']);
    let end = Path::new(path).extension().and_then(|end| end.to_str());
    end.is_some_and(|end| SOURCES.contains(&end)) || names.any(|name| OF_TOOLS.contains(&name))
}

/// Copies the files of a directory, without what was built in it.
fn copy_folder(from: &Path, to: &Path, built: &Built) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let target = to.join(&name);
        if INSTALLED.iter().any(|installed| *name == **installed) {
            link(&entry.path().canonicalize()?, &target)?;
            continue;
        }
        // The copy itself may be in the directory.
        let path = entry.path().canonicalize();
        let is_copy = path.is_ok_and(|path| to.starts_with(path));
        if is_copy || built.contains(&name.to_string_lossy()) {
            continue;
        }
        match entry.file_type()? {
            kind if kind.is_dir() => copy_folder(&entry.path(), &target, built)?,
            kind if kind.is_file() => drop(fs::copy(entry.path(), target)?),
            // A link may lead out of the directory.
            _ => {}
        }
    }
    Ok(())
}

#[cfg(unix)]
fn link(from: &Path, to: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(from, to)
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_sources_and_tools_are_found() {
        let found = paths(
            b"\0/home/me/p/src/lib.rs:12:3\0/Users/me/.cargo/registry/x\0",
            None,
        );
        assert_eq!(
            found,
            [
                "it contains `/Users/me/.cargo/registry/x`",
                "it contains `/home/me/p/src/lib.rs:12:3`"
            ]
        );
        let of_containers =
            b"\"/root/.ssh\"\0/root/.cache/huggingface\0/root/.docker/config.json\0/home/user/data";
        assert!(paths(of_containers, None).is_empty());
    }
}
