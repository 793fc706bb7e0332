//! `docs/architecture.md` shows the crates and dependencies of the workspace, the files that it names exist, and each crate's
//! documentation names all its modules.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use trainyard_plugin_folders::plugins;

use crate::common::root;

const PREFIX: &str = "trainyard-";

fn map() -> String {
    fs::read_to_string(root().join("docs/architecture.md")).unwrap()
}

/// Returns the diagrams of the page.
fn pictures(map: &str) -> Vec<&str> {
    let blocks = map.split("```mermaid").skip(1);
    blocks
        .map(|block| block.split_once("```").unwrap().0)
        .collect()
}

/// Returns the crates of the program, each with its dependencies. Those of the built-in plugins are one, and so are the templates.
fn crates() -> BTreeSet<(String, String)> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--frozen", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let policies: BTreeSet<_> = plugins(&root()).unwrap().into_keys().collect();
    let short = |name: &Value| {
        let name = name.as_str().unwrap();
        let name = name.strip_prefix(PREFIX).unwrap_or(name);
        match name.strip_prefix("plugin-") {
            Some(policy) if policies.contains(policy) => "plugins".to_owned(),
            _ if name.starts_with("template-") => "templates".to_owned(),
            _ => name.to_owned(),
        }
    };
    let root = root().canonicalize().unwrap();
    let mut edges = BTreeSet::new();
    for package in metadata["packages"].as_array().unwrap() {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        let folder = manifest.strip_prefix(&root).unwrap();
        if !folder.starts_with("host") && !folder.starts_with("plugins") {
            continue;
        }
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let ours = dependencies.filter(|it| it["path"].is_string() && it["kind"] != "dev");
        edges.extend(ours.map(|it| (short(&package["name"]), short(&it["name"]))));
    }
    edges
}

#[test]
fn crate_diagram_matches_cargo_metadata() {
    let map = map();
    let arrows = pictures(&map)[0].lines();
    let arrows = arrows.filter_map(|line| line.trim().split_once(" --> "));
    let drawn: BTreeSet<_> = arrows
        .map(|(from, to)| (from.to_owned(), to.to_owned()))
        .collect();
    assert_eq!(drawn, crates());
}

/// Returns the paths that the text and the diagrams name, relative to the repository. A path with a capital letter is a placeholder.
fn paths(map: &str) -> BTreeSet<&str> {
    let tops = [
        "charts/", "deploy/", "docs/", "host/", "plugins/", "tests/", "tools/", "wit/",
    ];
    let is_path = |word: &&str| tops.iter().any(|top| word.starts_with(top));
    let is_general = |word: &&str| word.split('/').any(|part| part == "NAME");
    let words = map.split(['`', '"', ' ', ',', '\n', '[', ']', '(', ')']);
    words
        .filter(is_path)
        .filter(|word| !is_general(word))
        .collect()
}

#[test]
fn named_files_exist() {
    let map = map();
    let paths = paths(&map);
    assert!(paths.len() > 30, "{paths:?}");
    for path in paths {
        assert!(root().join(path).exists(), "{path}");
    }
}

/// Returns the modules that a crate's root declares.
fn rooms(page: &str) -> Vec<&str> {
    let declared = page.lines().filter_map(|line| {
        let line = line.strip_prefix("pub ").unwrap_or(line);
        line.strip_prefix("mod ")?.strip_suffix(';')
    });
    declared.collect()
}

#[test]
fn crate_docs_name_their_modules() {
    let mut checked = 0;
    for crate_folder in fs::read_dir(root().join("host")).unwrap() {
        let page = crate_folder.unwrap().path().join("src/lib.rs");
        let Ok(page_text) = fs::read_to_string(&page) else {
            continue;
        };
        let docs: String = page_text
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .collect();
        for room in rooms(&page_text) {
            let named = [format!("`{room}`"), format!("`{room}::")];
            assert!(
                named.iter().any(|name| docs.contains(name)),
                "{}: does not say what `{room}` is",
                page.display()
            );
            checked += 1;
        }
    }
    assert!(checked > 80, "{checked} rooms");
}

/// Returns the source files of the program, of the SDK and of the built-in plugins.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn modules_and_imports_have_one_style() {
    let mut files = Vec::new();
    for folder in ["host", "plugins"] {
        sources(&root().join(folder), &mut files);
    }
    assert!(files.len() > 300, "{} files", files.len());
    for file in files {
        let shown = file.display();
        // A module with submodules is the `mod.rs` of its folder.
        assert!(
            !file.with_extension("").is_dir(),
            "{shown}: is not a mod.rs"
        );
        // Imports from one crate are merged: rustfmt's `imports_granularity = "Crate"`.
        let text = fs::read_to_string(&file).unwrap();
        if text.contains("@generated") {
            continue;
        }
        let mut imported = BTreeSet::new();
        let mut is_conditional = false;
        for line in text.lines() {
            let from = line
                .strip_prefix("use ")
                .and_then(|rest| rest.split("::").next());
            if let Some(from) = from.filter(|_| !is_conditional) {
                assert!(
                    imported.insert(from),
                    "{shown}: imports twice from `{from}`"
                );
            }
            is_conditional = line.starts_with("#[");
        }
    }
}
