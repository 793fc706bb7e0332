//! Every weakness of the reference that code, cases or documentation mention by number is explained in divergences.md.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::common::root;

/// Returns the numbers of weaknesses that a text names: `W` and one or two digits, as a word.
fn weaknesses(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_one = |word: &&str| {
        word.strip_prefix('W')
            .is_some_and(|number| (1..=2).contains(&number.len()) && number.parse::<u8>().is_ok())
    };
    words.filter(is_one).map(str::to_owned).collect()
}

/// Returns the files below a folder that can name a weakness.
fn texts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            found.extend(texts(&path));
        } else if path.extension().is_some_and(|ending| {
            ["rs", "md", "yaml", "wit"]
                .iter()
                .any(|known| ending == *known)
        }) {
            found.push(path);
        }
    }
    found
}

#[test]
fn every_named_weakness_is_explained() {
    let root = root();
    let table = fs::read_to_string(root.join("tests/reference/divergences.md")).unwrap();
    let explained: BTreeSet<_> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| W")?.split_once(' '))
        .map(|(number, _)| format!("W{number}"))
        .collect();
    let mut files = vec![root.join("RATIONALE.md"), root.join("README.md")];
    for folder in ["docs", "host", "plugins", "tests", "wit"] {
        files.extend(texts(&root.join(folder)));
    }
    let mut named = BTreeSet::new();
    for file in files {
        let found = weaknesses(&fs::read_to_string(&file).unwrap());
        let unknown: Vec<_> = found.difference(&explained).collect();
        assert!(unknown.is_empty(), "{}: {unknown:?}", file.display());
        named.extend(found);
    }
    assert!(named.len() > 10, "only {named:?} were found");
}
