//! Links in the documentation point to existing files.

#![allow(clippy::unwrap_used, missing_docs)]

use std::{fs, path::PathBuf};

use crate::common::root;

fn documents() -> Vec<PathBuf> {
    let root = root();
    let docs = fs::read_dir(root.join("docs")).unwrap();
    let docs = docs.map(|entry| entry.unwrap().path());
    let mut documents: Vec<_> = docs
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .collect();
    assert!(documents.len() >= 5, "{documents:?}");
    for document in [
        "README.md",
        "RATIONALE.md",
        "deploy/README.md",
        "tests/cluster/README.md",
    ] {
        documents.push(root.join(document));
    }
    documents
}

/// Returns the relative targets of a document's links, without headings.
fn targets(text: &str) -> Vec<&str> {
    let links = text.split("](").skip(1);
    let targets = links.filter_map(|rest| Some(rest.split_once(')')?.0));
    targets
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .filter_map(|target| target.split('#').next())
        .filter(|file| !file.is_empty())
        .collect()
}

#[test]
fn every_relative_link_resolves() {
    let (mut count, mut broken) = (0, Vec::new());
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for target in targets(&text) {
            count += 1;
            if !document.parent().unwrap().join(target).exists() {
                broken.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(count > 40, "only {count} links were found");
}

#[test]
fn links_are_found_anywhere_in_a_line() {
    let text =
        "[a](x/y.md) and ([b](../z.md#part)), [c](https://example.com/a.md),\n[d](#here) [e](f)\n";
    assert_eq!(targets(text), ["x/y.md", "../z.md", "f"]);
}
