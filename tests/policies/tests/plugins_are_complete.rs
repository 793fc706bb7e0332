//! Every directory in `plugins/` with a `manifest.json` has the files of a plugin, and `tests/cases` has cases of it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::{fs, path::Path};

use serde_json::Value;
use trainyard_policies::BUILT_INS;

#[test]
fn every_plugin_has_its_files_and_cases() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let cases = fs::read_dir(root.join("tests/cases")).unwrap();
    let cases: Vec<_> = cases
        .map(|case| case.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(BUILT_INS.len() >= 8);
    for (folder, _) in BUILT_INS {
        let name = folder.strip_prefix("plugins/").unwrap();
        for file in ["Cargo.toml", "README.md", "src/lib.rs", "tests/main.rs"] {
            let file = root.join(folder).join(file);
            assert!(file.is_file(), "{} is missing", file.display());
        }
        let manifest = fs::read(root.join(folder).join("manifest.json")).unwrap();
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        assert_eq!(manifest["name"], *name);
        let page = format!("]({folder}/README.md)");
        assert!(readme.contains(&page), "README.md has no link `{page}`");
        let prefix = format!("{name}-");
        assert!(
            cases.iter().any(|case| case.starts_with(&prefix)),
            "tests/cases has no case `{prefix}*`"
        );
    }
}
