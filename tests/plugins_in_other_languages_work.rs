//! The plugins that `plugin new` creates in C, Go, JavaScript and Python are the same as those in Rust: their manifests are equal, they
//! render a TrainJob with its own runtime and with every shipped runtime to the same objects, and they give the same reasons.
//!
//! A language whose tools are not installed is skipped. `make test-languages` installs them, and also tests JavaScript and Python, whose
//! plugins take long to build.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::common::{
    new_plugin::{KINDS, created, succeeded, trainyard},
    stderr, stdout,
};

/// The case of a new plugin.
const CASE: &str = "cases/basic";

/// A plugin that was built.
struct Built {
    folder: PathBuf,
    name: String,
}

impl Built {
    /// Creates a plugin and builds it. `None` if the tools of its language are not installed.
    fn new(kind: &str, language: &str, folder: &Path) -> Option<Self> {
        let name = format!("z-{kind}");
        let own = folder.join(language);
        fs::create_dir_all(&own).unwrap();
        let folder = created(&name, kind, language, &own);
        if let Some(modules) =
            env::var_os("TRAINYARD_NODE_MODULES").filter(|_| language == "javascript")
        {
            symlink(modules, folder.join("node_modules")).unwrap();
        }
        let output = format!("{name}.wasm");
        let built = trainyard(&["plugin", "build", ".", "--output", &output], &folder);
        if !built.status.success() && stderr(&built).contains("was not found; ") {
            return None;
        }
        succeeded(&built, &format!("{language}, {kind}"));
        Some(Self { folder, name })
    }

    fn printed(&self, args: &[&str]) -> String {
        let output = trainyard(args, &self.folder);
        succeeded(&output, &self.folder.display().to_string());
        stdout(&output)
    }

    fn manifest(&self) -> Value {
        let file = format!("{}.wasm", self.name);
        let printed = self.printed(&["plugin", "inspect", "-o", "json", &file]);
        serde_json::from_str::<Value>(&printed).unwrap()["manifest"].take()
    }

    /// Returns what set each field of the case, and why.
    fn explained(&self) -> String {
        let (input, file) = (format!("{CASE}/input.yaml"), format!("{}.wasm", self.name));
        let mut args = vec!["explain", "-f", &input, "--plugin", &file];
        if self.folder.join("policy.yaml").exists() {
            args.extend(["--policy", "policy.yaml"]);
        }
        self.printed(&args)
    }

    /// Takes the case with the expected files of another plugin.
    fn take_case(&self, other: &Self) {
        fs::remove_dir_all(self.folder.join(CASE)).unwrap();
        copy(&other.folder.join(CASE), &self.folder.join(CASE));
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

#[test]
fn new_plugins_are_the_same_in_every_language() {
    let every_language = env::var_os("TRAINYARD_ALL_LANGUAGES").is_some();
    let languages: &[&str] = match every_language {
        true => &["c", "go", "javascript", "python"],
        false => &["c", "go"],
    };
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let rust = Built::new(kind, "rust", folder.path()).unwrap();
        rust.printed(&["plugin", "test", "--update"]);
        let (manifest, explained) = (rust.manifest(), rust.explained());
        for language in languages {
            let Some(other) = Built::new(kind, language, folder.path()) else {
                assert!(!every_language, "the tools of {language} are not installed");
                eprintln!(
                    "skipped: the tools of {language} are not installed; `make test-languages` installs them"
                );
                continue;
            };
            // Its own expected file, which it was created with, is that of Rust.
            let own = |plugin: &Built| {
                fs::read_to_string(plugin.folder.join(CASE).join("expected.yaml")).unwrap()
            };
            assert_eq!(own(&other), own(&rust), "{language}, {kind}");
            other.take_case(&rust);
            assert_eq!(other.manifest(), manifest, "{language}, {kind}");
            assert_eq!(other.explained(), explained, "{language}, {kind}");
            other.printed(&["plugin", "check"]);
            let tested = other.printed(&["plugin", "test"]);
            assert!(tested.ends_with(": all as expected\n"), "{tested}");
            let claims = trainyard(&["plugin", "claims"], &other.folder);
            succeeded(&claims, language);
            assert!(!stderr(&claims).contains("warning"), "{}", stderr(&claims));
        }
    }
}
