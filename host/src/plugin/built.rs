//! What builds write in the directory of a plugin.

use std::{collections::BTreeSet, fs, path::Path};

/// The names of files and directories that builds and tools write, beside those in a `.gitignore`.
const NAMES: [&str; 4] = ["bindings", "node_modules", "target", "wit"];

/// The names of what builds write in the directory of a plugin.
pub(super) struct Built(BTreeSet<String>);

impl Built {
    /// Returns the names for a directory: the usual ones, and those in its `.gitignore` that are no patterns.
    pub(super) fn of(dir: &Path) -> Self {
        let ignored = fs::read_to_string(dir.join(".gitignore")).unwrap_or_default();
        let ignored = ignored
            .lines()
            .map(|line| line.trim().trim_matches('/').to_owned());
        let is_name = |line: &String| !line.is_empty() && !line.contains(['#', '*', '!', '/']);
        let usual = NAMES.iter().map(|name| (*name).to_owned());
        Self(usual.chain(ignored.filter(is_name)).collect())
    }

    /// Whether a build writes what has this name.
    pub(super) fn contains(&self, name: &str) -> bool {
        let is_component = Path::new(name).extension().is_some_and(|end| end == "wasm");
        name.starts_with('.') || is_component || self.0.contains(name)
    }
}
