//! What is wrong with the operator's settings for the plugins that are loaded.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use thiserror::Error;
use trainyard_api::{FieldPath, Located, Location};
use trainyard_config::{ConfigProblem, MAX_ERRORS, policy_plugin::PolicyPlugin};
use trainyard_model::{
    manifest::ActiveWhen,
    plugin_info::{PluginId, PluginInfo},
    text::{clean, nearest},
};

use super::{Policy, item_field};
use crate::finding::{Finding, Parts};

/// A warning about a plugin that is loaded: something of it has no effect, or not the one that was meant.
#[derive(Clone, Debug, Error)]
pub(crate) enum Warning {
    /// Of its PolicyPlugin.
    #[error("{located}")]
    Settings { plugin: String, located: Located },
    /// Of its manifest.
    #[error("plugin {plugin}: {message}")]
    Manifest { plugin: PluginId, message: String },
}

impl Warning {
    /// Returns the name of the plugin, and the warning for readers who know its PolicyPlugin.
    pub(crate) fn in_object(&self) -> (String, String) {
        match self {
            Self::Settings { plugin, located } => (plugin.clone(), located.in_object()),
            Self::Manifest { plugin, message } => (plugin.name.to_string(), message.clone()),
        }
    }
}

impl Finding for Warning {
    fn parts(&self) -> Parts {
        match self {
            Self::Settings { located, .. } => located.parts(),
            Self::Manifest { .. } => Parts::of(self),
        }
    }
}

impl Policy {
    /// Returns an error for each exemption of a plugin that is not always active. `plugins` are the known plugins.
    pub(crate) fn impossible_exemptions(
        &self,
        plugins: &BTreeMap<&str, &ActiveWhen>,
    ) -> Vec<Located> {
        let errors = self.plugins.iter().flat_map(|plugin| {
            let when = plugins.get(plugin.name.as_str());
            let when = when.filter(|when| ***when != ActiveWhen::Always);
            let keys = [
                ("disabledFor", !plugin.spec.disabled_for.is_empty()),
                ("enabledFor", !plugin.spec.enabled_for.is_empty()),
                ("trainJobsMayDisable", plugin.spec.train_jobs_may_disable),
            ];
            let set = keys.into_iter().filter(|(_, is_set)| *is_set);
            set.filter_map(move |(key, _)| {
                Some(Located {
                    location: plugin.at(key),
                    message: not_always(&plugin.name, when?),
                })
            })
        });
        errors.take(MAX_ERRORS).collect()
    }

    /// Returns an error for each plugin that is named and not known, because a mistyped name would leave the intended plugin without its
    /// settings. Only the first [`MAX_ERRORS`] are listed.
    pub(crate) fn unknown_plugins(&self, known: &BTreeSet<&str>) -> Vec<Located> {
        let names = self.plugins.iter().flat_map(names);
        // What a source decides has its name, or another error says why not.
        let is_known = |name: &str| known.contains(name) || self.source_of(name).is_some();
        let mut names = names.filter(|(_, _, name)| !is_known(name));
        let errors = names.by_ref().take(MAX_ERRORS);
        let mut errors: Vec<_> = errors
            .map(|(plugin, field, name)| Located {
                location: plugin.location.clone().at(field),
                message: unknown_plugin(name, known),
            })
            .collect();
        if let Some((plugin, ..)) = names.next() {
            let omitted = names.count() + 1;
            errors.push(Located {
                location: Location::file(plugin.location.file.as_str()),
                message: ConfigProblem::Omitted { errors: omitted }.to_string(),
            });
        }
        errors
    }

    /// Returns a warning if there is a PolicyPlugin for a plugin whose feature gate is off.
    pub(crate) fn without_its_gate(&self, name: &str, gate: &str) -> Option<Warning> {
        let mut plugins = self.plugins.iter();
        let plugin = plugins.find(|it| it.name == name && !it.spec.disabled)?;
        Some(Warning::Settings {
            plugin: name.to_owned(),
            located: Located {
                location: plugin.location.clone(),
                message: format!(
                    "has no effect, because the feature gate {gate} is off; turn it on, or delete the PolicyPlugin"
                ),
            },
        })
    }

    /// Returns a warning for each grant that covers no claim of its plugin, and so has no effect; at most [`MAX_ERRORS`] of a plugin.
    pub(crate) fn unused_grants<'p>(
        &self,
        loaded: impl IntoIterator<Item = &'p Arc<PluginInfo>>,
    ) -> Vec<Warning> {
        let mut unused = Vec::new();
        for loaded in loaded {
            let mut plugins = self.plugins.iter();
            let Some(plugin) = plugins.find(|plugin| *plugin.name == *loaded.id.name) else {
                continue;
            };
            let grants = plugin.spec.grants.iter().enumerate();
            let grants = grants.filter(|(_, grant)| !loaded.manifest.uses(grant));
            let grants = grants.take(MAX_ERRORS);
            unused.extend(grants.map(|(of, grant)| Warning::Settings {
                plugin: plugin.name.clone(),
                located: Located {
                    location: plugin.location.clone().at(item_field(plugin, "grants", of)),
                    message: format!(
                        "`{}` covers no claim of plugin {}, so the grant has no effect; remove it, correct its path, or use a version of the plugin that claims it",
                        clean(&grant.to_string()),
                        loaded.id
                    ),
                },
            }));
        }
        unused
    }
}

/// Returns the names of plugins in a PolicyPlugin, with their fields.
fn names(plugin: &PolicyPlugin) -> impl Iterator<Item = (&PolicyPlugin, FieldPath, &str)> {
    let name = (plugin, plugin.name_field.clone(), plugin.name.as_str());
    let lists = [
        ("after", &plugin.spec.after),
        ("before", &plugin.spec.before),
        ("excludes", &plugin.spec.excludes),
    ];
    let lists = lists.into_iter().flat_map(move |(list, names)| {
        let names = names.iter().enumerate();
        names.map(move |(of, name)| (plugin, item_field(plugin, list, of), name.as_str()))
    });
    std::iter::once(name).chain(lists)
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
                "the loaded plugins are {}; load the plugin, or remove its name here",
                loaded.join(", ")
            )
        }
    };
    format!("no loaded plugin has the name `{name}`; {advice}")
}
