//! Links in the documentation point to existing files and headings.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::common::root;

/// Adds the pages in a folder and, if `below`, in the folders below it.
fn pages(folder: &Path, below: bool, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && below {
            pages(&path, below, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
}

pub(crate) fn documents() -> Vec<PathBuf> {
    let root = root();
    let mut documents = Vec::new();
    pages(&root, false, &mut documents);
    for folder in ["charts", "docs", "deploy", "examples", "plugins"] {
        pages(&root.join(folder), true, &mut documents);
    }
    for folder in ["tests/cluster", "tests/contract", "tests/reference"] {
        pages(&root.join(folder), false, &mut documents);
    }
    assert!(documents.len() >= 20, "{documents:?}");
    documents
}

/// Returns the relative targets of a document's links.
pub(crate) fn targets(text: &str) -> Vec<&str> {
    let links = text.split("](").skip(1);
    let targets = links.filter_map(|rest| Some(rest.split_once(')')?.0));
    targets
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .filter(|target| !target.is_empty())
        .collect()
}

/// Returns the anchors of a page's headings, as GitHub names them.
fn anchors(page: &str) -> BTreeSet<String> {
    let outside = page.split("```").step_by(2);
    let lines = outside.flat_map(str::lines);
    let headings = lines.filter_map(|line| {
        let heading = line.trim_start_matches('#');
        (heading.len() < line.len()).then(|| heading.trim())
    });
    let kept = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ => c.is_alphanumeric().then_some(c),
    };
    headings
        .map(|heading| heading.to_lowercase().chars().filter_map(kept).collect())
        .collect()
}

#[test]
fn every_relative_link_resolves() {
    let (mut count, mut broken) = (0, Vec::new());
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for target in targets(&text) {
            count += 1;
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = match file {
                "" => document.clone(),
                _ => document.parent().unwrap().join(file),
            };
            let resolves = path.exists()
                && (heading.is_empty()
                    || anchors(&fs::read_to_string(&path).unwrap()).contains(heading));
            if !resolves {
                broken.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(count > 400, "only {count} links were found");
}

#[test]
fn links_are_found_anywhere_in_a_line() {
    let text =
        "[a](x/y.md) and ([b](../z.md#part)), [c](https://example.com/a.md),\n[d](#here) [e](f)\n";
    assert_eq!(targets(text), ["x/y.md", "../z.md#part", "#here", "f"]);
}

#[test]
fn headings_have_the_anchors_of_github() {
    let page = "# Why `/dev/shm`?\n```sh\n# no heading\n```\n## A, b and C_d-e\n";
    assert!(anchors(page).iter().eq(["a-b-and-c_d-e", "why-devshm"]));
}
