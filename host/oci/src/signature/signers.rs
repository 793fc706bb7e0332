//! Who may sign plugins: a section of the operator's configuration.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use trainyard_config::FieldError;
use trainyard_text::FieldPath;

use super::{
    error::SignatureProblem,
    key::{PEM_CHARS, PublicKey},
};

/// The pattern of a signer's name.
pub const SIGNER_NAME: &str = "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$";
/// The pattern of a plugin's name, or of names with a trailing `*`.
pub const PLUGIN_NAMES: &str = r"^([a-z0-9][a-z0-9-]*\*?|\*)$";
/// The pattern of a repository, or of repositories with a trailing `*`. The host is always written out, so that no other host begins like it.
pub const REPOSITORIES: &str = r"^[A-Za-z0-9.-]+(:[0-9]{1,5})?/([a-z0-9][a-z0-9._/-]*\*?|\*)$";

/// The most signers, and the most patterns of one list.
pub const MAX_SIGNERS: usize = 64;

/// An identity that may sign plugins.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Signer {
    /// The name that users see.
    #[schemars(regex(pattern = SIGNER_NAME), length(max = 63))]
    name: String,
    /// The public key in PEM: ECDSA with P-256, as `cosign generate-key-pair` makes them.
    #[schemars(with = "String", length(min = 1, max = PEM_CHARS))]
    public_key: PublicKey,
    /// The names of the plugins that it may sign. A trailing `*` matches any ending, but no built-in plugin, whose name has to be written out.
    #[schemars(length(min = 1, max = MAX_SIGNERS), inner(regex(pattern = PLUGIN_NAMES), length(max = 64)))]
    plugins: Vec<String>,
    /// The repositories from which the plugins may come, such as `registry.example.com/acme/*`. A trailing `*` matches any ending. A directory
    /// is not a repository, so these do not limit it.
    #[schemars(length(min = 1, max = MAX_SIGNERS), inner(regex(pattern = REPOSITORIES), length(max = 255)))]
    repositories: Vec<String>,
}

/// Who may sign which plugins, and which plugins may be unsigned. By default, nobody and none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signers {
    trusted: Vec<Trusted>,
    unsigned: Vec<String>,
}

/// A signer with what is its own.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Trusted {
    /// By the operator's configuration.
    Signer(Signer),
    /// A key that may sign everything, such as one of a command line.
    Key { name: String, key: PublicKey },
}

/// The name of a plugin that is pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginName<'n> {
    /// A plugin that no built-in one has the name of.
    Custom(&'n str),
    /// The name of a built-in plugin.
    BuiltIn(&'n str),
    /// Only the file has it, so that a signature counts that is valid for any name. Who pulls it has to check the name afterwards, by
    /// [`Signed::check`](crate::Signed::check), and to pull it again with the name if that fails.
    Unknown,
}

/// What a signature has to be for.
#[derive(Clone, Copy, Debug)]
pub struct Requirement<'r> {
    /// Who may sign which plugins.
    pub signers: &'r Signers,
    /// The plugin.
    pub plugin: PluginName<'r>,
}

impl Signers {
    /// Returns a policy with the signers and repositories of the operator's configuration, which [`Signers::check`] accepts.
    #[must_use]
    pub fn new(signers: Vec<Signer>, unsigned: Vec<String>) -> Self {
        Self {
            trusted: signers.into_iter().map(Trusted::Signer).collect(),
            unsigned,
        }
    }

    /// Returns a policy of keys, each with a name, that may sign every plugin.
    #[must_use]
    pub fn of_keys(keys: impl IntoIterator<Item = (String, PublicKey)>) -> Self {
        let keys = keys.into_iter();
        Self {
            trusted: keys.map(|(name, key)| Trusted::Key { name, key }).collect(),
            unsigned: Vec::new(),
        }
    }

    /// Returns the signers of the configuration.
    pub fn signers(&self) -> impl Iterator<Item = &Signer> {
        self.trusted.iter().filter_map(|trusted| match trusted {
            Trusted::Signer(signer) => Some(signer),
            Trusted::Key { .. } => None,
        })
    }

    /// Returns the repositories from which plugins may be unsigned.
    #[must_use]
    pub fn unsigned(&self) -> &[String] {
        &self.unsigned
    }

    /// Whether nothing can be pulled, because nobody may sign, and everything has to be signed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.trusted.is_empty() && self.unsigned.is_empty()
    }

    /// Returns what a JSON Schema cannot express of `signers` in a section of the configuration.
    #[must_use]
    pub fn check(section: &Value, at: &FieldPath) -> Vec<FieldError> {
        let signers = section.get("signers").and_then(Value::as_array);
        let mut errors = Vec::new();
        let (mut names, mut keys) = (BTreeMap::new(), BTreeMap::new());
        for (index, signer) in signers.into_iter().flatten().enumerate() {
            let at = at.field("signers").index(index);
            let text = |key| signer.get(key).and_then(Value::as_str);
            let mut add = |key: &str, problem: String| {
                errors.push(FieldError {
                    field: at.field(key),
                    problem,
                });
            };
            if let Some(name) = text("name")
                && let Some(other) = names.insert(name, index)
            {
                add(
                    "name",
                    format!("is the name of signers[{other}], too; give each signer its own"),
                );
            }
            match text("publicKey").map(PublicKey::from_pem) {
                Some(Ok(key)) => {
                    if let Some(other) = keys.insert(key.fingerprint(), index) {
                        add(
                            "publicKey",
                            format!("is the key of signers[{other}], too; merge the two"),
                        );
                    }
                }
                Some(Err(error)) => add("publicKey", error.to_string()),
                None => {}
            }
        }
        errors
    }

    /// Whether the registry of a plugin may be asked for it: its repository is listed, because the plugin may be unsigned there, or a signer
    /// whose `repositories` have it may sign it. Keys of a command line have no list: their user chooses the references, too.
    #[must_use]
    pub fn allow(&self, plugin: PluginName<'_>, repository: &str) -> bool {
        let permits = |trusted: &Trusted| match trusted {
            Trusted::Signer(signer) => signer.permit(plugin, Some(repository)).is_ok(),
            Trusted::Key { .. } => true,
        };
        self.permit_unsigned(plugin, Some(repository)) || self.trusted.iter().any(permits)
    }

    /// Whether there is nobody who may sign.
    pub(crate) const fn has_no_keys(&self) -> bool {
        self.trusted.is_empty()
    }

    /// Whether a plugin from a repository needs no signature. What replaces a built-in plugin always needs one, and so does what comes from a
    /// directory.
    pub(crate) fn permit_unsigned(&self, plugin: PluginName<'_>, repository: Option<&str>) -> bool {
        let is_listed = |name| self.unsigned.iter().any(|pattern| fits(pattern, name));
        !matches!(plugin, PluginName::BuiltIn(_)) && repository.is_some_and(is_listed)
    }

    /// Returns the name of whose key signed a message.
    pub(crate) fn who_signed(&self, message: &[u8], signature: &[u8]) -> Option<&str> {
        let mut trusted = self.trusted.iter();
        let found = trusted.find(|trusted| trusted.key().signed(message, signature))?;
        Some(found.name())
    }

    /// Checks whether a signer may sign a plugin from a repository.
    pub(crate) fn permit(
        &self,
        name: &str,
        plugin: PluginName<'_>,
        repository: Option<&str>,
    ) -> Result<(), SignatureProblem> {
        let mut trusted = self.trusted.iter();
        match trusted.find(|trusted| trusted.name() == name) {
            Some(Trusted::Signer(signer)) => signer.permit(plugin, repository),
            Some(Trusted::Key { .. }) => Ok(()),
            None => Err(SignatureProblem::OtherKey { hint: None }),
        }
    }
}

impl Trusted {
    fn name(&self) -> &str {
        match self {
            Self::Signer(signer) => &signer.name,
            Self::Key { name, .. } => name,
        }
    }

    const fn key(&self) -> &PublicKey {
        match self {
            Self::Signer(signer) => &signer.public_key,
            Self::Key { key, .. } => key,
        }
    }
}

impl Signer {
    fn permit(
        &self,
        plugin: PluginName<'_>,
        repository: Option<&str>,
    ) -> Result<(), SignatureProblem> {
        let signs = match plugin {
            PluginName::Custom(name) => self.plugins.iter().any(|pattern| fits(pattern, name)),
            PluginName::BuiltIn(name) => self.plugins.iter().any(|pattern| pattern == name),
            PluginName::Unknown => true,
        };
        if !signs {
            let (PluginName::Custom(plugin) | PluginName::BuiltIn(plugin)) = plugin else {
                return Ok(());
            };
            return Err(SignatureProblem::OtherPlugin {
                signer: self.name.clone(),
                plugin: plugin.to_owned(),
            });
        }
        let mut patterns = self.repositories.iter();
        match repository {
            // Whoever names a directory decided where its content comes from, and nobody is asked for it.
            Some(name) if !patterns.any(|pattern| fits(pattern, name)) => {
                Err(SignatureProblem::OtherRepository {
                    signer: self.name.clone(),
                    repository: name.to_owned(),
                })
            }
            _ => Ok(()),
        }
    }
}

/// Whether a name is the pattern, or begins like a pattern with a trailing `*`.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => pattern == name,
    }
}
