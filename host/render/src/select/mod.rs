//! Selects the active plugins of a TrainJob, with their configurations.

mod claims;
mod disabled;
mod parameters;
mod refusals;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use trainyard_api::{
    FieldPath, Metadata, PluginUse, Runtime, TrainJob, names,
    runtime::{KeyedPolicy, Member},
};
use trainyard_model::{
    facts::Facts,
    manifest::{ActiveWhen, Union},
    plan::{Generation, Plan, PlannedPlugin},
    plugin_info::{Exemptions, PluginInfo},
    record::Record,
    text::{clean_to, nearest},
};

pub(crate) use self::claims::unhandled as unhandled_claims;
pub use self::disabled::{DisabledBy, DisabledPlugin};
use self::{disabled::Subject, parameters::Configured, refusals::Refusals};
use crate::{
    problem::{InputObject, Problem},
    skipped::{Declared, SkipReason, SkippedPlugin, skip_reason},
};

/// The most characters of a refused name in a message or a path.
const MAX_NAME: usize = 64;

/// An active plugin with its complete configuration.
#[derive(Clone, Debug)]
pub struct Active {
    pub plugin: Arc<PluginInfo>,
    /// Its configuration in the runtime with the TrainJob's parameters, and with defaults.
    pub config: Arc<Value>,
    /// The parameters that the TrainJob sets, as paths in the configuration.
    pub parameters: Vec<FieldPath>,
}

/// Returns the plan of plugins in this order with the operator's facts, for a snapshot.
#[must_use]
pub fn plan_of(active: &[Active], facts: &Facts) -> Plan {
    let planned = active.iter();
    let planned = planned.map(|active| PlannedPlugin::of(&active.plugin, &active.config));
    Plan::new(planned.collect(), facts)
}

/// The plugins of a TrainJob with their order.
#[derive(Clone, Debug, Default)]
pub struct PlannedPlugins {
    /// The active plugins, in the order in which they run.
    pub active: Vec<Active>,
    /// The plugins that would be active if they were not disabled for it, by name.
    pub disabled: Vec<DisabledPlugin>,
}

/// The plugins of a TrainJob.
pub(crate) struct Selected {
    /// The active plugins, by name.
    pub(crate) active: BTreeMap<Arc<str>, Active>,
    /// The plugins that would be active if they were not disabled for it.
    pub(crate) disabled: Vec<DisabledPlugin>,
}

/// Selects the plugins of a TrainJob in a namespace.
///
/// # Errors
/// Each plugin that is needed but not loaded, followed by all problems of configurations and of the TrainJob's overrides for plugins.
pub(crate) fn select(
    generation: &Generation,
    skipped: &[SkippedPlugin],
    job: &TrainJob,
    runtime: &Runtime,
    namespace: &str,
    record: &Record,
) -> Result<Selected, Vec<Problem>> {
    let mut selection = Selection {
        generation,
        skipped,
        job,
        runtime,
        subject: Subject::new(job, runtime, namespace),
        active: BTreeMap::new(),
        disabled: Vec::new(),
        problems: Vec::new(),
        refusals: Refusals::default(),
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
        selection.activate_named(&ActiveWhen::Plugins, used);
    }
    selection.activate_by_condition(record);
    selection.check_disabled();
    parameters::refuse_others(&job.plugins.parameters, runtime, &mut selection.refusals);
    let mut problems = selection.problems;
    problems.extend(selection.refusals.into_problems());
    if problems.is_empty() {
        Ok(Selected {
            active: selection.active,
            disabled: selection.disabled,
        })
    } else {
        let is_loaded = |problem: &Problem| {
            !matches!(
                problem,
                Problem::NotLoaded { .. } | Problem::PluginSkipped(_)
            )
        };
        problems.sort_by_key(is_loaded);
        Err(problems)
    }
}

struct Selection<'a> {
    generation: &'a Generation,
    skipped: &'a [SkippedPlugin],
    job: &'a TrainJob,
    runtime: &'a Runtime,
    subject: Subject<'a>,
    active: BTreeMap<Arc<str>, Active>,
    disabled: Vec<DisabledPlugin>,
    problems: Vec<Problem>,
    refusals: Refusals,
}

impl Selection<'_> {
    fn activate_member(&mut self, union: Union, member: &Member) {
        match member {
            Member::Plugin(used) => self.activate_named(&ActiveWhen::Named(union), used),
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
            Some(plugin) => {
                let config = Configured::of_key(&policy.config, path);
                self.activate(&plugin, config);
            }
            None => {
                let is_it = |declared: &Declared| declared.active_when == when;
                let message = "no loaded plugin handles this policy";
                let missing =
                    self.not_loaded(InputObject::Runtime, path, message, None, is_it, |_| true);
                self.problems.push(missing);
            }
        }
    }

    /// Activates the plugins that are active without being named: always, unless they are disabled for the TrainJob, or because of resource
    /// claims.
    fn activate_by_condition(&mut self, record: &Record) {
        let requested = claims::requested(self.job, self.runtime);
        let has_claims =
            requested.is_some() || claims::job_uses(self.job) || claims::has_any(record);
        let is_on = |when: &ActiveWhen| match when {
            ActiveWhen::Always => true,
            ActiveWhen::ResourceClaims => has_claims,
            _ => false,
        };
        for plugin in self.generation.plugins() {
            let (name, when) = (&plugin.id.name, &plugin.manifest.active_when);
            let exemptions = &plugin.settings.exemptions;
            if let Some(by) = self.subject.disabled_by(name, when, exemptions) {
                let plugin = plugin.clone();
                self.disabled.push(DisabledPlugin { plugin, by });
            } else if is_on(when) {
                self.activate(plugin, Configured::default());
            }
        }
        let handles_claims =
            |plugin: &Active| plugin.plugin.manifest.active_when == ActiveWhen::ResourceClaims;
        if let (Some((about, path)), false) = (requested, self.active.values().any(handles_claims))
        {
            let message = "no loaded plugin handles resource claims";
            let claims = ActiveWhen::ResourceClaims;
            let is_it = |declared: &Declared| declared.active_when == claims;
            let fits = |plugin: &PluginInfo| plugin.manifest.active_when == claims;
            let missing = self.not_loaded(about, path, message, Some(&claims), is_it, fits);
            self.problems.push(missing);
        }
        for one in self.skipped {
            // A loaded plugin with the same name replaces it. A plugin that the operator disabled is only missing if it is named.
            let missing = one.declared.as_ref().filter(|declared| {
                let Declared {
                    name,
                    active_when,
                    exemptions,
                } = declared;
                !one.is_disabled
                    && is_on(active_when)
                    && self.generation.plugin(name).is_none()
                    && self
                        .subject
                        .disabled_by(name, active_when, exemptions)
                        .is_none()
            });
            if let Some(Declared {
                name, active_when, ..
            }) = missing
            {
                let message =
                    format!("the plugin `{name}`, which `{active_when}` activates, was skipped");
                let problem = Problem::PluginSkipped(format!("{message}: {}", one.why));
                self.problems.push(problem);
            }
        }
    }

    /// Refuses the names of plugins that the TrainJob may not disable.
    fn check_disabled(&mut self) {
        for name in &self.job.plugins.disabled {
            if let Some(problem) = self.problem_of_disabling(name) {
                self.refusals.add(|| problem);
            }
        }
    }

    /// Returns why the TrainJob may not name a plugin as disabled. It may if the operator disables the plugin for it anyway.
    fn problem_of_disabling(&self, name: &str) -> Option<Problem> {
        let path = Metadata::path_of_annotation(names::DISABLED_PLUGINS_ANNOTATION);
        let always = &ActiveWhen::Always;
        let mut disabled = self.skipped.iter().filter(|one| one.is_disabled);
        let is_disabled = disabled.any(|one| {
            let declared = one.declared.as_ref();
            declared.is_some_and(|it| it.name == name && it.active_when == *always)
        });
        let Some((when, exemptions)) = self.exemptible(name) else {
            if is_disabled {
                return None;
            }
            let name = clean_to(name, MAX_NAME);
            let near = self.nearest(&name, |when| when == always);
            let near = near.map(|plugin| format!("did you mean `{}`?", plugin.id.name));
            let advice = near.as_deref().unwrap_or("remove it");
            let message = format!("no loaded plugin has the name `{name}`; {advice}");
            let is_it = |declared: &Declared| declared.name == name;
            let fits = |plugin: &PluginInfo| plugin.manifest.active_when == *always;
            let about = InputObject::TrainJob;
            return Some(self.not_loaded(about, path, &message, Some(always), is_it, fits));
        };
        if self.subject.disabled_by(name, when, exemptions).is_some() {
            return None;
        }
        let message = match when {
            ActiveWhen::Always => format!(
                "the operator does not allow TrainJobs to disable the plugin `{name}`; remove it, or ask the operator to set `trainJobsMayDisable` for it in its PolicyPlugin"
            ),
            when => format!(
                "the plugin `{name}` cannot be disabled, because it is not always active, but activated by `{when}`; remove it, or use a runtime that does not activate the plugin"
            ),
        };
        Some(Problem::job(path, message))
    }

    /// Returns when the plugin of a name is active, and its exemptions. It is loaded, or was skipped for another reason than that the operator
    /// disabled it.
    fn exemptible(&self, name: &str) -> Option<(&ActiveWhen, &Exemptions)> {
        let loaded = self.generation.plugin(name);
        let loaded =
            loaded.map(|plugin| (&plugin.manifest.active_when, &plugin.settings.exemptions));
        loaded.or_else(|| {
            let skipped = self.skipped.iter().filter(|one| !one.is_disabled);
            let mut declared = skipped.filter_map(|one| one.declared.as_ref());
            let found = declared.find(|declared| declared.name == name)?;
            Some((&found.active_when, &found.exemptions))
        })
    }

    /// Activates a plugin that the runtime names, if it may be activated by `when`.
    fn activate_named(&mut self, when: &ActiveWhen, used: &PluginUse) {
        let name = &*used.name;
        match self.generation.plugin(name).cloned() {
            Some(plugin) if plugin.manifest.active_when == *when => {
                let values = self.job.plugins.parameters.get(name);
                let values = values.and_then(Value::as_object);
                let config = Configured::new(used, values, self.runtime, &mut self.refusals);
                self.activate(&plugin, config);
            }
            Some(plugin) => {
                let message = format!(
                    "the plugin `{name}` is activated by `{}`, not here",
                    plugin.manifest.active_when
                );
                let problem = Problem::runtime(used.name_path.clone(), message);
                self.problems.push(problem);
            }
            None => {
                let (about, path) = (InputObject::Runtime, used.name_path.clone());
                let unknown = format!("no loaded plugin has the name `{name}`");
                let message = match self.similar(when, name) {
                    Some(near) => format!("{unknown}; did you mean {near}?"),
                    None => unknown,
                };
                let is_it = |declared: &Declared| declared.name == name;
                let fits = |plugin: &PluginInfo| plugin.manifest.active_when == *when;
                let mut missing = self.not_loaded(about, path, &message, Some(when), is_it, fits);
                if let Problem::NotLoaded {
                    message,
                    is_unknown: true,
                    ..
                } = &mut missing
                {
                    message.push_str("; declare it with a PolicyPlugin, or correct the name");
                }
                self.problems.push(missing);
            }
        }
    }

    /// Describes the loaded plugin whose name is most similar. Plugins that can be activated by `when` are preferred.
    fn similar(&self, when: &ActiveWhen, name: &str) -> Option<String> {
        let here = self.nearest(name, |other| other == when);
        let here = here.map(|plugin| format!("`{}`", plugin.id.name));
        here.or_else(|| {
            let plugin = self.nearest(name, |other| other != when)?;
            let (name, active_when) = (&plugin.id.name, &plugin.manifest.active_when);
            Some(format!("`{name}`, which is activated by `{active_when}`"))
        })
    }

    /// Returns the loaded plugin whose name is most similar, of those that are activated by certain conditions.
    fn nearest(&self, name: &str, fits: impl Fn(&ActiveWhen) -> bool) -> Option<&Arc<PluginInfo>> {
        let plugins = self.generation.plugins();
        let plugins = plugins.filter(|plugin| fits(&plugin.manifest.active_when));
        let near = nearest(name, plugins.map(|plugin| &*plugin.id.name))?;
        self.generation.plugin(near)
    }

    /// Returns the problem of a plugin that is needed and not loaded.
    fn not_loaded(
        &self,
        about: InputObject,
        path: FieldPath,
        message: &str,
        activation: Option<&ActiveWhen>,
        is_it: impl Fn(&Declared) -> bool,
        fits: impl Fn(&PluginInfo) -> bool,
    ) -> Problem {
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
        Problem::NotLoaded {
            about,
            path,
            message,
            is_unknown,
        }
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

    fn activate(&mut self, plugin: &Arc<PluginInfo>, mut configured: Configured<'_>) {
        match plugin.config(configured.take()) {
            Ok(config) => {
                let active = Active {
                    plugin: plugin.clone(),
                    config,
                    parameters: configured.set,
                };
                self.active.insert(plugin.id.name.clone(), active);
            }
            Err(errors) => {
                let problems = errors.iter();
                let problems = problems.map(|error| configured.problem(plugin, error));
                self.problems.extend(problems);
            }
        }
    }
}
