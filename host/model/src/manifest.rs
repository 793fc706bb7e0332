//! What a plugin declares of itself: JSON in a custom section of the component, read without running it.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::{claims::Claims, policy::Phase, text::is_dns_label};

/// The custom section, at the top level of the component, that holds the manifest.
pub const SECTION: &str = "trainyard:manifest";

/// The version of the contract that this host speaks: its own package version in `wit/`.
pub const CONTRACT: &str = "1.0.0";

/// The longest manifest, in bytes.
pub const MAX_BYTES: usize = 256 << 10;

/// A plugin's manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    /// The plugin's name, a DNS label. Ties in the order of plugins go by it.
    pub name: String,
    /// The plugin's own version.
    pub version: String,
    /// The version of the contract that it was built for.
    pub contract: String,
    /// One sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What switches it on: `mlPolicy.KEY` (the runtime's `mlPolicy` has the key), `mlPolicy.plugin` (it names the
    /// plugin), `podGroupPolicy.KEY`, `plugins` (the runtime's list names it), `resourceClaims` (the pods have some)
    /// or `always`.
    pub active_when: ActiveWhen,
    /// The phases that it exports: `transform`, `build`, `check`.
    pub phases: Vec<Phase>,
    /// The pod sets that `numNodes` counts when this plugin is active; otherwise those with the trainer ancestor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_sets: Vec<NodeSet>,
    /// What it reads, creates and writes.
    #[serde(default)]
    pub claims: Claims,
    /// Plugins that run before this one where both write a path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Plugins that run after this one where both write a path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    /// Env vars of containers that a TrainJob may not set and that this plugin may set over the runtime's value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserved_env: Vec<String>,
    /// JSON Schema of its block in the runtime; none where it takes no configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<Value>,
    /// JSON Schema of its configuration in the policy file; none where it takes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator_config_schema: Option<Value>,
}

/// Pod sets that count as nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeSet {
    /// The replicated job's name.
    pub pod_set: String,
    /// A pointer to a boolean of the plugin's configuration; absent: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
}

/// What switches a plugin on: one of a closed list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActiveWhen {
    /// The runtime's `mlPolicy` has this key.
    MlPolicy(String),
    /// `mlPolicy.plugin` names it.
    MlPolicyPlugin,
    /// The runtime's `podGroupPolicy` has this key.
    PodGroupPolicy(String),
    /// `plugins` names it.
    Plugins,
    /// The pods have resource claims.
    ResourceClaims,
    /// Always.
    Always,
}

impl ActiveWhen {
    /// The union of which at most one member is ever active.
    #[must_use]
    pub const fn union(&self) -> Option<&'static str> {
        match self {
            Self::MlPolicy(_) | Self::MlPolicyPlugin => Some("mlPolicy"),
            Self::PodGroupPolicy(_) => Some("podGroupPolicy"),
            Self::Plugins | Self::ResourceClaims | Self::Always => None,
        }
    }
}

impl fmt::Display for ActiveWhen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MlPolicy(key) => write!(f, "mlPolicy.{key}"),
            Self::MlPolicyPlugin => f.write_str("mlPolicy.plugin"),
            Self::PodGroupPolicy(key) => write!(f, "podGroupPolicy.{key}"),
            Self::Plugins => f.write_str("plugins"),
            Self::ResourceClaims => f.write_str("resourceClaims"),
            Self::Always => f.write_str("always"),
        }
    }
}

impl FromStr for ActiveWhen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let key = |k: &str| {
            (!k.is_empty() && k.bytes().all(|b| b.is_ascii_alphanumeric())).then(|| k.to_owned())
        };
        let known = match text {
            "mlPolicy.plugin" => Some(Self::MlPolicyPlugin),
            "plugins" => Some(Self::Plugins),
            "resourceClaims" => Some(Self::ResourceClaims),
            "always" => Some(Self::Always),
            _ => match text.split_once('.') {
                Some(("mlPolicy", k)) => key(k).map(Self::MlPolicy),
                Some(("podGroupPolicy", k)) => key(k).map(Self::PodGroupPolicy),
                _ => None,
            },
        };
        known.ok_or_else(|| {
            format!(
                "`{text}` is none of mlPolicy.KEY, mlPolicy.plugin, podGroupPolicy.KEY, plugins, resourceClaims, always"
            )
        })
    }
}

impl Serialize for ActiveWhen {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ActiveWhen {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for ActiveWhen {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ActiveWhen".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^((mlPolicy|podGroupPolicy)\\.[A-Za-z0-9]+|plugins|resourceClaims|always)$"
        })
    }
}

/// Why a manifest is refused.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// Longer than [`MAX_BYTES`].
    #[error("the manifest has {0} bytes; {MAX_BYTES} are allowed")]
    TooLong(usize),
    /// No JSON, or not of the manifest's form.
    #[error("the manifest is not valid: {0}")]
    Form(#[from] serde_json::Error),
    /// Built for a contract that this host does not speak.
    #[error(
        "it was built for contract {theirs}, this host speaks {CONTRACT}: build it again with the SDK of this release"
    )]
    Contract {
        /// The manifest's version.
        theirs: String,
    },
    /// A field's value is wrong.
    #[error("the manifest's `{field}` {problem}")]
    Field {
        /// The field.
        field: &'static str,
        /// What is wrong.
        problem: String,
    },
}

impl Manifest {
    /// Reads and checks a manifest. Grants are checked later, when the plugin is loaded.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        if bytes.len() > MAX_BYTES {
            return Err(ManifestError::TooLong(bytes.len()));
        }
        let version: Value = serde_json::from_slice(bytes)?;
        if let Some(theirs) = version
            .get("contract")
            .and_then(Value::as_str)
            .filter(|v| !speaks(v))
        {
            return Err(ManifestError::Contract {
                theirs: crate::text::clean(theirs),
            });
        }
        let manifest: Self = serde_json::from_slice(bytes)?;
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), ManifestError> {
        let wrong = |field, problem: &str| {
            Err(ManifestError::Field {
                field,
                problem: problem.to_owned(),
            })
        };
        if !is_dns_label(&self.name) {
            return wrong(
                "name",
                "must be a DNS label: at most 63 of a-z, 0-9 and `-`",
            );
        }
        if self.version.is_empty()
            || self.version.len() > 64
            || self.version.chars().any(|c| !c.is_ascii_graphic())
        {
            return wrong(
                "version",
                "must be 1 to 64 printable characters without blanks",
            );
        }
        if self.phases.is_empty() {
            return wrong(
                "phases",
                "is empty: a plugin has at least one of transform, build, check",
            );
        }
        let mut phases = self.phases.clone();
        phases.sort_unstable();
        phases.dedup();
        if phases.len() != self.phases.len() {
            return wrong("phases", "names a phase twice");
        }
        if self
            .after
            .iter()
            .chain(&self.before)
            .any(|name| *name == self.name)
        {
            return wrong("after", "or `before` names the plugin itself");
        }
        if let Some(name) = self.after.iter().find(|name| self.before.contains(name)) {
            return wrong("after", &format!("and `before` both name `{name}`"));
        }
        for schema in [
            (&self.config_schema, "configSchema"),
            (&self.operator_config_schema, "operatorConfigSchema"),
        ] {
            if let (Some(value), field) = schema {
                jsonschema::validator_for(value).map_err(|error| ManifestError::Field {
                    field,
                    problem: format!(
                        "is no JSON Schema: {}",
                        crate::text::clean(&error.to_string())
                    ),
                })?;
            }
        }
        Ok(())
    }

    /// Whether it has the phase.
    #[must_use]
    pub fn has(&self, phase: Phase) -> bool {
        self.phases.contains(&phase)
    }
}

/// Whether this host runs plugins of that contract version: the same major version, and no later minor version.
fn speaks(version: &str) -> bool {
    let numbers = |v: &str| -> Option<(u32, u32, u32)> {
        let mut parts = v.split('.').map(str::parse);
        let version = (
            parts.next()?.ok()?,
            parts.next()?.ok()?,
            parts.next()?.ok()?,
        );
        parts.next().is_none().then_some(version)
    };
    match (numbers(version), numbers(CONTRACT)) {
        (Some((major, minor, _)), Some((ours, newest, _))) => major == ours && minor <= newest,
        _ => false,
    }
}
