use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const PATTERN: &str = "^((mlPolicy|podGroupPolicy)\\.[A-Za-z0-9]+|plugins|resourceClaims|always)$";

/// The pattern of the schema, with the strings that match.
pub(super) const DESCRIBED: (&str, &str) = (
    PATTERN,
    "one of mlPolicy.KEY, mlPolicy.plugin, podGroupPolicy.KEY, plugins, resourceClaims and always",
);

/// When a plugin is active.
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
        known.ok_or_else(|| format!("must be {}; found `{text}`", DESCRIBED.1))
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
            "pattern": PATTERN
        })
    }
}
