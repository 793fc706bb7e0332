//! The resolved, immutable set of plugins from which every replica makes its generation.

use std::{borrow::Cow, collections::BTreeMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;
use trainyard_model::{digest::canonical_digest, text::clean};

use super::{DIGEST, PolicyPluginSpec};

/// The newest format of a PluginRevision that this program reads, and the one that it writes.
pub const FORMAT: u32 = 1;

/// The number of hexadecimal digits of the hash in the name of a PluginRevision.
const NAME_DIGITS: usize = 16;

/// The plugins that have a PolicyPlugin, resolved to digests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginRevisionSpec {
    /// The format of this object. A controller does not use an object of a format that it does not know.
    #[schemars(range(min = 1))]
    pub format: u32,
    /// The number of the revision. A later one has a higher number.
    #[schemars(range(min = 1))]
    pub number: u64,
    /// The plugins, by name. Built-in plugins without a PolicyPlugin are not listed.
    #[serde(default)]
    // The list is atomic, because its order is part of the hash.
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "atomic"))]
    pub plugins: Vec<ResolvedPlugin>,
}

/// A plugin of a revision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResolvedPlugin {
    /// The plugin's name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The generation of the PolicyPlugin that the revision was made from. It is only displayed.
    #[serde(default)]
    pub generation: i64,
    /// Where the plugin's file comes from.
    pub origin: Origin,
    /// The plugin's version. A built-in plugin has that of the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub version: Option<String>,
    /// The digest of the plugin's file. A built-in plugin has none, because it is the controller's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", regex(pattern = DIGEST))]
    pub digest: Option<String>,
    /// When the plugin is active, as its manifest says. A built-in plugin's is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub active_when: Option<String>,
    /// The PolicyPlugin's `spec` without `source`.
    #[serde(default)]
    pub settings: PolicyPluginSpec,
}

/// Where the file of a plugin of a revision comes from. Exactly one member is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// The controller's own plugin of this name.
    BuiltIn(BuiltInOrigin),
    /// A file of the controller's plugin directory.
    File(FileOrigin),
    /// An artifact in a registry.
    Oci(OciOrigin),
}

/// The controller's own plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BuiltInOrigin {}

/// A file of the controller's plugin directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileOrigin {
    /// The name of the file.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// The digest of the file.
    #[schemars(regex(pattern = DIGEST))]
    pub digest: String,
}

/// An artifact in a registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OciOrigin {
    /// `REGISTRY/REPOSITORY`.
    #[schemars(length(min = 1, max = 1024))]
    pub repository: String,
    /// The digest of the artifact's manifest.
    #[schemars(regex(pattern = DIGEST))]
    pub manifest_digest: String,
}

/// The members of an [`Origin`], for its schema.
#[derive(Deserialize, JsonSchema)]
#[serde(rename = "Origin", rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code, reason = "only its schema is used")]
struct OriginMembers {
    /// The controller's own plugin of this name.
    #[serde(default)]
    #[schemars(with = "BuiltInOrigin")]
    built_in: Option<BuiltInOrigin>,
    /// A file of the controller's plugin directory.
    #[serde(default)]
    #[schemars(with = "FileOrigin")]
    file: Option<FileOrigin>,
    /// An artifact in a registry.
    #[serde(default)]
    #[schemars(with = "OciOrigin")]
    oci: Option<OciOrigin>,
}

impl JsonSchema for Origin {
    fn schema_name() -> Cow<'static, str> {
        OriginMembers::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        OriginMembers::json_schema(generator)
    }
}

/// Why a PluginRevision is not used.
#[derive(Debug, Error)]
pub enum RevisionError {
    /// A later release wrote it.
    #[error(
        "PluginRevision {name}: spec.format: is {format}, but this controller reads formats up to {FORMAT}; it keeps the plugins that it has, until it is upgraded"
    )]
    NewerFormat {
        /// The object.
        name: String,
        /// Its format.
        format: u64,
    },
    /// It has unknown fields or values of wrong types, because a later release wrote it, or someone else.
    #[error(
        "PluginRevision {name}: spec.{field}: {problem}; a later release may have written it, so upgrade this controller"
    )]
    Unreadable {
        /// The object.
        name: String,
        /// The field below `spec`.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// It is not what its name says.
    #[error(
        "PluginRevision {name}: the name of an object with this spec is {expected}; it was not written by a controller, so delete it"
    )]
    Name {
        /// The object.
        name: String,
        /// The name that the content has.
        expected: String,
    },
    /// A plugin is listed twice, or not in order, or has a source.
    #[error(
        "PluginRevision {name}: spec.plugins[{at}]: {problem}; it was not written by a controller, so delete it"
    )]
    Plugin {
        /// The object.
        name: String,
        /// The position of the plugin.
        at: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl PluginRevisionSpec {
    /// Returns a revision of these plugins.
    #[must_use]
    pub fn new(number: u64, mut plugins: Vec<ResolvedPlugin>) -> Self {
        plugins.sort_by(|a, b| a.name.cmp(&b.name));
        Self {
            format: FORMAT,
            number,
            plugins,
        }
    }

    /// Reads the spec of the PluginRevision of this name, and checks it against the name.
    ///
    /// # Errors
    /// It is of a newer format, has an unknown field, or is not what its name says.
    pub fn decode(name: &str, spec: &Value) -> Result<Self, RevisionError> {
        let format = spec.get("format").and_then(Value::as_u64);
        if let Some(format) = format.filter(|format| *format > u64::from(FORMAT)) {
            return Err(RevisionError::NewerFormat {
                name: clean(name),
                format,
            });
        }
        let read: Self =
            serde_path_to_error::deserialize(spec).map_err(|error| RevisionError::Unreadable {
                name: clean(name),
                field: clean(&error.path().to_string()),
                problem: clean(&error.inner().to_string()),
            })?;
        let expected = read.name();
        if expected != name {
            return Err(RevisionError::Name {
                name: clean(name),
                expected,
            });
        }
        let names = read.plugins.iter().map(|plugin| &plugin.name);
        let pairs = names.clone().zip(names.skip(1));
        let unsorted = pairs.into_iter().position(|(a, b)| a >= b);
        let unsorted =
            unsorted.map(|at| (at + 1, "its name is not after that of the plugin before it"));
        let mut plugins = read.plugins.iter();
        let sourced = plugins.position(|plugin| plugin.settings.source.is_some());
        let sourced = sourced.map(|at| (at, "has `settings.source`"));
        match unsorted.or(sourced) {
            None => Ok(read),
            Some((at, problem)) => Err(RevisionError::Plugin {
                name: clean(name),
                at,
                problem,
            }),
        }
    }

    /// Returns the digest of the plugins, by which two revisions are compared: `sha256:` and 64 hexadecimal digits. It covers `format` and
    /// `plugins`, without the generations, as JSON without white space and with sorted keys.
    #[must_use]
    pub fn hash(&self) -> String {
        let plugins = self.plugins.iter().map(|plugin| {
            let mut plugin = json!(plugin);
            if let Some(members) = plugin.as_object_mut() {
                members.remove("generation");
            }
            plugin
        });
        let plugins: Vec<_> = plugins.collect();
        canonical_digest(&json!({ "format": self.format, "plugins": plugins }))
    }

    /// Returns the name of the object ([`revision_name`]).
    #[must_use]
    pub fn name(&self) -> String {
        revision_name(self.number, &self.hash())
    }
}

/// Returns the name of the PluginRevision with this number and hash: `rev-NUMBER-HASH`, with the first digits of the hash.
#[must_use]
pub fn revision_name(number: u64, hash: &str) -> String {
    let digits = hash.trim_start_matches("sha256:");
    let digits = digits.get(..NAME_DIGITS).unwrap_or(digits);
    format!("rev-{number}-{digits}")
}

/// How far the rollout of the revision is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginRevisionStatus {
    /// The stage of the rollout.
    pub stage: Stage,
    /// The share of namespaces whose TrainJobs are rendered with the revision, in percent.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100))]
    pub percent: u8,
    /// When the stage began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub since: Option<String>,
    /// Why the revision has this stage, in one word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why the revision has this stage, as a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The digest of the plan of the leader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", regex(pattern = DIGEST))]
    pub plan: Option<String>,
    /// Who signed each plugin of a registry, as the controller's configuration names the signer. It is only displayed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub signers: BTreeMap<String, String>,
    /// What differed when runtimes and TrainJobs were rendered with both revisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ShadowSummary")]
    pub shadow: Option<ShadowSummary>,
    /// The replicas of the controller that have loaded the revision, or failed to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["pod"]))]
    pub replicas: Vec<Replica>,
}

/// The stage of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Stage {
    /// Runtimes and TrainJobs are rendered with it and with the running revision, and compared.
    Shadow,
    /// TrainJobs of a share of the namespaces are rendered with it.
    Share,
    /// All TrainJobs are rendered with it.
    Running,
    /// It was the running one before.
    Previous,
    /// A newer one took its place before it ran.
    Superseded,
    /// It cannot run.
    Refused,
    /// It was rolled back.
    RolledBack,
}

/// What differed when runtimes and TrainJobs were rendered with a revision and with the running one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ShadowSummary {
    /// The number of runtimes that were rendered.
    pub runtimes: u32,
    /// The number of TrainJobs that were rendered.
    pub train_jobs: u32,
    /// The number of runtimes and TrainJobs whose objects differ.
    pub differing: u32,
    /// The number of runtimes and TrainJobs that are refused now, but were not before.
    pub refused: u32,
    /// The fields that differ, beginning with the most frequent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub differences: Vec<ShadowDifference>,
}

/// A field that differs between two revisions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ShadowDifference {
    /// The plugins that the revision changes, one of which set it.
    pub plugin: String,
    /// The field, without its value.
    pub field: String,
    /// How many runtimes and TrainJobs it differs for.
    pub count: u32,
    /// One of them.
    pub example: String,
}

/// A replica of the controller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Replica {
    /// The name of its pod.
    pub pod: String,
    /// The digest of the plan that it made from the revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", regex(pattern = DIGEST))]
    pub plan: Option<String>,
    /// Why it has not loaded the revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub problem: Option<String>,
}
