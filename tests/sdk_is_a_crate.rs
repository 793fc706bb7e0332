//! The crates that can be published are complete: each is packaged and unpacked, and a plugin that is built from them works, without network.
//!
//! Within this repository, a file outside of a crate's folder is found, too, so nothing else would show that it is missing in the package.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::common::{
    plugin_folder::{lock, run, succeeded, trainyard},
    root,
};

/// Warnings of `cargo package`: the repository has no public address, and the tests and examples of the host's crates read other files of it.
const EXPECTED: [&str; 3] = [
    "manifest has no documentation, homepage or repository",
    "ignoring example `",
    "ignoring test `all` as `tests/main.rs` is not included",
];

/// A test of the new plugin that renders its case.
const YAML_TEST: &str = r#"
use packaged::PLUGIN;
use trainyard_sdk::mock::{MockInput, MockPlugin};

#[test]
fn the_case_is_rendered() {
    let plugin = MockPlugin::new(&PLUGIN).all_granted();
    let input = MockInput::new(include_str!("../cases/basic/input.yaml"));
    let rendered = input.plugin(plugin).render().unwrap();
    let node = rendered.container("node", "node").unwrap();
    assert_eq!(node["resources"]["limits"]["example.com/nic"], "4");
}
"#;

/// Returns the names and versions of the crates that can be published.
fn published() -> BTreeMap<String, String> {
    let args = ["metadata", "--frozen", "--no-deps", "--format-version", "1"];
    let output = Command::new(env!("CARGO"))
        .args(args)
        .current_dir(root())
        .output()
        .unwrap();
    succeeded(&output, "cargo metadata");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    packages
        .filter(|package| package["publish"].is_null())
        .map(|package| (text(&package["name"]), text(&package["version"])))
        .collect()
}

/// Packages the crates and unpacks them. Returns their folders by name.
fn unpacked(folder: &Path) -> BTreeMap<String, PathBuf> {
    let published = published();
    let names: Vec<_> = published.keys().map(String::as_str).collect();
    let expected = [
        "trainyard-api",
        "trainyard-model",
        "trainyard-render",
        "trainyard-schema",
        "trainyard-sdk",
        "trainyard-sdk-derive",
        "trainyard-structural",
        "trainyard-text",
    ];
    assert_eq!(names, expected);
    let mut package = Command::new(env!("CARGO"));
    // The plugin below verifies the packages, and compiles less.
    package.args(["package", "--offline", "--no-verify", "--allow-dirty"]);
    package
        .arg("--exclude-lockfile")
        .arg("--target-dir")
        .arg(folder);
    for name in names {
        package.args(["--package", name]);
    }
    let output = package.current_dir(root()).output().unwrap();
    succeeded(&output, "cargo package");
    let printed = String::from_utf8_lossy(&output.stderr);
    let mut warnings = printed.lines().filter(|line| line.starts_with("warning"));
    let unexpected = warnings.find(|line| !EXPECTED.iter().any(|known| line.contains(known)));
    assert_eq!(unexpected, None, "{printed}");
    let packages = folder.join("package");
    let unpack = |(name, version): (String, String)| {
        let unpacked = format!("{name}-{version}");
        let archive = format!("{unpacked}.crate");
        let output = run("tar", &["-xzf", &archive], &packages);
        succeeded(&output, &archive);
        (name, packages.join(unpacked))
    };
    published.into_iter().map(unpack).collect()
}

#[test]
#[ignore = "takes a minute: `make test-conform`"]
fn a_plugin_is_built_and_tested_from_the_packages() {
    let folder = tempfile::tempdir().unwrap();
    let crates = unpacked(folder.path());
    for (name, path) in &crates {
        for file in ["LICENSE", "README.md"] {
            assert!(path.join(file).is_file(), "{name}: {file}");
        }
    }
    let sdk = crates["trainyard-sdk"].to_str().unwrap();
    let new = [
        "plugin", "new", "packaged", "--kind", "fabric", "--sdk", sdk,
    ];
    succeeded(&trainyard(&new, folder.path()), "plugin new");
    let plugin = folder.path().join("packaged");
    let manifest = plugin.join("Cargo.toml");
    let mut text = fs::read_to_string(&manifest).unwrap();
    text.push_str(&format!(
        "trainyard-sdk = {{ path = {sdk:?}, features = [\"yaml\"] }}\n"
    ));
    fs::write(plugin.join("tests/yaml.rs"), YAML_TEST).unwrap();
    // Until the crates are published, nothing but this finds them.
    text.push_str("\n[patch.crates-io]\n");
    for (name, path) in &crates {
        if name != "trainyard-sdk" {
            text.push_str(&format!("{name} = {{ path = {path:?} }}\n"));
        }
    }
    fs::write(manifest, text).unwrap();
    lock(&plugin);
    let tested = run("cargo", &["test", "--offline", "--quiet"], &plugin);
    succeeded(&tested, "cargo test");
    let build = ["plugin", "build", ".", "--output", "packaged.wasm"];
    succeeded(&trainyard(&build, &plugin), "plugin build");
    // The plugin in the SDK's README, which is not compiled as a part of its documentation.
    let readme = fs::read_to_string(crates["trainyard-sdk"].join("README.md")).unwrap();
    let block = |language: &str| {
        let (_, rest) = readme.split_once(&format!("```{language}\n")).unwrap();
        rest.split_once("```").unwrap().0
    };
    fs::write(plugin.join("manifest.json"), block("json")).unwrap();
    fs::write(plugin.join("src/lib.rs"), block("rust,ignore")).unwrap();
    succeeded(&trainyard(&build, &plugin), "the README's plugin");
}
