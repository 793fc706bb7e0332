//! select: which plugins are active for a TrainJob, by what its runtime says, and with which configuration.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value};
use trainyard_api::{FieldPath, Runtime, runtime::Member};
use trainyard_model::{
    manifest::ActiveWhen,
    plan::Generation,
    plugin::Plugin,
    record::{Field, Record},
};

use crate::problem::Problem;

/// A plugin that is active, with its complete configuration.
#[derive(Clone, Debug)]
pub struct Active {
    /// The plugin.
    pub plugin: Arc<Plugin>,
    /// Its block of the runtime, with defaults.
    pub config: Arc<Value>,
}

/// Finds the active plugins, by name.
///
/// # Errors
/// Every name that no loaded plugin has, and everything that is wrong with a configuration.
pub(crate) fn select(
    generation: &Generation,
    runtime: &Runtime,
    record: &Record,
) -> Result<BTreeMap<Arc<str>, Active>, Vec<Problem>> {
    let mut selection = Selection {
        generation,
        active: BTreeMap::new(),
        problems: Vec::new(),
    };
    if let Some(member) = runtime
        .ml_policy
        .as_ref()
        .and_then(|policy| policy.member.as_ref())
    {
        selection.ml_policy(member);
    }
    for used in &runtime.plugins {
        selection.named(
            &ActiveWhen::Plugins,
            &used.name,
            &used.config,
            &used.name_path,
            &used.config_path,
        );
    }
    selection.by_condition(record);
    if selection.problems.is_empty() {
        Ok(selection.active)
    } else {
        Err(selection.problems)
    }
}

struct Selection<'a> {
    generation: &'a Generation,
    active: BTreeMap<Arc<str>, Active>,
    problems: Vec<Problem>,
}

impl Selection<'_> {
    fn ml_policy(&mut self, member: &Member) {
        let path = FieldPath::of(["spec", "mlPolicy", member.key()]);
        match member {
            Member::Plugin(used) => {
                self.named(
                    &ActiveWhen::MlPolicyPlugin,
                    &used.name,
                    &used.config,
                    &used.name_path,
                    &used.config_path,
                );
            }
            Member::Key { key, config } => {
                let wanted = ActiveWhen::MlPolicy((*key).to_owned());
                let found = self
                    .generation
                    .plugins()
                    .find(|p| p.manifest.active_when == wanted)
                    .cloned();
                match found {
                    Some(plugin) => self.switch_on(&plugin, config, &path),
                    None => self.not_loaded(path, "no loaded plugin handles this policy", |_| true),
                }
            }
        }
    }

    /// Switches on what no name switches on: by what the pods have, and always.
    fn by_condition(&mut self, record: &Record) {
        let has_claims = record
            .pod_sets
            .iter()
            .any(|set| !set.fields.all(Field::ResourceClaims).is_empty());
        for plugin in self.generation.plugins() {
            let on = match plugin.manifest.active_when {
                ActiveWhen::Always => true,
                ActiveWhen::ResourceClaims => has_claims,
                _ => false,
            };
            if on {
                self.switch_on(plugin, &Value::Object(Map::new()), &FieldPath::root());
            }
        }
    }

    /// Switches on the plugin of that name, if it is one that this place switches on.
    fn named(
        &mut self,
        when: &ActiveWhen,
        name: &str,
        config: &Value,
        path: &FieldPath,
        config_path: &FieldPath,
    ) {
        match self.generation.plugin(name).cloned() {
            Some(plugin) if plugin.manifest.active_when == *when => {
                self.switch_on(&plugin, config, config_path)
            }
            Some(plugin) => {
                let message = format!(
                    "the plugin `{name}` is switched on by `{}`, not here",
                    plugin.manifest.active_when
                );
                self.problems.push(Problem::runtime(path.clone(), message));
            }
            None => {
                let message = format!("no loaded plugin has the name `{name}`");
                self.not_loaded(path.clone(), &message, |plugin| {
                    plugin.manifest.active_when == *when
                });
            }
        }
    }

    fn not_loaded(&mut self, path: FieldPath, message: &str, fits: impl Fn(&Plugin) -> bool) {
        let names: Vec<String> = self
            .generation
            .plugins()
            .filter(|plugin| fits(plugin))
            .map(|plugin| format!("{} ({})", plugin.id.name, plugin.manifest.active_when))
            .collect();
        let loaded = if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        };
        self.problems.push(Problem::NotLoaded {
            path,
            message: format!("{message}; loaded: {loaded}"),
        });
    }

    fn switch_on(&mut self, plugin: &Arc<Plugin>, config: &Value, path: &FieldPath) {
        match plugin.config(config.clone()) {
            Ok(config) => {
                self.active.insert(
                    plugin.id.name.clone(),
                    Active {
                        plugin: plugin.clone(),
                        config,
                    },
                );
            }
            Err(errors) => self.problems.extend(errors.into_iter().map(|error| {
                let message = format!("{} (plugin {})", error.problem, plugin.id);
                Problem::runtime(path.below_pointer(&error.pointer), message)
            })),
        }
    }
}
