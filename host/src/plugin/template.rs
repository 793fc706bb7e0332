//! What `plugin new` copies: the crates in `host/templates`, which are built and tested like any other, with the names of the new plugin.

use clap::ValueEnum;
use serde_json::Value;

/// What a plugin is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    /// How the processes of a framework find each other (`mlPolicy.plugin`).
    Framework,
    /// A batch scheduler that starts pods together (`podGroupPolicy.plugin`).
    Scheduler,
    /// Network devices and env vars of the nodes (`plugins`).
    Fabric,
    /// A container beside training (`plugins`).
    Sidecar,
}

/// The crate of a kind.
pub(super) struct Template {
    /// The kind, as in the crate's name.
    kind: &'static str,
    /// Its files, by path.
    files: &'static [(&'static str, &'static str)],
}

/// The files of a template: its test's name, and other files.
macro_rules! template {
    ($kind:literal, $test:literal $(, $file:literal)*) => {
        Template {
            kind: $kind,
            files: &[
                $(($file, include_str!(concat!("../../templates/", $kind, "/", $file))),)*
                ("manifest.json", include_str!(concat!("../../templates/", $kind, "/manifest.json"))),
                ("src/lib.rs", include_str!(concat!("../../templates/", $kind, "/src/lib.rs"))),
                (concat!("tests/", $test, ".rs"), include_str!(concat!("../../templates/", $kind, "/tests/", $test, ".rs"))),
                ("cases/basic/input.yaml", include_str!(concat!("../../templates/", $kind, "/cases/basic/input.yaml"))),
                ("cases/basic/expected.yaml", include_str!(concat!("../../templates/", $kind, "/cases/basic/expected.yaml"))),
            ],
        }
    };
}

static FRAMEWORK: Template = template!("framework", "nodes_find_each_other");
static SCHEDULER: Template = template!("scheduler", "pods_are_scheduled_together", "policy.yaml");
static FABRIC: Template = template!(
    "fabric",
    "nodes_with_accelerators_have_network_devices",
    "policy.yaml"
);
static SIDECAR: Template = template!("sidecar", "nodes_have_the_sidecar", "policy.yaml");

/// Files of every plugin, by path.
const COMMON: [(&str, &str); 4] = [
    (
        "README.md",
        include_str!("../../templates/common/README.md"),
    ),
    (
        "CHANGELOG.md",
        include_str!("../../templates/common/CHANGELOG.md"),
    ),
    (
        ".gitignore",
        include_str!("../../templates/common/gitignore"),
    ),
    (
        ".github/workflows/test.yaml",
        include_str!("../../templates/common/test.yaml"),
    ),
];

impl Kind {
    pub(super) fn template(self) -> &'static Template {
        match self {
            Self::Framework => &FRAMEWORK,
            Self::Scheduler => &SCHEDULER,
            Self::Fabric => &FABRIC,
            Self::Sidecar => &SIDECAR,
        }
    }
}

impl Template {
    /// Returns the files of a plugin of this name, by path.
    pub(super) fn files(&self, name: &str, sdk: &str) -> Vec<(&'static str, String)> {
        let own = self
            .files
            .iter()
            .map(|(path, text)| (*path, self.renamed(text, name)));
        let common = COMMON
            .iter()
            .map(|(path, text)| (*path, self.filled(text, name)));
        let cargo = ("Cargo.toml", cargo_toml(name, sdk));
        own.chain(common).chain([cargo]).collect()
    }

    fn needs_grants(&self) -> bool {
        self.files.iter().any(|(path, _)| *path == "policy.yaml")
    }

    /// Returns a file of the template with the new plugin's names.
    fn renamed(&self, text: &str, name: &str) -> String {
        let (dashed, snake) = (
            format!("trainyard-template-{}", self.kind),
            name.replace('-', "_"),
        );
        text.replace(&dashed, name)
            .replace(&dashed.replace('-', "_"), &snake)
            .replace(
                &format!("{}_", self.kind.to_uppercase()),
                &format!("{}_", snake.to_uppercase()),
            )
    }

    /// Returns a common file with what its words in capitals stand for.
    fn filled(&self, text: &str, name: &str) -> String {
        let manifest = self.files.iter().find(|(path, _)| *path == "manifest.json");
        let manifest: Value = manifest
            .and_then(|(_, text)| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let allows = match self.needs_grants() {
            true => ", and adds the grants in `policy.yaml` to the policy file",
            false => "; the plugin needs no grants",
        };
        text.replace(
            "DESCRIPTION",
            manifest
                .get("description")
                .and_then(Value::as_str)
                .unwrap_or_default(),
        )
        .replace("ALLOWS", allows)
        .replace("NAME", name)
    }
}

/// Returns the Cargo.toml of a crate whose SDK is at a path without control characters.
fn cargo_toml(name: &str, sdk: &str) -> String {
    // Then a string of JSON is one of TOML.
    let sdk = Value::from(sdk);
    format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         # Not part of a workspace in a folder above; remove this to make it a member.\n[workspace]\n\n\
         [lib]\n# The first builds the component, and the second lets tests use the plugin.\ncrate-type = [\"cdylib\", \"rlib\"]\n\n\
         [dependencies]\ntrainyard-sdk = {{ path = {sdk} }}\n\n\
         [dev-dependencies]\nserde_json = \"1\"\n"
    )
}
