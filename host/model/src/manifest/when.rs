//! Parts of a manifest that depend on the configuration.

use std::{fmt, slice};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use trainyard_text::json;

/// A condition on the plugin's configuration, with the defaults of its schema: a pointer to a boolean, or a
/// pointer (`at`) with the strings that match (`in`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ConfigCondition {
    /// The boolean there is true.
    True(String),
    /// The string at the pointer is one of several.
    Text(TextCondition),
}

/// A string in the plugin's configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextCondition {
    /// A pointer into the plugin's configuration.
    pub at: String,
    /// The strings that match.
    #[serde(rename = "in")]
    pub texts: Vec<String>,
}

impl ConfigCondition {
    /// Whether the condition holds for a configuration.
    #[must_use]
    pub fn holds(&self, config: &Value) -> bool {
        let found = json::pointer(config, self.pointer());
        match self {
            Self::True(_) => found == Some(&Value::Bool(true)),
            Self::Text(TextCondition { texts, .. }) => found
                .and_then(Value::as_str)
                .is_some_and(|found| texts.iter().any(|text| text == found)),
        }
    }

    /// The pointer into the configuration.
    #[must_use]
    pub fn pointer(&self) -> &str {
        match self {
            Self::True(at) | Self::Text(TextCondition { at, .. }) => at,
        }
    }
}

impl fmt::Display for ConfigCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::True(at) => write!(f, "if `{at}` of its configuration is true"),
            Self::Text(TextCondition { at, texts }) => {
                let texts: Vec<_> = texts.iter().map(|text| format!("{text:?}")).collect();
                write!(
                    f,
                    "if `{at}` of its configuration is {}",
                    texts.join(" or ")
                )
            }
        }
    }
}

/// Env vars that a plugin reserves: one name, or `names` that it reserves only `when` its configuration meets a condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ReservedEnv {
    /// One name, for every configuration.
    Always(String),
    /// Names for certain configurations.
    Sometimes(ReservedNames),
}

/// Env vars that a plugin reserves in certain configurations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReservedNames {
    /// The names of the env vars.
    pub names: Vec<String>,
    /// The configurations.
    pub when: ConfigCondition,
}

impl ReservedEnv {
    /// The names of the env vars.
    #[must_use]
    pub fn names(&self) -> &[String] {
        match self {
            Self::Always(name) => slice::from_ref(name),
            Self::Sometimes(some) => &some.names,
        }
    }

    /// The condition. `None` if the names are always reserved.
    #[must_use]
    pub fn when(&self) -> Option<&ConfigCondition> {
        match self {
            Self::Always(_) => None,
            Self::Sometimes(some) => Some(&some.when),
        }
    }

    /// Whether the plugin reserves the names in that configuration.
    #[must_use]
    pub fn applies(&self, config: &Value) -> bool {
        self.when().is_none_or(|when| when.holds(config))
    }
}

impl fmt::Display for ReservedEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(", "))?;
        self.when().map_or(Ok(()), |when| write!(f, " {when}"))
    }
}
