//! Claims, by which a plugin declares what it reads, creates and writes, and the grants of the operator.

mod access;
mod compiled;
mod overlap;
mod path;
mod possible;
mod suggest;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::{
    access::{Access, Variables},
    compiled::{ClaimError, CompiledClaims, Grant, Grants, MAX_CLAIMS, permission},
    path::{
        ClaimPath, ClaimScope, KeyPattern, MAX_PATH, NamePattern, ObjectPattern, PathError,
        PodSetPattern, Variable,
    },
    possible::scope_problem,
};

/// A kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Reading in transform.
    Read,
    /// Adding a container.
    Create,
    /// Setting or removing, which includes reading.
    Write,
}

impl Verb {
    /// The key of the manifest's list.
    #[must_use]
    pub const fn list(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Create => "creates",
            Self::Write => "writes",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Create => "create",
            Self::Write => "write",
        })
    }
}

/// The claims of a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "UnparsedClaims")]
#[schemars(rename_all = "camelCase", deny_unknown_fields, default, !try_from)]
pub struct Claims {
    /// Paths that transform reads, and, in any phase, pointers into the TrainJob's spec (`job[/trainer/args]`) and
    /// objects of the cluster (`lookups[v1/ConfigMap/*]`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<ClaimPath>,
    /// Containers that transform adds, such as `pod-sets[@trainer].init-containers[fetch]`. A plugin may write to a container
    /// that it added without a claim, except for raw members, capabilities, host ports, mounts of volumes that are not its own, and raw sources of
    /// env vars.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub creates: Vec<ClaimPath>,
    /// Paths that transform sets or removes (reading them is included), and objects that build emits
    /// (`objects[v1/ConfigMap/-scripts]`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<ClaimPath>,
}

/// [`Claims`] before their paths are parsed.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct UnparsedClaims {
    reads: Vec<String>,
    creates: Vec<String>,
    writes: Vec<String>,
}

impl TryFrom<UnparsedClaims> for Claims {
    /// All invalid paths, each with its list.
    type Error = String;

    fn try_from(texts: UnparsedClaims) -> Result<Self, String> {
        let mut problems = Vec::new();
        let mut paths = |verb: Verb, list: Vec<String>| {
            let mut paths = Vec::with_capacity(list.len());
            for text in list {
                match text.parse() {
                    Ok(path) => paths.push(path),
                    Err(problem) => problems.push(format!("{}: {problem}", verb.list())),
                }
            }
            paths
        };
        let claims = Self {
            reads: paths(Verb::Read, texts.reads),
            creates: paths(Verb::Create, texts.creates),
            writes: paths(Verb::Write, texts.writes),
        };
        if problems.is_empty() {
            Ok(claims)
        } else {
            Err(problems.join("; "))
        }
    }
}

impl Claims {
    /// All claims with their kind of access, reads first.
    pub fn iter(&self) -> impl Iterator<Item = (Verb, &ClaimPath)> {
        self.reads
            .iter()
            .map(|p| (Verb::Read, p))
            .chain(self.creates.iter().map(|p| (Verb::Create, p)))
            .chain(self.writes.iter().map(|p| (Verb::Write, p)))
    }
}

impl Serialize for ClaimPath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ClaimPath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for ClaimPath {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ClaimPath".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A path in the info record, such as `pod-sets[@trainer].containers[node].env[PET_*]`.",
            "minLength": 1,
            "maxLength": MAX_PATH
        })
    }
}
