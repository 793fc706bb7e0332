use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const PATTERN: &str = "^((mlPolicy|podGroupPolicy)\\.[A-Za-z0-9]+|plugins|resourceClaims|always)$";

/// The pattern of the schema, with the strings that match.
pub(super) const DESCRIBED: (&str, &str) = (
    PATTERN,
    "one of mlPolicy.KEY, mlPolicy.plugin, podGroupPolicy.KEY, podGroupPolicy.plugin, plugins, resourceClaims and always",
);

/// The member of each union that names any plugin.
const PLUGIN: &str = "plugin";

/// A part of a runtime's `spec` of which at most one member is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Union {
    /// `mlPolicy`, the framework.
    MlPolicy,
    /// `podGroupPolicy`, the gang scheduling.
    PodGroupPolicy,
}

impl Union {
    const ALL: [Self; 2] = [Self::MlPolicy, Self::PodGroupPolicy];

    /// The field's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MlPolicy => "mlPolicy",
            Self::PodGroupPolicy => "podGroupPolicy",
        }
    }
}

/// When a plugin is active.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActiveWhen {
    /// The union in the runtime has this key.
    Key(Union, String),
    /// `plugin` in the union names it.
    Named(Union),
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
    pub const fn union(&self) -> Option<Union> {
        match self {
            Self::Key(union, _) | Self::Named(union) => Some(*union),
            Self::Plugins | Self::ResourceClaims | Self::Always => None,
        }
    }
}

impl fmt::Display for ActiveWhen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(union, key) => write!(f, "{}.{key}", union.name()),
            Self::Named(union) => write!(f, "{}.{PLUGIN}", union.name()),
            Self::Plugins => f.write_str("plugins"),
            Self::ResourceClaims => f.write_str("resourceClaims"),
            Self::Always => f.write_str("always"),
        }
    }
}

impl FromStr for ActiveWhen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_key = |k: &str| !k.is_empty() && k.bytes().all(|b| b.is_ascii_alphanumeric());
        let in_union = || {
            let (name, key) = text.split_once('.')?;
            let union = Union::ALL.into_iter().find(|union| union.name() == name)?;
            match key {
                PLUGIN => Some(Self::Named(union)),
                key => is_key(key).then(|| Self::Key(union, key.to_owned())),
            }
        };
        let known = match text {
            "plugins" => Some(Self::Plugins),
            "resourceClaims" => Some(Self::ResourceClaims),
            "always" => Some(Self::Always),
            _ => in_union(),
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
