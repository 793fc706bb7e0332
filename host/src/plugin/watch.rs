//! `--watch`: runs this command again whenever a file changes.

use std::{
    env, io,
    path::{Component, Path, PathBuf},
    process::Command,
    sync::mpsc,
    time::Duration,
};

use notify::{Event, EventKind, RecursiveMode, Watcher};
use thiserror::Error;

use super::built::Built;
use crate::{
    output,
    report::{ErrorList, note},
};

/// The option that the next run does not have.
const OPTION: &str = "--watch";

/// Editors write a file in several steps.
const PAUSE: Duration = Duration::from_millis(200);

/// Why files cannot be watched.
#[derive(Debug, Error)]
enum WatchError {
    #[error("{path}: cannot be watched: {error}")]
    Watch { path: String, error: notify::Error },
    #[error("this command cannot be run again: {0}")]
    Run(#[from] io::Error),
    #[error("the system no longer reports changes of files; run the command again")]
    Ended,
}

/// Runs this command without `--watch`, and again whenever one of these files, or a file in one of these directories, changes.
pub(super) fn run(sources: &[&Path]) -> Result<(), ErrorList> {
    watch(sources).map_err(|error| ErrorList::from_iter([error.to_string()]))
}

fn watch(sources: &[&Path]) -> Result<(), WatchError> {
    let (sender, changes) = mpsc::channel();
    let sources: Vec<PathBuf> = sources.iter().map(|source| absolute(source)).collect();
    let watched = sources
        .iter()
        .map(|source| (source.clone(), Built::of(source)));
    let watched: Vec<_> = watched.collect();
    let on_event = move |event: notify::Result<Event>| {
        if event.is_ok_and(|event| is_change(&event, &watched)) {
            // Nobody waits at the end of the process.
            let _ = sender.send(());
        }
    };
    let failed = |path: &Path| {
        let path = output::path(path);
        move |error| WatchError::Watch { path, error }
    };
    let mut watcher = notify::recommended_watcher(on_event).map_err(failed(Path::new(".")))?;
    for source in &sources {
        // Editors replace a file, so its directory is watched.
        let (path, mode) = match source.is_dir() {
            true => (source.as_path(), RecursiveMode::Recursive),
            false => (
                source.parent().unwrap_or(source),
                RecursiveMode::NonRecursive,
            ),
        };
        watcher.watch(path, mode).map_err(failed(path))?;
    }
    let again = env::args_os().skip(1).filter(|argument| argument != OPTION);
    let again: Vec<_> = again.collect();
    loop {
        // A process of its own starts with no warnings and no plugins.
        Command::new(env::current_exe()?).args(&again).status()?;
        note("waiting for changes; Ctrl-C ends it");
        changes.recv().map_err(|_| WatchError::Ended)?;
        while changes.recv_timeout(PAUSE).is_ok() {}
    }
}

/// Returns a path as the system reports it.
fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Whether an event is a change of a source.
fn is_change(event: &Event, sources: &[(PathBuf, Built)]) -> bool {
    let is_write = matches!(
        event.kind,
        EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_)
    );
    let is_source = |path: &PathBuf| {
        sources
            .iter()
            .any(|(source, built)| is_in(path, source, built))
    };
    is_write && event.paths.iter().any(is_source)
}

/// Whether a path is a source, or a file of a directory of sources that no build writes.
fn is_in(path: &Path, source: &Path, built: &Built) -> bool {
    let is_built = |part: Component<'_>| built.contains(&part.as_os_str().to_string_lossy());
    match path.strip_prefix(source) {
        Ok(below) => !below.components().any(is_built),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn builds_are_no_changes() {
        let sources = ["/p", "/elsewhere/plugin.wasm", "/policy.yaml"].map(PathBuf::from);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".gitignore"), "/dist/\n*.tmp\n").unwrap();
        let built = Built::of(folder.path());
        let is_change = |path: &str| {
            let mut sources = sources.iter();
            sources.any(|source| is_in(Path::new(path), source, &built))
        };
        for path in [
            "/p/src/lib.rs",
            "/p/cases/a/input.yaml",
            "/elsewhere/plugin.wasm",
            "/policy.yaml",
        ] {
            assert!(is_change(path), "{path}");
        }
        for path in [
            "/p/target/a",
            "/p/a.wasm",
            "/p/.git/HEAD",
            "/p/wit/a.wit",
            "/p/bindings/guest.c",
            "/p/dist/a",
            "/elsewhere/other.yaml",
            "/q/a",
        ] {
            assert!(!is_change(path), "{path}");
        }
    }
}
