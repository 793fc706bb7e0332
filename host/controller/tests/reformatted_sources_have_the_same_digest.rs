//! Changing comments, docs, formatting or tests does not change the digest of the sources, so it does not render queued TrainJobs again.
//! Any other change does.

#[path = "../build/sources.rs"]
mod sources;

use std::{fs, path::Path};

use tempfile::TempDir;

const SOURCE: &str = r#"//! A module.

use std::{fmt, io};

/// Lists names.
pub fn names(count: usize) -> Vec<String> {
    // From one.
    (1..=count).map(|at| format!("node-{at}")).collect()
}

pub struct Names {
    /// How many.
    pub count: usize,
}

impl Names {
    #[cfg(test)]
    fn for_tests() -> Self {
        Self { count: 2 }
    }
}

#[cfg(test)]
mod apart;

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_counted() {
        assert_eq!(super::names(2).len(), 2);
    }
}
"#;

/// Source files in a folder of their own.
struct Tree(TempDir);

impl Tree {
    fn new() -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        tree.write("src/names.rs", SOURCE);
        tree.write("src/names/apart.rs", "const IN_TESTS: u8 = 1;");
        tree.write("schema.json", "{}");
        tree
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn digest(&self) -> u64 {
        let sources = ["src", "schema.json"].map(|name| self.0.path().join(name));
        sources::digest(&sources).unwrap()
    }

    /// Returns whether the digest changes with a text in the source.
    fn differs(&self, from: &str, to: &str) -> bool {
        let changed = SOURCE.replace(from, to);
        assert_ne!(changed, SOURCE, "{from}");
        let before = self.digest();
        self.write("src/names.rs", &changed);
        let after = self.digest();
        self.write("src/names.rs", SOURCE);
        assert_eq!(before, self.digest());
        before != after
    }
}

#[test]
fn comments_docs_formatting_and_tests_do_not_change_it() {
    let tree = Tree::new();
    for (from, to) in [
        (
            "// From one.",
            "// Numbers begin with one, as the ranks of nodes do.",
        ),
        ("    // From one.\n", ""),
        ("//! A module.", "//! Another description."),
        ("/// Lists names.", "/** Lists\n the names. */"),
        ("    /// How many.\n", ""),
        ("{fmt, io}", "{\n    fmt,\n    io,\n}"),
        ("(count: usize)", "(\n    count: usize,\n)"),
        (".map(|at|", "\n        .map(|at|"),
        ("Self { count: 2 }", "Self { count: 3 }"),
        ("assert_eq!", "assert_ne!"),
    ] {
        assert!(!tree.differs(from, to), "{from} -> {to}");
    }
    let before = tree.digest();
    tree.write("src/names/apart.rs", "const IN_TESTS: u8 = 2;");
    assert_eq!(before, tree.digest());
}

#[test]
fn code_and_data_change_it() {
    let tree = Tree::new();
    for (from, to) in [
        ("(1..=count)", "(0..=count)"),
        ("node-{at}", "worker-{at}"),
        ("count: usize", "count: u64"),
        // Text that is not valid Rust is compared as it is.
        ("use std", "use use std"),
        ("#[cfg(test)]\n    fn", "fn"),
    ] {
        assert!(tree.differs(from, to), "{from} -> {to}");
    }
    let before = tree.digest();
    tree.write("schema.json", "{ }");
    let schema = tree.digest();
    tree.write("src/more.rs", "");
    assert!(before != schema && schema != tree.digest());
}

/// The build script falls back to the text of a file that it cannot parse, so a syntax that is newer than its parser must not go unnoticed.
#[test]
fn all_sources_of_the_workspace_can_be_parsed() {
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = [
        "api",
        "model",
        "render",
        "sandbox",
        "schema",
        "structural",
        "text",
        "controller",
    ];
    let mut checked = 0;
    let mut left: Vec<_> = folders.map(|name| host.join(name).join("src")).into();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(
                fs::read_dir(path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            assert!(
                sources::parse(&fs::read(&path).unwrap()).is_some(),
                "{}",
                path.display()
            );
            checked += 1;
        }
    }
    assert!(checked > 400, "{checked} files");
}
