//! The observed state of a plugin.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Condition, DIGEST};

/// The most lines of `claims` and of `grants`.
pub const MAX_LINES: usize = 32;

/// The digits of a digest as the annotation of a JobSet has them.
const DIGITS: &str = "^[0-9a-f]{12}([0-9a-f]{52})?$";

/// The most digests of `trainJobs.digests`.
pub const MAX_DIGESTS: usize = 16;

/// What the controller found out about the plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyPluginStatus {
    /// The generation of the object that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    pub observed_generation: Option<i64>,
    /// `Pulled`, `Verified`, `Loaded`, `Permitted`, `Conflicting`, `Paused` and `Active`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The PluginRevision with this plugin as `spec` asks for it: the running one, or else the newest one that is rolled out, or else the newest
    /// one. If there is none, the running one, which has the plugin as it was before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub revision: Option<String>,
    /// The plugin's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub version: Option<String>,
    /// The digest of the plugin's file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", regex(pattern = DIGEST))]
    pub digest: Option<String>,
    /// The digest of the artifact's manifest in the registry.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", regex(pattern = DIGEST))]
    pub manifest_digest: Option<String>,
    /// Who signed the plugin, as the controller's configuration names the signer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub signer: Option<String>,
    /// The digest of the plan of `revision`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", regex(pattern = DIGEST))]
    pub plan: Option<String>,
    /// What the plugin claims, a line each, as `trainyard plugin inspect` prints it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_LINES))]
    pub claims: Vec<String>,
    /// What the plugin is granted beyond the defaults, as paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_LINES))]
    pub grants: Vec<String>,
    /// How many replicas of the controller have loaded `revision`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ReplicaCount")]
    pub replicas: Option<ReplicaCount>,
    /// How many TrainJobs that have not finished use the plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TrainJobCount")]
    pub train_jobs: Option<TrainJobCount>,
}

/// How many replicas of the controller have loaded a revision with all of its plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaCount {
    /// Those that have loaded it.
    pub current: u32,
    /// All.
    pub total: u32,
    /// Both, as `CURRENT/TOTAL`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
}

impl ReplicaCount {
    /// Returns the numbers with their summary, which `kubectl get` prints.
    #[must_use]
    pub fn new(current: u32, total: u32) -> Self {
        Self {
            current,
            total,
            summary: format!("{current}/{total}"),
        }
    }
}

/// How many TrainJobs use a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TrainJobCount {
    /// All of them.
    pub total: u32,
    /// Those that use each digest of the plugin, beginning with the most used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = MAX_DIGESTS),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["digest"])
    )]
    pub digests: Vec<DigestCount>,
    /// Those that were made before the digests of plugins were recorded, and those of further digests.
    #[serde(skip_serializing_if = "super::is_default")]
    pub unknown: u32,
}

/// How many TrainJobs use a digest of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DigestCount {
    /// The 64 hexadecimal digits of the digest of the plugin's file, or the first 12 of them.
    #[schemars(regex(pattern = DIGITS))]
    pub digest: String,
    /// The number of TrainJobs.
    pub train_jobs: u32,
}
