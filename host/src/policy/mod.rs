//! The operator's settings: PolicyPlugins, and the settings for all TrainJobs.
//!
//! - `read` finds them in files, in the input and in policy files. `problems` compares them with the loaded plugins.
//! - `source` finds the plugin files that PolicyPlugins name, and `registry` takes those of registries. `file` is such a plugin, and
//!   `missing` is a PolicyPlugin without one.

mod file;
mod missing;
mod problems;
mod read;
mod registry;
mod source;

use std::collections::BTreeMap;

pub(crate) use file::{PluginContent, PluginFile};
pub(crate) use missing::Missing;
pub(crate) use problems::Warning;
pub(crate) use read::{Declared, is_policy_plugin, policy_plugins};
use read::{FLAGS, differ};
pub(crate) use registry::store;
use trainyard_api::{FieldPath, Located, Location};
use trainyard_config::{RenderingSection, policy_plugin::PolicyPlugin};
use trainyard_controller::{
    rbac::NAMESPACE,
    settings::{FeatureGate, FeatureGates},
    status_server,
};
use trainyard_model::{
    facts::{self, Facts, STATUS_CA, STATUS_URL},
    plugin_info::Settings,
    record::Accelerators,
};
use trainyard_oci::Signers;
use trainyard_render::ClusterFacts;

use crate::report::ErrorList;

/// The operator's settings for plugins and for all TrainJobs.
#[derive(Debug, Default)]
pub(crate) struct Policy {
    plugins: Vec<PolicyPlugin>,
    rendering: RenderingSection,
    process: ProcessSettings,
    /// Who must have signed the plugins of registries; `None` if that is not checked.
    signers: Option<Signers>,
    /// The ControllerConfiguration that says so; `None` for flags.
    signers_place: Option<Location>,
    /// The sources of PolicyPlugins, by the names of their plugins, which nothing else may have.
    sources: BTreeMap<String, Location>,
    /// The settings for all TrainJobs of a bundle.
    recorded: Option<ClusterFacts>,
}

/// What flags and the controller's configuration say about plugins.
#[derive(Debug, Default)]
struct ProcessSettings {
    gates: FeatureGates,
    /// The URL of the status server, up to the path, if it is not the default.
    status_url: Option<String>,
}

/// The certificate authorities of the status server, where they are not known.
const UNKNOWN_AUTHORITY: &str =
    "# The controller writes the certificate authority of its status server here.\n";

impl Policy {
    /// Returns the settings of PolicyPlugins and sections, which must not set one thing twice.
    pub(crate) fn new(
        plugins: Vec<PolicyPlugin>,
        sections: Vec<RenderingSection>,
    ) -> Result<Self, ErrorList> {
        let mut failure = ErrorList::default();
        let rendering = RenderingSection::merge(sections).unwrap_or_else(|errors| {
            errors.into_iter().for_each(|error| failure.add(error));
            RenderingSection::default()
        });
        let of_source = |plugin: &PolicyPlugin| {
            plugin.spec.source.as_ref()?;
            Some((plugin.name.clone(), plugin.at("source")))
        };
        let policy = Self {
            sources: plugins.iter().filter_map(of_source).collect(),
            plugins,
            rendering,
            process: ProcessSettings::default(),
            signers: None,
            signers_place: None,
            recorded: None,
        };
        policy
            .duplicates()
            .chain(policy.fact_errors())
            .for_each(|error| failure.add(error));
        failure.or_ok(policy)
    }

    /// Returns it for a process with these feature gates, whose status server has that URL.
    pub(crate) fn for_process(mut self, gates: FeatureGates, status_url: Option<String>) -> Self {
        self.process = ProcessSettings { gates, status_url };
        self
    }

    /// Returns it with whose signatures of plugins in registries count; `None` to accept all.
    pub(crate) fn with_signers(mut self, signers: Option<Signers>) -> Self {
        self.signers = signers;
        self
    }

    /// Verifies the plugins of registries like another policy, which must not have other signers.
    pub(crate) fn verify_like(&mut self, other: &Self) -> Result<(), ErrorList> {
        match (&self.signers, &other.signers) {
            (Some(own), Some(signers)) if own != signers => {
                let place = other.signers_place.as_ref();
                let place = place.map_or_else(|| FLAGS.to_owned(), Location::to_string);
                let own = self.signers_place.clone().unwrap_or_default();
                return Err(ErrorList::from_iter([differ(&own, &place)]));
            }
            (None, Some(_)) => {
                self.signers.clone_from(&other.signers);
                self.signers_place.clone_from(&other.signers_place);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns it with the settings for all TrainJobs of a bundle, which count if no file has others.
    pub(crate) fn based_on(mut self, recorded: Option<ClusterFacts>) -> Self {
        self.recorded = recorded;
        self
    }

    /// Returns it with the ControllerConfiguration that says whose signatures count.
    fn with_signers_place(mut self, place: Option<Location>) -> Self {
        self.signers_place = place;
        self
    }

    /// Returns the source that decides which plugin has a name.
    pub(crate) fn source_of(&self, name: &str) -> Option<&Location> {
        self.sources.get(name)
    }

    /// Whether a feature gate is on.
    pub(crate) fn is_on(&self, gate: FeatureGate) -> bool {
        self.process.gates.is_on(gate)
    }

    /// Returns the settings for all TrainJobs.
    pub(crate) fn facts(&self) -> ClusterFacts {
        let mut facts = self.recorded.clone().unwrap_or_default();
        let settings = &self.rendering.settings;
        if let Some(names) = &settings.accelerators {
            facts.accelerators = Accelerators::new(names.iter().map(String::as_str));
        }
        if let Some(domain) = &settings.cluster_domain {
            facts.cluster_domain.clone_from(domain);
        }
        let of_plugins = self.plugins.iter().flat_map(|plugin| &plugin.spec.facts);
        let recorded = facts.facts.all().iter();
        let recorded =
            recorded.filter(|(name, _)| settings.facts.is_empty() && !self.has_facts(name));
        let all = recorded.chain(&settings.facts).chain(of_plugins);
        let all = all
            .map(|(name, text)| (name.clone(), text.clone()))
            .collect();
        facts.facts = Facts::new(all);
        if self.is_on(FeatureGate::TrainJobStatus) {
            if facts.facts.get(STATUS_URL).is_none() {
                let url = self.process.status_url.as_deref();
                let url = url.map_or_else(|| status_server::url(NAMESPACE), str::to_owned);
                facts.facts = facts.facts.with(STATUS_URL, &url);
            }
            if !facts.host.now().contains_key(STATUS_CA) {
                facts.host.set(STATUS_CA, Some(UNKNOWN_AUTHORITY));
            }
        }
        // A bundle has the answers to lookups, those of the catalog included.
        if self.recorded.is_none() {
            facts.catalog = settings.catalog_namespace.as_deref().map(Into::into);
        }
        facts
    }

    /// Whether a PolicyPlugin decides about a fact, because its name begins with that of the plugin.
    fn has_facts(&self, fact: &str) -> bool {
        let of = |plugin: &PolicyPlugin| {
            fact.split_once('/')
                .is_some_and(|(name, _)| name == plugin.name)
        };
        self.plugins.iter().any(of)
    }

    /// Returns the settings of a plugin, based on its defaults.
    pub(crate) fn settings(&self, name: &str, defaults: Settings) -> Settings {
        let defaults = Settings {
            obeyed: self.rendering.settings.obeyed(),
            ..defaults
        };
        match self.plugins.iter().find(|plugin| plugin.name == name) {
            Some(plugin) => plugin.spec.settings(defaults),
            None => defaults,
        }
    }

    /// Returns an error for each PolicyPlugin whose name another one has.
    fn duplicates(&self) -> impl Iterator<Item = Located> {
        let mut first = BTreeMap::new();
        self.plugins.iter().filter_map(move |plugin| {
            let location = plugin.location.clone().at(plugin.name_field.clone());
            let Some(other) = first.get(&plugin.name) else {
                first.insert(&plugin.name, location);
                return None;
            };
            Some(Located {
                message: format!(
                    "`{}` also has a PolicyPlugin in {other}; merge the two",
                    plugin.name
                ),
                location,
            })
        })
    }

    /// Returns an error for each fact that is set twice, and one if all facts together are too large.
    fn fact_errors(&self) -> impl Iterator<Item = Located> {
        let shared = &self.rendering.settings.facts;
        let of_plugins = || {
            self.plugins.iter().flat_map(|plugin| {
                let facts = plugin.spec.facts.iter();
                facts.map(move |(name, text)| (plugin, name, text))
            })
        };
        let twice = of_plugins().filter(|(_, name, _)| shared.contains_key(*name));
        let twice = twice.map(|(plugin, name, _)| {
            let field = plugin.spec_field.field("facts").field(name);
            Located {
                location: plugin.location.clone().at(field),
                message: format!(
                    "is also set in {}; remove one of the two",
                    self.rendering.at("facts")
                ),
            }
        });
        let all = shared.iter();
        let all = all.chain(of_plugins().map(|(_, name, text)| (name, text)));
        let bytes: usize = all.map(|(name, text)| name.len() + text.len()).sum();
        let last = of_plugins().last();
        let too_large = last.filter(|_| bytes > facts::MAX_BYTES);
        let too_large = too_large.map(|(plugin, ..)| Located {
            location: plugin.at("facts"),
            message: format!(
                "the facts of all plugins and of the settings for all TrainJobs have {bytes} bytes of names and values, but at most {} are allowed; remove some",
                facts::MAX_BYTES
            ),
        });
        twice.chain(too_large)
    }
}

/// Returns the field of an item of a list of `spec`.
fn item_field(plugin: &PolicyPlugin, list: &str, at: usize) -> FieldPath {
    plugin.spec_field.field(list).index(at)
}

/// Returns an error of a field of a PolicyPlugin.
fn refused(plugin: &PolicyPlugin, field: &str, message: String) -> ErrorList {
    ErrorList::from_iter([Located {
        location: plugin.at(field),
        message,
    }])
}
