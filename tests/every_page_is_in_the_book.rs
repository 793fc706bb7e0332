//! Each page of the documentation is in one chapter of `docs/SUMMARY.md`, of which `make docs` makes a site.

use std::{collections::BTreeSet, fs};

use crate::{
    common::root,
    links_point_to_existing_files::{documents, targets},
};

/// Pages that are a part of the documentation of crates.
const OF_CRATES: [&str; 2] = ["plugins/sdk/derive", "plugins/sdk/docs"];
const SUMMARY: &str = "docs/SUMMARY.md";

#[test]
fn every_page_is_in_one_chapter() {
    let root = root().canonicalize().unwrap();
    let summary = fs::read_to_string(root.join(SUMMARY)).unwrap();
    let mut chapters = BTreeSet::new();
    for target in targets(&summary) {
        let page = root.join("docs").join(target).canonicalize();
        let page = page.unwrap_or_else(|error| panic!("{SUMMARY}: {target}: {error}"));
        let page = page.strip_prefix(&root).unwrap().to_owned();
        assert!(chapters.insert(page), "{SUMMARY}: {target}: is there twice");
    }
    let pages = documents().into_iter();
    let pages = pages.map(|page| page.canonicalize().unwrap());
    let pages: BTreeSet<_> = pages
        .map(|page| page.strip_prefix(&root).unwrap().to_owned())
        .filter(|page| !OF_CRATES.iter().any(|folder| page.starts_with(folder)))
        .filter(|page| !page.ends_with(SUMMARY))
        .collect();
    assert!(pages.len() > 60, "{pages:?}");
    let missing: Vec<_> = pages.difference(&chapters).collect();
    assert!(missing.is_empty(), "{SUMMARY} has no chapter {missing:#?}");
    let other: Vec<_> = chapters.difference(&pages).collect();
    assert!(other.is_empty(), "{SUMMARY} has {other:#?}");
}
