//! What `plugin new` copies from `host/templates`, with the names of the new plugin. The crates there are built and tested like any other,
//! and the plugins in other languages by `plugins_in_other_languages_work`.

mod files;
mod kind;
mod language;

use serde_json::{Map, Value};

use self::{files::text, kind::Plugin};
pub(super) use self::{kind::Kind, language::Language};

/// Files of every plugin, by path, in which words in capitals stand for what differs.
const COMMON: [(&str, &str); 3] = [
    ("README.md", text!("common/README.md")),
    ("CHANGELOG.md", text!("common/CHANGELOG.md")),
    (".github/workflows/test.yaml", text!("common/test.yaml")),
];

/// The module of the plugins in Go.
const GO_MODULE: &str = "example.com/plugin";

/// A new plugin.
pub(super) struct Template<'a> {
    pub(super) kind: Kind,
    pub(super) language: Language,
    pub(super) name: &'a str,
    /// The path of the SDK, for Rust only.
    pub(super) sdk: &'a str,
}

impl Template<'_> {
    /// Returns the plugin's files, by path.
    ///
    /// # Errors
    /// A file of the template is not valid JSON.
    pub(super) fn files(&self) -> Result<Vec<(&'static str, String)>, serde_json::Error> {
        let (plugin, shared) = (self.kind.plugin(), self.language.shared());
        let manifest: Map<String, Value> = serde_json::from_str(plugin.manifest)?;
        let policy = plugin.policy.map(|text| ("policy.yaml", text));
        let own = plugin.sources(self.language).iter().chain(plugin.cases);
        let own = own.copied().chain(policy);
        let mut files: Vec<_> = own.map(|(path, text)| (path, self.renamed(text))).collect();
        let copied = shared.copied.iter();
        files.extend(copied.map(|(path, text)| (*path, self.in_module(text))));
        for (path, text) in shared.filled.iter().chain(&COMMON) {
            files.push((path, self.filled(text, &manifest)));
        }
        if self.language == Language::Rust {
            files.push(("manifest.json", self.renamed(plugin.manifest)));
            files.push(("Cargo.toml", cargo_toml(self.name, self.sdk)));
        } else {
            files.push(("manifest.json", self.manifest(plugin, &manifest)?));
        }
        Ok(files)
    }

    /// Returns the manifest of a plugin without the SDK, which adds the name, the version and the schema in Rust.
    fn manifest(
        &self,
        plugin: &Plugin,
        manifest: &Map<String, Value>,
    ) -> Result<String, serde_json::Error> {
        let first = [("name", self.name), ("version", "0.1.0")];
        let first = first.map(|(key, value)| (key.to_owned(), Value::from(value)));
        let mut whole = Map::from_iter(first);
        whole.extend(manifest.clone());
        let schema = serde_json::from_str(plugin.schema)?;
        whole.insert("configSchema".to_owned(), schema);
        let text = serde_json::to_string_pretty(&whole)?;
        Ok(self.renamed(&text) + "\n")
    }

    /// Returns a file of the kind with the new plugin's names.
    fn renamed(&self, text: &str) -> String {
        let kind = self.kind.plugin().kind;
        let (dashed, snake) = (
            format!("trainyard-template-{kind}"),
            self.name.replace('-', "_"),
        );
        let text = text
            .replace(&dashed, self.name)
            .replace(&dashed.replace('-', "_"), &snake)
            .replace(
                &format!("{}_", kind.to_uppercase()),
                &format!("{}_", snake.to_uppercase()),
            );
        self.in_module(&text)
    }

    /// Returns a file with the paths of the plugin's Go packages.
    fn in_module(&self, text: &str) -> String {
        text.replace(GO_MODULE, &format!("example.com/{}", self.name))
    }

    /// Returns a common file with what its words in capitals stand for.
    fn filled(&self, text: &str, manifest: &Map<String, Value>) -> String {
        let (plugin, shared) = (self.kind.plugin(), self.language.shared());
        let description = manifest.get("description").and_then(Value::as_str);
        let allows = match plugin.policy {
            Some(_) => ", and passes `policy.yaml` with `--policy`",
            None => "; the plugin needs no grants",
        };
        text.replace("DESCRIPTION", description.unwrap_or_default())
            .replace("CHANGE", shared.change.trim_end())
            .replace("SETUP", shared.setup.trim_end())
            .replace("ALIGNED_TEST", &format!("{:<34}", shared.test))
            .replace("TEST", shared.test)
            .replace("ALLOWS", allows)
            .replace("PHASES", plugin.phases)
            .replace("NAME", self.name)
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
