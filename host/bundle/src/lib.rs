//! Bundles, which contain the input and output of a rendering.
//!
//! A bundle is a tar archive of regular files. `bundle.json` comes first and lists every other file with its size and digest. The same
//! rendering gives the same bytes. `pack` writes bundles, and `unpack` reads them.

mod pack;
mod unpack;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use trainyard_model::{
    claims::{ClaimPath, Grants},
    facts::{Facts, HostFacts},
    limits::Limits,
    names::sha256_digest,
    plugin_info::{Exemptions, PluginInfo, Settings},
    record::{Accelerators, ObeyedDomains},
};
use trainyard_render::ClusterFacts;

pub use self::{
    pack::{PackError, archive, pack},
    unpack::{Bundle, BundleError, BundleProblem},
};

/// The file that describes the others.
const INDEX: &str = "bundle.json";

/// The version of the format of a bundle that this release writes and reads.
pub const FORM: u32 = 1;

/// The maximum size of a bundle, because it is read into memory.
const MAX_BYTES: u64 = 512 << 20;

/// The maximum size of the index and of any other JSON file.
const MAX_JSON_BYTES: u64 = 32 << 20;

/// The maximum number of TrainJobs of a bundle.
const MAX_TRAIN_JOBS: usize = 1024;

/// The index of a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Index {
    /// The version of the format, [`FORM`].
    pub form: u32,
    /// The build of Trainyard that recorded it.
    pub trainyard: Host,
    /// The operator's settings for all TrainJobs.
    pub cluster: Cluster,
    /// The plugins that ran, and those that were disabled for a TrainJob.
    pub plugins: Vec<PluginEntry>,
    /// The TrainJobs, in the order in which they were rendered.
    pub train_jobs: Vec<JobEntry>,
    /// Every other file of the archive.
    pub files: BTreeMap<String, FileEntry>,
}

/// A build of Trainyard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Host {
    /// Its version.
    pub version: String,
    /// A digest of the sources that determine the output.
    pub build: String,
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "trainyard {} (build {})", self.version, self.build)
    }
}

/// Facts of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cluster {
    domain: String,
    accelerators: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    facts: BTreeMap<String, String>,
    /// The host's own facts, apart from its version.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    host_facts: BTreeMap<String, String>,
}

impl Cluster {
    /// Returns the facts as a bundle has them.
    #[must_use]
    pub fn of(facts: &ClusterFacts) -> Self {
        Self {
            domain: facts.cluster_domain.clone(),
            accelerators: facts.accelerators.names().map(str::to_owned).collect(),
            facts: facts.facts.all().clone(),
            host_facts: (*facts.host.now()).clone(),
        }
    }

    /// Returns the facts with which its TrainJobs are rendered again.
    #[must_use]
    pub fn facts(&self) -> ClusterFacts {
        ClusterFacts {
            cluster_domain: self.domain.clone(),
            accelerators: Accelerators::new(self.accelerators.iter().map(String::as_str)),
            facts: Facts::new(self.facts.clone()),
            host: HostFacts::new(self.host_facts.clone()),
            // The bundle has the answers to lookups.
            catalog: None,
        }
    }
}

/// A plugin with the operator's settings for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginEntry {
    /// The file of its component.
    pub file: String,
    /// The name of its manifest.
    pub name: String,
    /// The version of its manifest.
    pub version: String,
    /// `None` if all its claims are granted, as for a built-in plugin.
    grants: Option<Vec<ClaimPath>>,
    /// The domains whose keys had to be granted by name; `None` if these were the shipped ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    obeyed_domains: Option<Vec<String>>,
    limits: Limits,
    config: Value,
    after: Vec<String>,
    before: Vec<String>,
    excludes: Vec<String>,
    #[serde(default, skip_serializing_if = "Exemptions::is_empty")]
    exemptions: Exemptions,
}

impl PluginEntry {
    /// Returns the entry of a plugin.
    #[must_use]
    pub fn of(plugin: &PluginInfo) -> Self {
        let settings = &plugin.settings;
        Self {
            file: format!("plugins/{}.wasm", plugin.id.name),
            name: plugin.id.name.to_string(),
            version: plugin.id.version.to_string(),
            grants: match &settings.grants {
                Grants::AsClaimed => None,
                Grants::Paths(paths) => Some(paths.clone()),
            },
            obeyed_domains: (settings.obeyed != ObeyedDomains::default())
                .then(|| settings.obeyed.domains().map(str::to_owned).collect()),
            limits: settings.limits,
            config: (*settings.operator_config).clone(),
            after: settings.after.clone(),
            before: settings.before.clone(),
            excludes: settings.excludes.clone(),
            exemptions: settings.exemptions.clone(),
        }
    }

    /// Whether it had the grants of a built-in plugin.
    #[must_use]
    pub const fn is_built_in(&self) -> bool {
        self.grants.is_none()
    }

    /// Returns the limits of its calls.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the operator's settings for it.
    #[must_use]
    pub fn settings(&self) -> Settings {
        Settings {
            grants: self.grants.clone().map_or(Grants::AsClaimed, Grants::Paths),
            obeyed: match &self.obeyed_domains {
                Some(domains) => ObeyedDomains::new(domains.iter().map(String::as_str)),
                None => ObeyedDomains::default(),
            },
            limits: self.limits,
            operator_config: self.config.clone().into(),
            after: self.after.clone(),
            before: self.before.clone(),
            excludes: self.excludes.clone(),
            exemptions: self.exemptions.clone(),
            ..Settings::default()
        }
    }
}

/// A TrainJob with the files of its input and output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobEntry {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The source of its objects.
    pub from: InputKind,
    /// The file of the TrainJob, unchanged by conversion and defaulting.
    pub train_job: String,
    /// The file of its runtime, unchanged by conversion and defaulting.
    pub runtime: String,
    /// The file with the parts of the looked-up objects that its plugins read.
    pub lookups: String,
    /// The file with the list of its objects.
    pub output: String,
    /// The digest of its plan.
    pub plan: String,
}

/// The source of the objects of a TrainJob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InputKind {
    /// Files. The schemas of our CRDs were applied to all objects.
    Files,
    /// A cluster. Its API server applied its schemas to the runtime.
    Cluster,
}

/// A file of the archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileEntry {
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

/// The folder of what `trainyard support-bundle` collects. It is not replayed.
pub const CLUSTER_FOLDER: &str = "cluster/";

/// Whether a file belongs to what `trainyard support-bundle` collects.
fn is_collected(name: &str) -> bool {
    let is_segment = |segment: &str| {
        let fits =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
        segment.starts_with(|c: char| c.is_ascii_alphanumeric()) && segment.bytes().all(fits)
    };
    let rest = name.strip_prefix(CLUSTER_FOLDER);
    rest.is_some_and(|rest| rest.split('/').count() <= 3 && rest.split('/').all(is_segment))
}

/// Returns the maximum size of a file of this name. `None` if a bundle has no such file. Names are never used as paths, because the files of a
/// bundle stay in memory.
fn most_bytes(name: &str) -> Option<u64> {
    if is_collected(name) {
        return Some(MAX_JSON_BYTES);
    }
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

/// Returns the name of a file of the TrainJob with this number.
#[must_use]
pub fn job_file(number: usize, file: &str) -> String {
    format!("trainjobs/{number:03}/{file}")
}
