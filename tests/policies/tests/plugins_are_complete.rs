//! Every directory in `plugins/` with a `manifest.json` has the files of a plugin, and cases.

use std::{fs, path::PathBuf};

use serde_json::Value;
use trainyard_plugin_folders::{cases, root};
use trainyard_policies::BUILT_INS;

#[test]
fn every_plugin_has_its_files_and_cases() {
    let root = root();
    let supported = fs::read_to_string(root.join("docs/supported.md")).unwrap();
    let cases = cases(&root).unwrap();
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
        let page = format!("](../{folder}/README.md)");
        assert!(
            supported.contains(&page),
            "docs/supported.md has no link `{page}`"
        );
        let of_plugin = root.join(folder).join("cases");
        let prefix = format!("{name}-");
        let is_of_plugin = |(case, path): (&String, &PathBuf)| {
            case.starts_with(&prefix) && path.starts_with(&of_plugin)
        };
        assert!(
            cases.iter().any(is_of_plugin),
            "{} has no case `{prefix}*`",
            of_plugin.display()
        );
    }
}
