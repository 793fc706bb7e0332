//! Everything that belongs to a policy is in `plugins/NAME`: if a folder and a line of tests/policies/Cargo.toml are added, whatever lists
//! policies lists one more, and if they are removed, it is as before. The program itself names no policy.
//!
//! The lists that build scripts write are computed for a copy of the workspace with another policy, and are not compiled. That they compile,
//! and that the program contains what they list, the policies of this workspace show.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use trainyard_plugin_folders::{cases, plugins, runtimes, tables};

use crate::common::{root, sources};

/// Links each file and folder of a folder, apart from these.
fn link(from: &Path, to: &Path, apart: &[&str]) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let name = entry.unwrap().file_name();
        if !apart.iter().any(|apart| name == *apart) {
            symlink(from.join(&name), to.join(&name)).unwrap();
        }
    }
}

/// Copies a folder, with other words in the names and texts of its files.
fn copy_renamed(from: &Path, to: &Path, words: [(&str, &str); 3]) {
    let renamed = |text: &str| {
        let words = words.into_iter();
        words.fold(text.to_owned(), |text, (old, new)| text.replace(old, new))
    };
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(renamed(path.file_name().unwrap().to_str().unwrap()));
        if path.is_dir() {
            copy_renamed(&path, &to, words);
        } else {
            fs::write(to, renamed(&fs::read_to_string(path).unwrap())).unwrap();
        }
    }
}

/// What lists policies, by name. Paths are relative to the root.
fn lists(root: &Path) -> BTreeMap<&'static str, String> {
    let shown = |found: BTreeMap<String, PathBuf>| format!("{found:#?}");
    let lists = [
        ("plugins", shown(plugins(root).unwrap())),
        ("cases", shown(cases(root).unwrap())),
        ("runtimes", shown(runtimes(root).unwrap())),
        ("kustomization", tables::kustomization(root).unwrap()),
        ("native plugins", tables::native_plugins(root).unwrap()),
        (
            "runtimes in the program",
            tables::shipped_runtimes(root).unwrap(),
        ),
        ("members of unions", tables::union_members(root).unwrap()),
        ("references", tables::references(root).unwrap()),
        ("generators", tables::generators(root).unwrap()),
        ("divergences", tables::divergences(root).unwrap()),
        ("packages", packages(root)),
    ];
    let prefix = format!("{}/", root.display());
    let lists = lists.into_iter();
    lists
        .map(|(name, list)| (name, list.replace(&prefix, "")))
        .collect()
}

/// Returns the plugins in the workspace, and those that the native plugins depend on.
fn packages(root: &Path) -> String {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--no-deps", "--format-version=1"])
        .current_dir(root)
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{error}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names = |packages: &Value| {
        let packages = packages.as_array().unwrap().iter();
        let names = packages.map(|package| package["name"].as_str().unwrap().to_owned());
        let plugins = names.filter(|name| name.starts_with("trainyard-plugin-"));
        plugins.collect::<Vec<_>>()
    };
    let packages = metadata["packages"].as_array().unwrap();
    let policies = packages
        .iter()
        .find(|it| it["name"] == "trainyard-policies");
    let dependencies = names(&policies.unwrap()["dependencies"]);
    format!("{:#?}\n{dependencies:#?}", names(&metadata["packages"]))
}

#[test]
fn a_folder_and_a_line_add_a_policy_and_nothing_else() {
    let scratch = tempfile::tempdir().unwrap();
    let copy = scratch.path().canonicalize().unwrap();
    link(&root(), &copy, &["plugins", "target", "tests"]);
    link(&root().join("plugins"), &copy.join("plugins"), &[]);
    link(&root().join("tests"), &copy.join("tests"), &["policies"]);
    link(
        &root().join("tests/policies"),
        &copy.join("tests/policies"),
        &["Cargo.toml"],
    );
    let crate_of_policies = copy.join("tests/policies/Cargo.toml");
    fs::copy(root().join("tests/policies/Cargo.toml"), &crate_of_policies).unwrap();
    let before = lists(&copy);
    assert_eq!(before, lists(&root()));

    let folder = copy.join("plugins/acme");
    let words = [("jax", "acme"), ("JAX", "ACME"), ("Jax", "Acme")];
    copy_renamed(&root().join("plugins/jax"), &folder, words);
    let text = fs::read_to_string(&crate_of_policies).unwrap();
    let line = "trainyard-plugin-jax = { path = \"../../plugins/jax\" }\n";
    let added = line.replace("jax", "acme");
    let longer = text.replace(line, &format!("{line}{added}"));
    fs::write(&crate_of_policies, longer).unwrap();
    for (name, list) in lists(&copy) {
        let others = &before[name];
        // What names JAX names the added policy as often, and nothing else has changed.
        let count = |text: &str, word: &str| text.to_lowercase().matches(word).count();
        assert_eq!(count(others, "acme"), 0, "{name}");
        assert_eq!(count(&list, "acme"), count(others, "jax"), "{name}");
        assert!(count(&list, "acme") > 0, "{name}");
        let rest: Vec<_> = list
            .lines()
            .filter(|line| count(line, "acme") == 0)
            .collect();
        let rest_before: Vec<_> = others.lines().filter(|line| !rest.contains(line)).collect();
        // The line of `BUILT_INS` has all of them.
        assert!(rest_before.len() <= 1, "{name}: {rest_before:?}");
    }

    fs::remove_dir_all(folder).unwrap();
    fs::write(&crate_of_policies, text).unwrap();
    assert_eq!(lists(&copy), before);
}

/// Whatever may name policies, and why.
const MAY_NAME: [&str; 4] = [
    // Differences from the reference that plugins share.
    "host/divergences/src/",
    // Warnings of differences from the reference.
    "host/render/src/differences/",
    // The API server's default for the number of processes counts as not set.
    "host/render/src/resolve/mod.rs",
    // Warnings about fields of Jobs that plugins cannot read.
    "host/render/src/resolve/restarts.rs",
];

#[test]
fn the_program_names_no_policy() {
    let mut files = Vec::new();
    for entry in fs::read_dir(root().join("host")).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("src") {
            sources(&path, &mut files);
        } else if path.join("src").is_dir() {
            sources(&path.join("src"), &mut files);
        }
    }
    assert!(files.len() > 200, "{} files", files.len());
    let names: Vec<_> = plugins(&root()).unwrap().into_keys().collect();
    let quoted: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
    let mut naming = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        let shown = file.strip_prefix(root()).unwrap().display().to_string();
        let is_test = shown.contains("/tests/") || shown.ends_with("/tests.rs");
        let names = quoted.iter().any(|name| code.contains(name));
        if names && !is_test && !MAY_NAME.iter().any(|known| shown.starts_with(known)) {
            naming.push(shown);
        }
    }
    assert!(naming.is_empty(), "these name policies: {naming:#?}");
}
