//! The package of the chart has the files that `helm package` takes, below the chart's name.

use std::{collections::BTreeSet, fs, path::Path};

use flate2::read::GzDecoder;
use tempfile::tempdir;
use trainyard_release::package;

fn names(package: &[u8]) -> BTreeSet<String> {
    let mut archive = tar::Archive::new(GzDecoder::new(package));
    let entries = archive.entries().unwrap();
    entries
        .map(|entry| entry.unwrap().path().unwrap().to_str().unwrap().to_owned())
        .collect()
}

#[test]
fn ignored_files_are_left_out() {
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/trainyard");
    let names = names(&package(&chart.canonicalize().unwrap()).unwrap());
    for file in [
        "Chart.yaml",
        "values.schema.json",
        "templates/_helpers.tpl",
        "files/crds/trainjobs.yaml",
    ] {
        assert!(
            names.contains(&format!("trainyard/{file}")),
            "{file}: {names:?}"
        );
    }
    assert!(!names.contains("trainyard/files/crds/kustomization.yaml"));
}

#[test]
fn patterns_of_ignored_files_are_refused() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join(".helmignore"), "# text\n\n*.bak\n").unwrap();
    let error = package(folder.path()).unwrap_err().to_string();
    assert_eq!(error, ".helmignore: *.bak: is a pattern; name each file");
}
