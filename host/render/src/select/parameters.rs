//! The values that a TrainJob sets in the configuration of plugins, as far as the runtime's author lists them as parameters.

use serde_json::{Map, Value};
use trainyard_api::{FieldPath, Metadata, PluginUse, Runtime, names, path::Segment};
use trainyard_model::{
    plugin_info::PluginInfo,
    schema::ConfigError,
    text::{clean_to, listed},
};

use super::{MAX_NAME, refusals::Refusals};
use crate::problem::Problem;

/// The most parameters that an error lists.
const MOST_LISTED: usize = 16;

/// The configuration of an active plugin.
#[derive(Default)]
pub(super) struct Configured<'a> {
    /// The configuration with the TrainJob's values.
    config: Value,
    /// The path of the runtime's configuration in the runtime.
    path: FieldPath,
    /// The plugin as the runtime names it.
    used: Option<&'a PluginUse>,
    /// The parameters that the TrainJob sets, as paths in the configuration.
    pub(super) set: Vec<FieldPath>,
}

impl<'a> Configured<'a> {
    /// Returns the value of a key of the runtime, which has no parameters.
    pub(super) fn of_key(config: &Value, path: FieldPath) -> Self {
        Self {
            config: config.clone(),
            path,
            ..Self::default()
        }
    }

    /// Merges the TrainJob's values, an object, into the configuration of a plugin that the runtime names. The value of a parameter replaces
    /// the runtime's as a whole. Other values are refused.
    pub(super) fn new(
        used: &'a PluginUse,
        values: Option<&Map<String, Value>>,
        runtime: &Runtime,
        refusals: &mut Refusals,
    ) -> Self {
        let mut configured = Self {
            config: used.config.clone(),
            path: used.config_path.clone(),
            used: Some(used),
            set: Vec::new(),
        };
        let steps: Vec<_> = used.parameters.iter().map(|it| steps(it)).collect();
        let listed: Vec<_> = steps.iter().map(Vec::as_slice).collect();
        let mut sorted = Sorted::default();
        if let Some(values) = values {
            sorted.add(values, &FieldPath::root(), &listed);
        }
        let in_train_job = |path: &FieldPath| in_annotation(&used.name).join(path);
        for path in sorted.others {
            refusals.add(|| Problem::job(in_train_job(&path), not_listed(runtime)));
        }
        for (path, value) in sorted.listed {
            if set(&mut configured.config, path.segments(), value) {
                configured.set.push(path);
                continue;
            }
            let place = &used.config_path;
            let message = format!(
                "cannot be set, because `{place}` of the runtime has a value above it that is not an object; remove it, or ask the runtime's author to correct `parameters`"
            );
            refusals.add(|| Problem::job(in_train_job(&path), message));
        }
        configured
    }

    /// Takes the configuration.
    pub(super) fn take(&mut self) -> Value {
        self.config.take()
    }

    /// Returns the problem of an error in this configuration of the plugin. It is the TrainJob's if it is in a value of the TrainJob, or in an
    /// object around one while the runtime's own configuration is valid.
    pub(super) fn problem(&self, plugin: &PluginInfo, error: &ConfigError) -> Problem {
        let message = format!("{} (plugin {})", error.problem, plugin.id);
        let begins =
            |path: &FieldPath, start: &FieldPath| path.moved(start, &FieldPath::root()).is_some();
        let is_in_value = self.set.iter().any(|set| begins(&error.field, set));
        let is_around_value = self.set.iter().any(|set| begins(set, &error.field));
        let of_job = self.used.filter(|used| {
            let is_valid_alone = || plugin.config(used.config.clone()).is_ok();
            is_in_value || is_around_value && is_valid_alone()
        });
        match of_job {
            Some(used) => Problem::job(in_annotation(&used.name).join(&error.field), message),
            None => Problem::runtime(self.path.join(&error.field), message),
        }
    }
}

/// Refuses values for plugins that the runtime does not name.
pub(super) fn refuse_others(
    values: &Map<String, Value>,
    runtime: &Runtime,
    refusals: &mut Refusals,
) {
    let is_named = |plugin: &String| runtime.named_plugins().any(|used| used.name == *plugin);
    for plugin in values.keys().filter(|plugin| !is_named(plugin)) {
        refusals.add(|| Problem::job(in_annotation(plugin), not_listed(runtime)));
    }
}

fn in_annotation(plugin: &str) -> FieldPath {
    Metadata::path_of_annotation(names::PLUGIN_PARAMETERS_ANNOTATION)
        .field(clean_to(plugin, MAX_NAME))
}

fn not_listed(runtime: &Runtime) -> String {
    let of_plugin = |used: &'_ PluginUse| {
        let name = used.name.clone();
        let of_name = move |pointer: &String| format!("`{pointer}` of {name}");
        used.parameters.iter().map(of_name).collect::<Vec<_>>()
    };
    let mut all = runtime.named_plugins().flat_map(of_plugin).peekable();
    let allowed = match all.peek() {
        Some(_) => format!("a TrainJob can set {}", listed(all, MOST_LISTED)),
        None => "a TrainJob can set no parameters".to_owned(),
    };
    format!(
        "is not a parameter that the runtime lists in `parameters` of a plugin; with {} {}, {allowed}; remove it, or use another runtime",
        runtime.kind, runtime.metadata.name
    )
}

/// The values of a TrainJob for a plugin.
#[derive(Default)]
struct Sorted<'v> {
    /// Those of parameters that the runtime lists.
    listed: Vec<(FieldPath, &'v Value)>,
    /// The paths of the others.
    others: Vec<FieldPath>,
}

impl<'v> Sorted<'v> {
    /// Adds the members of the object at a path. `listed` has the listed parameters below it, as the steps that lead to them.
    fn add(&mut self, values: &'v Map<String, Value>, at: &FieldPath, listed: &[&[String]]) {
        for (name, value) in values {
            let path = at.field(name);
            let below = listed.iter().filter_map(|steps| match steps {
                [first, rest @ ..] if first == name => Some(rest),
                _ => None,
            });
            let below: Vec<_> = below.collect();
            match value {
                _ if below.iter().any(|rest| rest.is_empty()) => self.listed.push((path, value)),
                Value::Object(values) if !below.is_empty() => self.add(values, &path, &below),
                _ => self.others.push(at.field(clean_to(name, MAX_NAME))),
            }
        }
    }
}

/// Returns the steps of a JSON pointer.
fn steps(pointer: &str) -> Vec<String> {
    let steps = pointer.split('/').skip(1);
    steps
        .map(|step| step.replace("~1", "/").replace("~0", "~"))
        .collect()
}

/// Sets the value at a path. Returns whether that is possible: all values above it are objects, or missing.
fn set(config: &mut Value, path: &[Segment], value: &Value) -> bool {
    let Some((first, rest)) = path.split_first() else {
        *config = value.clone();
        return true;
    };
    if config.is_null() {
        *config = Value::Object(Map::new());
    }
    match config.as_object_mut() {
        Some(members) => {
            let member = members.entry(first.text()).or_insert(Value::Null);
            set(member, rest, value)
        }
        None => false,
    }
}
