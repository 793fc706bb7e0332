//! The files of `deploy/` are what the chart renders to, with both versions of helm. `make chart` writes them again.
//!
//! Without Go, there is no helm. Then the digests in `deploy/rendered.sha256` show whether the files were rendered from this chart.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use trainyard_api::yaml;
use trainyard_cluster::Helm;

use crate::common::root;

/// The digests of the files that are rendered and of those that they are rendered from.
const DIGESTS: &str = "deploy/rendered.sha256";
/// The values for `deploy/`: kustomize takes the CRDs from their folder, and its overlay with plugins has a file with PolicyPlugins.
const VALUES: [&str; 6] = [
    "--set",
    "image.repository=trainyard",
    "--set",
    "crds.enabled=false",
    "--set",
    "plugins.source=File",
];
/// Files of `deploy/` that are written by hand.
const BY_HAND: [&str; 3] = [
    "kustomization.yaml",
    "namespace.yaml",
    "runtimes/kustomization.yaml",
];

/// Returns all files below a folder of the repository, relative to the repository.
fn files(folder: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path);
        }
    }
    found
}

/// Returns the files that the digests are of.
fn inputs_and_outputs() -> BTreeSet<String> {
    let mut all = files("charts/trainyard/templates");
    let chart = ["Chart.yaml", "values.yaml", "files/roles.yaml"];
    all.extend(chart.map(|file| format!("charts/trainyard/{file}")));
    let mut deploy = files("deploy");
    deploy.retain(|file| file.ends_with(".yaml"));
    for file in BY_HAND {
        assert!(deploy.remove(&format!("deploy/{file}")), "{file}");
    }
    all.extend(deploy);
    all
}

/// Returns the digests of files, as `sha256sum` prints them.
fn digests(files: &BTreeSet<String>) -> String {
    let lines = files.iter().map(|file| {
        let content = fs::read(root().join(file)).unwrap();
        format!("{}  {file}\n", hex::encode(Sha256::digest(content)))
    });
    lines.collect()
}

#[test]
fn files_were_rendered_from_this_chart() {
    let expected = fs::read_to_string(root().join(DIGESTS)).unwrap();
    let found = digests(&inputs_and_outputs());
    assert_eq!(
        found, expected,
        "the chart or a rendered file was changed; `make chart` renders the files again"
    );
}

/// Returns the rendered files by path below `deploy/`.
fn rendered(helm: Helm) -> BTreeMap<String, String> {
    let templates = helm.template(&VALUES).unwrap().into_iter();
    templates
        .map(|(template, documents)| {
            let (path, text) = match template.as_str() {
                // kustomize generates the ConfigMap.
                "config.yaml" => {
                    let map: Value = yaml::read(&documents[0]).remove(0).unwrap().value;
                    let text = map["data"]["controller.yaml"].as_str().unwrap();
                    ("controller.yaml".to_owned(), text.to_owned())
                }
                _ => (template.clone(), documents.join("---\n")),
            };
            let header =
                format!("# Rendered from charts/trainyard/templates/{template} by `make chart`.\n");
            (path, header + &text)
        })
        .collect()
}

fn path(file: &str) -> PathBuf {
    root().join("deploy").join(file)
}

fn write(rendered: &BTreeMap<String, String>) {
    let old = files("deploy")
        .into_iter()
        .map(|file| file["deploy/".len()..].to_owned());
    let is_rendered = |file: &String| file.ends_with(".yaml") && !BY_HAND.contains(&file.as_str());
    for file in old.filter(is_rendered) {
        fs::remove_file(path(&file)).unwrap();
    }
    for (file, text) in rendered {
        fs::create_dir_all(path(file).parent().unwrap_or(Path::new("/"))).unwrap();
        fs::write(path(file), text).unwrap();
    }
    fs::write(root().join(DIGESTS), digests(&inputs_and_outputs())).unwrap();
}

#[test]
#[ignore = "needs Go: `make test-chart`"]
fn both_versions_of_helm_render_the_files() {
    let three = rendered(Helm::Three);
    if env::var_os("UPDATE_EXPECTED").is_some() {
        write(&three);
    }
    let listed = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<BTreeSet<_>>();
    let mut there = files("deploy");
    there.retain(|file| file.ends_with(".yaml"));
    let there: BTreeSet<_> = there
        .iter()
        .map(|file| file["deploy/".len()..].to_owned())
        .collect();
    let by_hand = BY_HAND.map(str::to_owned);
    assert_eq!(&listed(&three) | &BTreeSet::from(by_hand), there);
    for helm in Helm::ALL {
        for (file, text) in rendered(helm) {
            let written = fs::read_to_string(path(&file)).unwrap_or_default();
            assert_eq!(
                written, text,
                "{helm:?}: {file} differs; `make chart` renders it again"
            );
        }
    }
}
