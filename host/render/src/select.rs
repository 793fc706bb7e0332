//! Selects the active plugins of a TrainJob, with their configurations.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value};
use trainyard_api::{
    FieldPath, Runtime, TrainJob, names,
    runtime::{KeyedPolicy, Member},
};
use trainyard_model::{
    facts::Facts,
    manifest::{ActiveWhen, Union},
    plan::{Generation, Plan, PlannedPlugin},
    plugin_info::PluginInfo,
    record::{EntryScope, Field, PodSet, Record},
    text::nearest,
};

use crate::{
    json::get_at,
    problem::{InputObject, Problem, Warning},
    skipped::{Declared, SkipReason, SkippedPlugin, skip_reason},
};

/// An active plugin with its complete configuration.
#[derive(Clone, Debug)]
pub struct Active {
    pub plugin: Arc<PluginInfo>,
    /// Its configuration in the runtime, with defaults.
    pub config: Arc<Value>,
}

/// Returns the plan of plugins in this order with the operator's facts, for a snapshot.
#[must_use]
pub fn plan_of(active: &[Active], facts: &Facts) -> Plan {
    let planned = active.iter();
    let planned = planned.map(|active| PlannedPlugin::of(&active.plugin, &active.config));
    Plan::new(planned.collect(), facts)
}

/// Returns the active plugins by name.
///
/// # Errors
/// Each plugin that is needed but not loaded, followed by all problems of configurations.
pub(crate) fn select(
    generation: &Generation,
    skipped: &[SkippedPlugin],
    job: &TrainJob,
    runtime: &Runtime,
    record: &Record,
) -> Result<BTreeMap<Arc<str>, Active>, Vec<Problem>> {
    let mut selection = Selection {
        generation,
        skipped,
        active: BTreeMap::new(),
        problems: Vec::new(),
    };
    let framework = runtime.ml_policy.as_ref();
    let framework = framework.and_then(|policy| policy.member.as_ref());
    for (union, member) in [
        (Union::MlPolicy, framework),
        (Union::PodGroupPolicy, runtime.pod_group_policy.as_ref()),
    ] {
        if let Some(member) = member {
            selection.activate_member(union, member);
        }
    }
    for used in &runtime.plugins {
        selection.activate_named(
            &ActiveWhen::Plugins,
            &used.name,
            &used.config,
            &used.name_path,
            &used.config_path,
        );
    }
    selection.activate_by_condition(job, runtime, record);
    if selection.problems.is_empty() {
        Ok(selection.active)
    } else {
        let is_loaded = |problem: &Problem| {
            !matches!(
                problem,
                Problem::NotLoaded { .. } | Problem::PluginSkipped(_)
            )
        };
        selection.problems.sort_by_key(is_loaded);
        Err(selection.problems)
    }
}

/// Returns the field that requests resource claims which a plugin must add to the pods, if any.
fn requested_claims(job: &TrainJob, runtime: &Runtime) -> Option<(InputObject, FieldPath)> {
    let field = ["spec", "trainer", "resourceClaimsPerNode"];
    if is_list(&job.spec, &["trainer", "resourceClaimsPerNode"]) {
        return Some((InputObject::TrainJob, FieldPath::of(field)));
    }
    let annotation = names::RESOURCE_CLAIMS_ANNOTATION;
    let metadata = [
        (InputObject::TrainJob, &job.metadata),
        (InputObject::Runtime, &runtime.metadata),
    ];
    let mut requesting = metadata.into_iter();
    let (about, _) = requesting.find(|(_, of)| of.annotations.contains_key(annotation))?;
    Some((
        about,
        FieldPath::of(["metadata", "annotations"]).key(annotation),
    ))
}

/// Whether the TrainJob makes the trainer's container use resource claims.
fn job_uses_claims(job: &TrainJob) -> bool {
    is_list(&job.spec, &["trainer", "resourcesPerNode", "claims"])
}

fn is_list(value: &Value, keys: &[&str]) -> bool {
    let list = get_at(value, keys).and_then(Value::as_array);
    list.is_some_and(|list| !list.is_empty())
}

/// Whether a pod has resource claims or a container uses one.
fn has_claims(record: &Record) -> bool {
    let in_pods = |set: &PodSet| !set.fields.all(Field::ResourceClaims).is_empty();
    let in_container = |id| {
        let fields = record.fields(EntryScope::Container(id));
        fields.is_some_and(|fields| !fields.all(Field::ResourceClaimUses).is_empty())
    };
    let mut sets = record.pod_sets.iter().zip(0u32..);
    sets.any(|(set, position)| {
        let lists = [Field::Containers, Field::InitContainers].into_iter();
        in_pods(set)
            || lists
                .flat_map(|list| record.containers(position, list))
                .any(in_container)
    })
}

/// Returns a warning if pods have resource claims that no plugin handles, because devices that are not counted give no processes.
pub(crate) fn unhandled_claims(record: &Record, active: &[Active]) -> Option<Warning> {
    let mut active = active.iter();
    let is_handled =
        active.any(|one| one.plugin.manifest.active_when == ActiveWhen::ResourceClaims);
    (!is_handled && has_claims(record)).then(|| Warning {
        about: InputObject::Runtime,
        field: None,
        message: "the pods have resource claims, but no loaded plugin handles them; the claims are left unchanged, and their devices are not counted".to_owned(),
        plugin: None,
    })
}

struct Selection<'a> {
    generation: &'a Generation,
    skipped: &'a [SkippedPlugin],
    active: BTreeMap<Arc<str>, Active>,
    problems: Vec<Problem>,
}

impl Selection<'_> {
    fn activate_member(&mut self, union: Union, member: &Member) {
        match member {
            Member::Plugin(used) => {
                self.activate_named(
                    &ActiveWhen::Named(union),
                    &used.name,
                    &used.config,
                    &used.name_path,
                    &used.config_path,
                );
            }
            Member::Key(policy) => self.activate_keyed(union, policy),
        }
    }

    /// Activates the plugin of a policy in a union of the runtime's spec.
    fn activate_keyed(&mut self, union: Union, policy: &KeyedPolicy) {
        let when = ActiveWhen::Key(union, policy.key.clone());
        let path = FieldPath::of(["spec", union.name(), &policy.key]);
        let mut plugins = self.generation.plugins();
        let found = plugins.find(|plugin| plugin.manifest.active_when == when);
        match found.cloned() {
            Some(plugin) => self.activate(&plugin, &policy.config, &path),
            None => {
                let is_it = |declared: &Declared| declared.active_when == when;
                let message = "no loaded plugin handles this policy";
                self.not_loaded(InputObject::Runtime, path, message, None, is_it, |_| true);
            }
        }
    }

    /// Activates the plugins that are active without being named: always, or because of resource claims.
    fn activate_by_condition(&mut self, job: &TrainJob, runtime: &Runtime, record: &Record) {
        let requested = requested_claims(job, runtime);
        let has_claims = requested.is_some() || job_uses_claims(job) || has_claims(record);
        let is_on = |when: &ActiveWhen| match when {
            ActiveWhen::Always => true,
            ActiveWhen::ResourceClaims => has_claims,
            _ => false,
        };
        for plugin in self.generation.plugins() {
            if is_on(&plugin.manifest.active_when) {
                self.activate(plugin, &Value::Object(Map::new()), &FieldPath::root());
            }
        }
        let handles_claims =
            |plugin: &Active| plugin.plugin.manifest.active_when == ActiveWhen::ResourceClaims;
        if let (Some((about, path)), false) = (requested, self.active.values().any(handles_claims))
        {
            let message = "no loaded plugin handles resource claims";
            let when = |declared: &Declared| declared.active_when == ActiveWhen::ResourceClaims;
            let fits =
                |plugin: &PluginInfo| plugin.manifest.active_when == ActiveWhen::ResourceClaims;
            self.not_loaded(
                about,
                path,
                message,
                Some(&ActiveWhen::ResourceClaims),
                when,
                fits,
            );
        }
        for one in self.skipped {
            // A loaded plugin with the same name replaces it. A plugin that the operator disabled is only missing if it is named.
            let missing = one.declared.as_ref().filter(|declared| {
                !one.is_disabled
                    && is_on(&declared.active_when)
                    && self.generation.plugin(&declared.name).is_none()
            });
            if let Some(Declared { name, active_when }) = missing {
                let message =
                    format!("the plugin `{name}`, which `{active_when}` activates, was skipped");
                let problem = Problem::PluginSkipped(format!("{message}: {}", one.why));
                self.problems.push(problem);
            }
        }
    }

    /// Activates the plugin of this name, if it may be activated by `when`.
    fn activate_named(
        &mut self,
        when: &ActiveWhen,
        name: &str,
        config: &Value,
        path: &FieldPath,
        config_path: &FieldPath,
    ) {
        match self.generation.plugin(name).cloned() {
            Some(plugin) if plugin.manifest.active_when == *when => {
                self.activate(&plugin, config, config_path)
            }
            Some(plugin) => {
                let message = format!(
                    "the plugin `{name}` is activated by `{}`, not here",
                    plugin.manifest.active_when
                );
                self.problems.push(Problem::runtime(path.clone(), message));
            }
            None => {
                let unknown = format!("no loaded plugin has the name `{name}`");
                let message = match self.similar(when, name) {
                    Some(near) => format!("{unknown}; did you mean {near}?"),
                    None => unknown,
                };
                let is_it = |declared: &Declared| declared.name == name;
                self.not_loaded(
                    InputObject::Runtime,
                    path.clone(),
                    &message,
                    Some(when),
                    is_it,
                    |plugin| plugin.manifest.active_when == *when,
                );
            }
        }
    }

    /// Describes the loaded plugin whose name is most similar. Plugins that can be activated by `when` are preferred.
    fn similar(&self, when: &ActiveWhen, name: &str) -> Option<String> {
        let nearest = |is_activated_here: bool| {
            let plugins = self.generation.plugins();
            let plugins = plugins
                .filter(|plugin| (plugin.manifest.active_when == *when) == is_activated_here);
            let near = nearest(name, plugins.map(|plugin| &*plugin.id.name))?;
            self.generation.plugin(near)
        };
        let here = nearest(true).map(|plugin| format!("`{}`", plugin.id.name));
        here.or_else(|| {
            let plugin = nearest(false)?;
            let (name, active_when) = (&plugin.id.name, &plugin.manifest.active_when);
            Some(format!("`{name}`, which is activated by `{active_when}`"))
        })
    }

    fn not_loaded(
        &mut self,
        about: InputObject,
        path: FieldPath,
        message: &str,
        activation: Option<&ActiveWhen>,
        is_it: impl Fn(&Declared) -> bool,
        fits: impl Fn(&PluginInfo) -> bool,
    ) {
        let reason = skip_reason(self.skipped, is_it);
        let is_unknown = matches!(reason, SkipReason::Unknown);
        // The reason comes first, because an Event may have no room for more.
        let message = match reason {
            SkipReason::Known(reasons) => format!("{message}: {reasons}"),
            SkipReason::Possible(reasons) => {
                let loaded = self.loaded(activation, fits);
                format!(
                    "{message}; {loaded}; a plugin that failed to load may be the one requested: {reasons}"
                )
            }
            SkipReason::Unknown => format!("{message}; {}", self.loaded(activation, fits)),
        };
        self.problems.push(Problem::NotLoaded {
            about,
            path,
            message,
            is_unknown,
        });
    }

    /// Returns the loaded plugins that could be used, in words.
    fn loaded(
        &self,
        activation: Option<&ActiveWhen>,
        fits: impl Fn(&PluginInfo) -> bool,
    ) -> String {
        let names: Vec<String> = self
            .generation
            .plugins()
            .filter(|plugin| fits(plugin))
            .map(|plugin| format!("{} ({})", plugin.id.name, plugin.manifest.active_when))
            .collect();
        if names.is_empty() {
            match activation {
                Some(when) => format!("no loaded plugin is activated by `{when}`"),
                None => "no plugins are loaded".to_owned(),
            }
        } else {
            format!("loaded: {}", names.join(", "))
        }
    }

    fn activate(&mut self, plugin: &Arc<PluginInfo>, config: &Value, path: &FieldPath) {
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
                Problem::runtime(path.join(&error.field), message)
            })),
        }
    }
}
