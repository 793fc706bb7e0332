//! Parts of a manifest that hold for some configurations alone.

use std::{fmt, slice};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A condition on the plugin's configuration, with the defaults of its schema: a pointer to a boolean that is true, or a
/// pointer (`at`) and the texts of which one stands there (`in`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a pointer to a boolean, or `at` (a pointer) and `in` (a list of texts)"
)]
pub enum When {
    /// The boolean there is true.
    True(String),
    /// The text there is one of those given.
    Text(TextAt),
}

/// A text in the plugin's configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextAt {
    /// A pointer into the plugin's configuration.
    pub at: String,
    /// The texts that may stand there.
    #[serde(rename = "in")]
    pub texts: Vec<String>,
}

impl When {
    /// Whether it holds in a configuration.
    #[must_use]
    pub fn holds(&self, config: &Value) -> bool {
        let found = config.pointer(self.pointer());
        match self {
            Self::True(_) => found == Some(&Value::Bool(true)),
            Self::Text(TextAt { texts, .. }) => found
                .and_then(Value::as_str)
                .is_some_and(|found| texts.iter().any(|text| text == found)),
        }
    }

    /// The place in the configuration that it looks at.
    #[must_use]
    pub fn pointer(&self) -> &str {
        match self {
            Self::True(at) | Self::Text(TextAt { at, .. }) => at,
        }
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::True(at) => write!(f, "if `{at}` of its configuration is true"),
            Self::Text(TextAt { at, texts }) => {
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

/// Env vars that a plugin keeps for itself: the name of one, or `names` of which the plugin keeps those for itself `when` its
/// configuration says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected the name of an env var, or `names` and `when`"
)]
pub enum ReservedEnv {
    /// One, in each configuration.
    Always(String),
    /// Some, in certain configurations.
    Sometimes(ReservedNames),
}

/// Env vars that a plugin keeps for itself in certain configurations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReservedNames {
    /// The names of the env vars.
    pub names: Vec<String>,
    /// In which configurations.
    pub when: When,
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

    /// In which configurations; `None` if in each.
    #[must_use]
    pub fn when(&self) -> Option<&When> {
        match self {
            Self::Always(_) => None,
            Self::Sometimes(some) => Some(&some.when),
        }
    }

    /// Whether the plugin keeps them for itself in that configuration.
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
