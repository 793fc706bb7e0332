//! A bundle: all that a rendering is made of, and what came of it, as one file.
//!
//! It is a tar archive of plain files. `bundle.json` comes first and names every other file with its size and digest. The same
//! rendering gives the same bytes.

mod pack;
mod unpack;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use trainyard_model::{
    claims::{ClaimPath, Grants},
    facts::Facts,
    limits::Limits,
    names::sha256_digest,
    plugin::{Plugin, Settings},
    record::Accelerators,
};
use trainyard_render::ClusterFacts;

pub(crate) use self::{
    pack::pack,
    unpack::{Bundle, BundleProblem},
};

/// The file that describes the others.
const INDEX: &str = "bundle.json";

/// The form of a bundle that this release writes and reads.
pub(crate) const FORM: u32 = 1;

/// The most bytes of a bundle: it is read as a whole.
const MAX_BYTES: u64 = 512 << 20;

/// The most bytes of the index, and of one file of JSON.
const MAX_JSON_BYTES: u64 = 32 << 20;

/// The most TrainJobs of a bundle.
const MAX_TRAIN_JOBS: usize = 1024;

/// What a bundle is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Index {
    /// The form, [`FORM`].
    pub(crate) form: u32,
    /// The Trainyard that made it.
    pub(crate) trainyard: Host,
    /// What the operator had set for all TrainJobs.
    pub(crate) cluster: Cluster,
    /// The plugins that ran.
    pub(crate) plugins: Vec<PluginEntry>,
    /// The TrainJobs, in the order in which they were rendered.
    pub(crate) train_jobs: Vec<JobEntry>,
    /// Every other file of the archive.
    pub(crate) files: BTreeMap<String, FileEntry>,
}

/// A Trainyard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Host {
    /// Its version.
    pub(crate) version: String,
    /// A digest of the sources that decide what a TrainJob becomes.
    pub(crate) build: String,
}

impl Host {
    /// This program.
    pub(crate) fn this() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: trainyard_controller::SOURCES.to_owned(),
        }
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "trainyard {} (build {})", self.version, self.build)
    }
}

/// Facts of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Cluster {
    domain: String,
    accelerators: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    facts: BTreeMap<String, String>,
}

impl Cluster {
    pub(crate) fn of(facts: &ClusterFacts) -> Self {
        Self {
            domain: facts.cluster_domain.clone(),
            accelerators: facts.accelerators.names().map(str::to_owned).collect(),
            facts: facts.facts.all().clone(),
        }
    }

    pub(crate) fn facts(&self) -> ClusterFacts {
        ClusterFacts {
            cluster_domain: self.domain.clone(),
            accelerators: Accelerators::new(self.accelerators.iter().map(String::as_str)),
            facts: Facts::new(self.facts.clone()),
        }
    }
}

/// A plugin, with what the operator had set for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PluginEntry {
    /// Its component.
    pub(crate) file: String,
    pub(crate) name: String,
    pub(crate) version: String,
    /// `None`: all that it claims, as of a built-in plugin.
    grants: Option<Vec<ClaimPath>>,
    limits: Limits,
    config: Value,
    after: Vec<String>,
    before: Vec<String>,
    excludes: Vec<String>,
}

impl PluginEntry {
    pub(crate) fn of(plugin: &Plugin) -> Self {
        let settings = &plugin.settings;
        Self {
            file: format!("plugins/{}.wasm", plugin.id.name),
            name: plugin.id.name.to_string(),
            version: plugin.id.version.to_string(),
            grants: match &settings.grants {
                Grants::AsClaimed => None,
                Grants::Paths(paths) => Some(paths.clone()),
            },
            limits: settings.limits,
            config: (*settings.operator_config).clone(),
            after: settings.after.clone(),
            before: settings.before.clone(),
            excludes: settings.excludes.clone(),
        }
    }

    /// Whether it ran under the grants of a built-in plugin.
    pub(crate) const fn is_built_in(&self) -> bool {
        self.grants.is_none()
    }

    /// The limits of its calls.
    pub(crate) const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What the operator had set for it.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            grants: self.grants.clone().map_or(Grants::AsClaimed, Grants::Paths),
            limits: self.limits,
            operator_config: self.config.clone().into(),
            after: self.after.clone(),
            before: self.before.clone(),
            excludes: self.excludes.clone(),
            ..Settings::default()
        }
    }
}

/// A TrainJob with what it was rendered from and what it became.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct JobEntry {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Where its objects came from.
    pub(crate) from: InputKind,
    /// The TrainJob as it was written.
    pub(crate) train_job: String,
    /// Its runtime as it was written.
    pub(crate) runtime: String,
    /// What its plugins read of the objects that they looked up.
    pub(crate) lookups: String,
    /// A list of the objects that it became.
    pub(crate) output: String,
    /// The digest of its plan.
    pub(crate) plan: String,
}

/// Where the objects of a TrainJob came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum InputKind {
    /// From files: the schemas of our CRDs were applied to all of them.
    Files,
    /// From a cluster: its API server applied those that it has to the runtime.
    Cluster,
}

/// A file of the archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct FileEntry {
    bytes: u64,
    digest: String,
}

impl FileEntry {
    fn of(content: &[u8]) -> Self {
        Self {
            bytes: content.len() as u64,
            digest: sha256_digest(content),
        }
    }
}

/// The most bytes that a file of that name may have; none if no bundle has such a file. Names are nothing but names: a bundle is
/// read into memory, and nothing of it is written anywhere.
fn most_bytes(name: &str) -> Option<u64> {
    let is_label = |text: &str| trainyard_model::names::is_dns_label(text);
    if let Some(plugin) = name
        .strip_prefix("plugins/")
        .and_then(|rest| rest.strip_suffix(".wasm"))
    {
        return is_label(plugin).then(|| trainyard_sandbox::LoadLimits::default().bytes);
    }
    let (number, file) = name.strip_prefix("trainjobs/")?.split_once('/')?;
    let is_number = (1..=4).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
    let is_file = JOB_FILES.contains(&file);
    (is_number && is_file).then_some(MAX_JSON_BYTES)
}

/// The files of a TrainJob.
const JOB_FILES: [&str; 4] = [
    "trainjob.json",
    "runtime.json",
    "lookups.json",
    "output.json",
];

/// The name of a file of the TrainJob with that number.
pub(crate) fn job_file(number: usize, file: &str) -> String {
    format!("trainjobs/{number:03}/{file}")
}
