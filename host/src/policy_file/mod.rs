//! The policy file: the operator's grants, limits and configuration of plugins.

mod check;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use trainyard_api::{FieldPath, Located, Location};
use trainyard_config::{
    ConfigError, ConfigFile, ConfigProblem, ConfigSchema, MAX_ERRORS, TypeMeta,
};
use trainyard_controller::{
    rbac::NAMESPACE,
    settings::{FeatureGate, FeatureGates},
    status_server,
};
use trainyard_model::{
    claims::{ClaimPath, Grants},
    facts::{Facts, STATUS_CA, STATUS_URL},
    limits::{CompileLimits, Limits},
    manifest::ActiveWhen,
    plugin_info::{Exemptions, JobSelector, PluginInfo, Settings},
    record::{Accelerators, MAX_OBEYED},
    text::{clean, nearest},
};
use trainyard_render::ClusterFacts;

const TYPE_META: TypeMeta = TypeMeta {
    api_version: "trainyard.dev/v1alpha1",
    kind: "PolicyFile",
};

const DIGEST: &str = "^sha256:[0-9a-f]{64}$";

/// The operator's settings for plugins and for all TrainJobs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PolicyFile {
    /// The file that it was read from.
    #[serde(skip)]
    location: Location,
    /// What flags and the controller's configuration say.
    #[serde(skip)]
    process: ProcessSettings,
    /// `trainyard.dev/v1alpha1`.
    #[serde(rename = "apiVersion")]
    #[schemars(extend("const" = "trainyard.dev/v1alpha1"))]
    _api_version: String,
    /// `PolicyFile`.
    #[serde(rename = "kind")]
    #[schemars(extend("const" = "PolicyFile"))]
    _kind: String,
    /// Resource names with their domain that count as accelerators, instead of the shipped list; a trailing `*` matches any
    /// ending.
    #[serde(default)]
    accelerators: Option<Vec<String>>,
    /// The cluster's DNS domain. Default `cluster.local`.
    #[serde(default)]
    #[schemars(length(min = 1, max = 253))]
    cluster_domain: Option<String>,
    /// The namespace of the catalog: objects that plugins look up for TrainJobs of all namespaces. It should contain nothing else, because
    /// users of a TrainJob can read what its plugins read.
    #[serde(default)]
    #[schemars(length(min = 1, max = 63))]
    catalog_namespace: Option<String>,
    /// Facts of the cluster that plugins may read by name, such as `status/url`. They are not secret: the snapshot of a TrainJob holds
    /// those that its plugins read. At most 32 KiB, names and values together.
    #[serde(default)]
    facts: BTreeMap<String, String>,
    /// Changes of the list of domains whose labels and annotations controllers obey. A plugin needs a grant for each such key, by its name.
    #[serde(default)]
    obeyed_domains: ObeyedDomainsPolicy,
    /// Settings of plugins, by name.
    #[serde(default)]
    plugins: Vec<PluginPolicy>,
}

/// The settings for plugins that are not in the policy file.
#[derive(Debug, Default)]
struct ProcessSettings {
    gates: FeatureGates,
    /// The URL of the status server, up to the path, if it is not the default.
    status_url: Option<String>,
}

/// The certificate authorities of the status server, where they are not known.
const UNKNOWN_AUTHORITY: &str =
    "# The controller writes the certificate authority of its status server here.\n";

/// Changes of the list of domains whose labels and annotations controllers obey.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ObeyedDomainsPolicy {
    /// Domains to add, such as `example.com`, which includes those below it.
    #[serde(default)]
    #[schemars(length(max = MAX_OBEYED))]
    add: Vec<String>,
    /// Domains of the shipped list to remove: the docs of the contract list them.
    #[serde(default)]
    #[schemars(length(max = MAX_OBEYED))]
    remove: Vec<String>,
}

/// The operator's settings for one plugin.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PluginPolicy {
    /// The plugin's name.
    #[schemars(length(min = 1, max = 63))]
    name: String,
    /// The only content that is accepted under this name: `sha256:` and 64 hexadecimal digits.
    #[serde(default)]
    #[schemars(regex(pattern = DIGEST))]
    digest: Option<String>,
    /// Permissions beyond the defaults: paths that the plugin may write, objects that it may look up (`lookups[v1/Node/*]`), and pod sets
    /// whose count its `nodeSets` may set (`pod-sets[NAME].count`).
    #[serde(default)]
    grants: Vec<ClaimPath>,
    /// Limits of one call of the plugin.
    #[serde(default)]
    limits: Limits,
    /// Limits of checking and compiling the plugin, for one with a large interpreter.
    #[serde(default)]
    compile: CompileLimits,
    /// Its configuration, checked by the schema in its manifest.
    #[serde(default)]
    #[schemars(with = "Option<std::collections::BTreeMap<String, Value>>")]
    config: Option<Value>,
    /// Plugins that run before this one if both write a path.
    #[serde(default)]
    after: Vec<String>,
    /// Plugins that run after this one if both write a path.
    #[serde(default)]
    before: Vec<String>,
    /// Plugins that are never active together with this one: a TrainJob that would enable both is refused, so their claims cannot
    /// conflict.
    #[serde(default)]
    excludes: Vec<String>,
    /// Disables the plugin, even if it is built in or its file is loaded. A TrainJob that names it is refused; all others are rendered
    /// without it.
    #[serde(default)]
    disabled: bool,
    /// Disables the plugin for these TrainJobs only. It must be one that is always active.
    #[serde(default)]
    disabled_for: JobSelector,
    /// Lets a TrainJob disable the plugin for itself with the annotation `trainyard.dev/disabled-plugins`. The plugin must be one that is
    /// always active.
    #[serde(default)]
    train_jobs_may_disable: bool,
}

impl PolicyFile {
    /// Reads a policy file.
    pub(crate) fn read(path: &Path) -> Result<Self, Vec<ConfigError>> {
        Self::read_with_text(path).map(|(policy, _)| policy)
    }

    /// Reads a policy file. Also returns its text, whose digest is logged.
    pub(crate) fn read_with_text(path: &Path) -> Result<(Self, String), Vec<ConfigError>> {
        let file = ConfigFile::read_with_text(path, &[TYPE_META]);
        let (file, text) = file.map_err(|error| vec![error])?;
        let schema = ConfigSchema {
            schema: &schema(),
            patterns: &[(DIGEST, "`sha256:` and 64 lowercase hexadecimal digits")],
        };
        let policy: Self = file.decode(&schema, |policy, _| check::field_errors(policy))?;
        let location = file.location(FieldPath::root());
        Ok((Self { location, ..policy }, text))
    }

    /// Returns it for a process with these feature gates, whose status server has that URL.
    pub(crate) fn for_process(mut self, gates: FeatureGates, status_url: Option<String>) -> Self {
        self.process = ProcessSettings { gates, status_url };
        self
    }

    /// Whether a feature gate is on.
    pub(crate) fn is_on(&self, gate: FeatureGate) -> bool {
        self.process.gates.is_on(gate)
    }

    /// Returns the settings for all TrainJobs.
    pub(crate) fn facts(&self) -> ClusterFacts {
        let mut facts = ClusterFacts::default();
        if let Some(names) = &self.accelerators {
            facts.accelerators = Accelerators::new(names.iter().map(String::as_str));
        }
        if let Some(domain) = &self.cluster_domain {
            facts.cluster_domain.clone_from(domain);
        }
        facts.facts = Facts::new(self.facts.clone());
        if self.is_on(FeatureGate::TrainJobStatus) {
            if facts.facts.get(STATUS_URL).is_none() {
                let url = self.process.status_url.as_deref();
                let url = url.map_or_else(|| status_server::url(NAMESPACE), str::to_owned);
                facts.facts = facts.facts.with(STATUS_URL, &url);
            }
            facts.host.set(STATUS_CA, Some(UNKNOWN_AUTHORITY));
        }
        facts.catalog = self.catalog_namespace.as_deref().map(Into::into);
        facts
    }

    /// Returns the settings of a plugin, based on its defaults.
    pub(crate) fn settings(&self, name: &str, mut defaults: Settings) -> Settings {
        let ObeyedDomainsPolicy { add, remove } = &self.obeyed_domains;
        defaults.obeyed = defaults.obeyed.changed(add, remove);
        let Some(plugin) = self.plugins.iter().find(|plugin| plugin.name == name) else {
            return defaults;
        };
        if let Grants::Paths(paths) = &mut defaults.grants {
            paths.extend(plugin.grants.iter().cloned());
        }
        if let Some(config) = &plugin.config {
            defaults.operator_config = Arc::new(config.clone());
        }
        defaults.limits = plugin.limits;
        defaults.compile = plugin.compile;
        defaults.digest.clone_from(&plugin.digest);
        defaults.after.extend(plugin.after.iter().cloned());
        defaults.before.extend(plugin.before.iter().cloned());
        defaults.excludes.extend(plugin.excludes.iter().cloned());
        defaults.is_disabled = plugin.disabled;
        defaults.exemptions = Exemptions {
            disabled_for: plugin.disabled_for.clone(),
            enabled_for: JobSelector::default(),
            train_jobs_may_disable: plugin.train_jobs_may_disable,
        };
        defaults
    }

    /// Returns an error for each exemption of a plugin that is not always active. `plugins` are the known plugins.
    pub(crate) fn impossible_exemptions(
        &self,
        plugins: &BTreeMap<&str, &ActiveWhen>,
    ) -> Vec<Located> {
        let entries = self.plugins.iter().enumerate();
        let errors = entries.flat_map(|(at, plugin)| {
            let when = plugins.get(plugin.name.as_str());
            let when = when.filter(|when| ***when != ActiveWhen::Always);
            let keys = [
                ("disabledFor", !plugin.disabled_for.is_empty()),
                ("trainJobsMayDisable", plugin.train_jobs_may_disable),
            ];
            let set = keys.into_iter().filter(|(_, is_set)| *is_set);
            set.filter_map(move |(key, _)| {
                Some(Located {
                    location: self.location.clone().at(plugin_path(at).field(key)),
                    message: not_always(&plugin.name, when?),
                })
            })
        });
        errors.take(MAX_ERRORS).collect()
    }

    /// Returns an error for each plugin that it names and that is not known, because a mistyped name would leave the intended plugin without its
    /// settings. Only the first [`MAX_ERRORS`] are listed.
    pub(crate) fn unknown_plugins(&self, known: &BTreeSet<&str>) -> Vec<Located> {
        let mut names = self.names().filter(|(_, name)| !known.contains(name));
        let errors = names.by_ref().take(MAX_ERRORS);
        let mut errors: Vec<_> = errors
            .map(|(field, name)| Located {
                location: self.location.clone().at(field),
                message: unknown_plugin(name, known),
            })
            .collect();
        let omitted = names.count();
        if omitted > 0 {
            errors.push(Located {
                location: Location::file(self.location.file.as_str()),
                message: ConfigProblem::Omitted { errors: omitted }.to_string(),
            });
        }
        errors
    }

    /// Returns a warning for each grant that covers no claim of its plugin, and so has no effect.
    pub(crate) fn unused_grants<'p>(
        &self,
        loaded: impl IntoIterator<Item = &'p Arc<PluginInfo>>,
    ) -> Vec<Located> {
        let mut unused = Vec::new();
        for plugin in loaded {
            let mut entries = self.plugins.iter().enumerate();
            let Some((at, entry)) = entries.find(|(_, entry)| *entry.name == *plugin.id.name)
            else {
                continue;
            };
            let grants = entry.grants.iter().enumerate();
            let grants = grants.filter(|(_, grant)| !plugin.manifest.uses(grant));
            unused.extend(grants.map(|(of, grant)| Located {
                location: self.location.clone().at(plugin_path(at).field("grants").index(of)),
                message: format!(
                    "`{}` covers no claim of plugin {}, so the grant has no effect; remove it, or correct its path",
                    clean(&grant.to_string()),
                    plugin.id
                ),
            }));
        }
        unused.truncate(MAX_ERRORS);
        unused
    }

    /// Returns the names of plugins in the file, with their fields.
    fn names(&self) -> impl Iterator<Item = (FieldPath, &str)> {
        let plugins = self.plugins.iter().enumerate();
        plugins.flat_map(|(at, plugin)| {
            let path = plugin_path(at);
            let name = std::iter::once((path.field("name"), plugin.name.as_str()));
            let lists = [
                ("after", &plugin.after),
                ("before", &plugin.before),
                ("excludes", &plugin.excludes),
            ];
            name.chain(lists.into_iter().flat_map(move |(list, names)| {
                let list = path.field(list);
                let names = names.iter().enumerate();
                names.map(move |(of, name)| (list.index(of), name.as_str()))
            }))
        })
    }
}

/// Returns the path of an entry of `plugins`.
fn plugin_path(at: usize) -> FieldPath {
    FieldPath::of(["plugins"]).index(at)
}

/// Returns the message for exemptions of a plugin that is activated by `when`.
fn not_always(name: &str, when: &ActiveWhen) -> String {
    format!(
        "is only for plugins that are active `always`, but `{}` is activated by `{when}`; remove the key, or set `disabled: true` to disable the plugin for all TrainJobs",
        clean(name)
    )
}

/// Returns the message for a name that no plugin has.
fn unknown_plugin(name: &str, known: &BTreeSet<&str>) -> String {
    let name = clean(name);
    let advice = match nearest(&name, known.iter().copied()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => {
            let loaded: Vec<_> = known.iter().copied().collect();
            format!(
                "the loaded plugins are {}; load the plugin, or remove it from the policy file",
                loaded.join(", ")
            )
        }
    };
    format!("no loaded plugin has the name `{name}`; {advice}")
}

/// Returns the JSON Schema of a policy file.
pub(crate) fn schema() -> Value {
    schemars::schema_for!(PolicyFile).to_value()
}
