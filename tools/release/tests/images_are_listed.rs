//! `deploy/images.txt` has each image that a shipped runtime or a built-in plugin names, and no other.

use std::{collections::BTreeSet, fs, path::PathBuf};

use crate::common::{files, read, root};

/// Returns the files in a folder of each plugin.
fn of_each_plugin(folder: &str) -> Vec<PathBuf> {
    let plugins = fs::read_dir(root().join("plugins")).unwrap();
    let folders = plugins.map(|plugin| plugin.unwrap().path().join(folder));
    folders
        .filter(|folder| folder.is_dir())
        .flat_map(|folder| files(&folder))
        .collect()
}

/// Returns what stands after the key `image` in a runtime.
fn of_runtime(text: &str) -> BTreeSet<String> {
    let lines = text
        .lines()
        .map(|line| line.trim_start().trim_start_matches("- "));
    lines
        .filter_map(|line| line.strip_prefix("image:"))
        .map(|image| image.trim().to_owned())
        .collect()
}

/// Returns the string literals of a source file that are images: a registry, a path and a tag. Those of unit tests are from example.com.
fn of_source(text: &str) -> BTreeSet<String> {
    let literals = text.split('"').skip(1).step_by(2);
    let is_image = |literal: &&str| {
        let parts = literal
            .split_once('/')
            .and_then(|(registry, rest)| Some((registry, rest.rsplit_once(':')?)));
        parts.is_some_and(|(registry, (path, tag))| {
            let is_word = |text: &str| {
                !text.is_empty()
                    && text
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte))
            };
            registry.contains('.')
                && !registry.ends_with("example.com")
                && [registry, path, tag].into_iter().all(is_word)
        })
    };
    literals.filter(is_image).map(str::to_owned).collect()
}

#[test]
fn each_image_of_runtimes_and_plugins_is_listed() {
    let list = read("deploy/images.txt");
    let listed = list
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(str::to_owned);
    let mut found = BTreeSet::new();
    for file in of_each_plugin("runtimes") {
        found.extend(of_runtime(&fs::read_to_string(file).unwrap()));
    }
    for file in of_each_plugin("src") {
        found.extend(of_source(&fs::read_to_string(file).unwrap()));
    }
    assert_eq!(listed.collect::<BTreeSet<_>>(), found);
}

#[test]
fn images_are_recognized() {
    let runtime =
        "containers:\n- image: one:1\n  command: [image]\n- name: b\n  image: quay.io/two:2\n";
    assert_eq!(
        of_runtime(runtime),
        ["one:1", "quay.io/two:2"].map(str::to_owned).into()
    );
    let source = r#"const A: &str = "quay.io/a/b:tag-1"; let b = "a/b:c"; let c = "registry.example.com/a:1";"#;
    assert_eq!(of_source(source), ["quay.io/a/b:tag-1".to_owned()].into());
}
