//! The desired state of a plugin.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use trainyard_model::{
    claims::ClaimPath,
    limits::{CompileLimits, Limits},
    plugin_info::JobSelector,
};

use super::{DIGEST, is_default};

/// The operator's settings for a plugin, and where its file is.
// Only what the operator wrote is serialized, so that a later release may change a default without changing the hash of a revision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PolicyPluginSpec {
    /// Where the plugin's file is. Without it, the object is for the built-in plugin of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Source")]
    pub source: Option<Source>,
    /// The only content that is accepted under this name: `sha256:` and 64 hexadecimal digits, the digest of the `.wasm` file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", regex(pattern = DIGEST))]
    pub digest: Option<String>,
    /// Permissions beyond the defaults: paths that the plugin may write, objects that it may look up (`lookups[v1/Node/*]`), and pod sets
    /// whose count its `nodeSets` may set (`pod-sets[NAME].count`). One that the plugin does not claim has no effect, which the condition
    /// `Loaded` says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub grants: Vec<ClaimPath>,
    /// Limits of one call of the plugin.
    #[serde(skip_serializing_if = "SetLimits::is_empty")]
    pub limits: SetLimits,
    /// Limits of checking and compiling the plugin, for one with a large interpreter.
    #[serde(skip_serializing_if = "is_default")]
    pub compile: CompileLimits,
    /// Its configuration, checked by the schema in its manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub config: Option<Value>,
    /// Facts of the cluster for this plugin, by name. A name starts with the plugin's name and `/`. They are not secret: the snapshot of a
    /// TrainJob holds those that its plugins read.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
    /// Plugins that run before this one if both write a path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub after: Vec<String>,
    /// Plugins that run after this one if both write a path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub before: Vec<String>,
    /// Plugins that are never active together with this one: a TrainJob that would enable both is refused, so their claims cannot
    /// conflict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub excludes: Vec<String>,
    /// Disables the plugin, even if it is built in. A TrainJob that names it is refused; all others are rendered without it.
    #[serde(skip_serializing_if = "is_default")]
    pub disabled: bool,
    /// Disables the plugin for these TrainJobs only. It must be one that is always active.
    #[serde(skip_serializing_if = "JobSelector::is_empty")]
    pub disabled_for: JobSelector,
    /// Enables the plugin for these TrainJobs only. It must be one that is always active, and `disabledFor` must not be set.
    #[serde(skip_serializing_if = "JobSelector::is_empty")]
    pub enabled_for: JobSelector,
    /// Lets a TrainJob disable the plugin for itself with the annotation `trainyard.dev/disabled-plugins`. The plugin must be one that is
    /// always active.
    #[serde(skip_serializing_if = "is_default")]
    pub train_jobs_may_disable: bool,
}

/// Where the file of a plugin is. Exactly one member is set.
// Not an enum, because a schema of two optional members has better errors, and is structural.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// An artifact in a registry.
    Oci(OciSource),
    /// A file of the controller's plugin directory.
    File(FileSource),
}

/// An artifact in a registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OciSource {
    /// `REGISTRY/REPOSITORY[:TAG]@sha256:DIGEST`, where the digest is that of the artifact's manifest. With `follow`, it is
    /// `REGISTRY/REPOSITORY:TAG`.
    #[schemars(length(min = 1, max = 1024))]
    pub reference: String,
    /// Whether the controller follows the tag of the reference to newer versions of the plugin.
    #[serde(default, skip_serializing_if = "is_default")]
    pub follow: bool,
}

/// A file of the controller's plugin directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileSource {
    /// The name of the file, such as `rdma.wasm`, without a directory.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
}

/// The members of a [`Source`], for its schema.
#[derive(Deserialize, JsonSchema)]
#[serde(rename = "Source", rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code, reason = "only its schema is used")]
struct SourceMembers {
    /// An artifact in a registry.
    #[serde(default)]
    #[schemars(with = "OciSource")]
    oci: Option<OciSource>,
    /// A file of the controller's plugin directory.
    #[serde(default)]
    #[schemars(with = "FileSource")]
    file: Option<FileSource>,
}

impl JsonSchema for Source {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        SourceMembers::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        SourceMembers::json_schema(generator)
    }
}

/// The limits that the operator set. Those that are not set are the host's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>", into = "Map<String, Value>")]
pub struct SetLimits {
    set: Map<String, Value>,
    limits: Limits,
}

impl SetLimits {
    /// Whether none is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Returns all limits.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }
}

impl TryFrom<Map<String, Value>> for SetLimits {
    type Error = serde_json::Error;

    fn try_from(set: Map<String, Value>) -> Result<Self, serde_json::Error> {
        let limits = serde_json::from_value(json!(set))?;
        Ok(Self { set, limits })
    }
}

impl From<SetLimits> for Map<String, Value> {
    fn from(limits: SetLimits) -> Self {
        limits.set
    }
}

impl JsonSchema for SetLimits {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Limits::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Limits::json_schema(generator)
    }
}

/// Returns the schema of an object that this program does not know.
fn any_object(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({"type": "object"})
}
