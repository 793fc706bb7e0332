//! TrainingRuntime and ClusterTrainingRuntime.

use std::{fmt, sync::Arc};

use serde::Deserialize;
use serde_json::Value;

use crate::{
    Source, StringMap,
    dialect::Conversion,
    fields::{FieldError, FieldErrors, FieldProblem, count, describe, required, typed},
    names,
    object::{Metadata, Object},
    path::FieldPath,
    plugin_use::PluginUse,
    yaml,
};

/// The kind of a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuntimeKind {
    /// TrainingRuntime, for the TrainJobs of its namespace.
    Namespaced,
    /// ClusterTrainingRuntime, for all namespaces.
    Cluster,
}

impl RuntimeKind {
    /// Returns the name of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespaced => names::TRAINING_RUNTIME,
            Self::Cluster => names::CLUSTER_TRAINING_RUNTIME,
        }
    }

    /// Returns the kind of an object, if it is a runtime of the version that Trainyard reads.
    pub fn of(object: &Object) -> Option<Self> {
        let kinds = [Self::Namespaced, Self::Cluster];
        kinds
            .into_iter()
            .find(|kind| object.is(names::TRAINER_API_VERSION, kind.as_str()))
    }
}

impl fmt::Display for RuntimeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A runtime of either kind, with typed policies and the JobSet template as written.
#[derive(Debug, Clone, PartialEq)]
pub struct Runtime {
    pub source: Source,
    pub kind: RuntimeKind,
    /// Its metadata. A ClusterTrainingRuntime has no namespace, even if one is set.
    pub metadata: Metadata,
    /// `spec.mlPolicy`, if set.
    pub ml_policy: Option<MlPolicy>,
    /// The member of `spec.podGroupPolicy`, if set.
    pub pod_group_policy: Option<Member>,
    /// The additive plugins: `spec.plugins`, or the annotation [`names::PLUGINS_ANNOTATION`].
    pub plugins: Vec<PluginUse>,
    /// `spec.template`.
    pub template: Template,
    /// The conversion of its old forms.
    pub conversion: Conversion,
    /// The fields that were set by defaults of the schema.
    pub defaulted: Arc<[FieldPath]>,
}

/// `spec.mlPolicy`: the number of nodes, and at most one framework.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MlPolicy {
    /// The default number of nodes, at least 1.
    pub num_nodes: Option<u32>,
    /// The member of the union, if set.
    pub member: Option<Member>,
}

/// A member of a union, `spec.mlPolicy` or `spec.podGroupPolicy`.
#[derive(Debug, Clone, PartialEq)]
pub enum Member {
    /// The key of a plugin.
    Key(KeyedPolicy),
    /// `plugin`: any plugin, by its name.
    Plugin(PluginUse),
}

/// A policy that the key of a plugin selects, in `spec.mlPolicy` or `spec.podGroupPolicy`.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyedPolicy {
    /// The key.
    pub key: String,
    /// Its value, as written.
    pub config: Value,
}

impl KeyedPolicy {
    /// Returns the first member that is set, apart from these. The schema allows only one of them.
    fn of(policy: Option<&Value>, apart: &[&str]) -> Option<Self> {
        let mut members = policy?.as_object()?.iter();
        members.find_map(|(key, config)| {
            let is_policy = config.is_object() && !apart.contains(&key.as_str());
            let (key, config) = is_policy.then(|| (key.clone(), config.clone()))?;
            Some(Self { key, config })
        })
    }
}

impl Member {
    /// Returns the member of the union of this name in `spec`, which is at `path`: the key of a plugin, or the plugin that was read.
    fn of(spec: &Value, union: &str, plugin: Option<PluginUse>, path: &FieldPath) -> Option<Self> {
        let keyed = KeyedPolicy::of(spec.get(union), &[NUM_NODES, PLUGIN]);
        let named = || plugin.map(|plugin| Self::Plugin(plugin.at(&path.fields([union, PLUGIN]))));
        keyed.map(Self::Key).or_else(named)
    }

    /// Returns the member's key in the union.
    pub fn key(&self) -> &str {
        match self {
            Self::Key(policy) => &policy.key,
            Self::Plugin(_) => PLUGIN,
        }
    }
}

/// `spec.template`: the JobSet to which policies are applied.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Template {
    /// The JobSet's labels.
    pub labels: StringMap,
    /// The JobSet's annotations.
    pub annotations: StringMap,
    /// The JobSet's `spec`, as written.
    pub spec: Arc<Value>,
}

/// The key of the number of nodes, beside the union's members.
const NUM_NODES: &str = "numNodes";
/// The key of the union's member for any plugin.
const PLUGIN: &str = "plugin";

impl Runtime {
    /// Returns whether the object is a runtime of the version that Trainyard reads.
    pub fn is(object: &Object) -> bool {
        RuntimeKind::of(object).is_some()
    }

    /// Returns the plugins that it activates by their names.
    pub fn named_plugins(&self) -> impl Iterator<Item = &PluginUse> {
        let framework = self.ml_policy.as_ref();
        let framework = framework.and_then(|policy| policy.member.as_ref());
        let members = framework.into_iter().chain(&self.pod_group_policy);
        let named = members.filter_map(|member| match member {
            Member::Plugin(used) => Some(used),
            Member::Key(_) => None,
        });
        named.chain(&self.plugins)
    }

    /// Returns the field that the runtime's author wrote.
    #[must_use]
    pub fn written(&self, path: &FieldPath) -> FieldPath {
        self.conversion.written(path)
    }

    /// Reads a runtime of either kind that admission has accepted. An object of any other kind is read as a TrainingRuntime.
    ///
    /// # Errors
    /// Fields that a JobSet needs and the schema does not require, the first value that does not have the type in the schema, and what is
    /// wrong with the plugins in the annotation, each with its path.
    pub fn read(object: &Object) -> Result<Self, FieldErrors> {
        let kind = RuntimeKind::of(object).unwrap_or(RuntimeKind::Namespaced);
        let mut errors = Vec::new();
        let spec = Spec::read(&object.value).map_err(|error| errors.push(error));
        let spec = spec.unwrap_or_default();
        let annotated = read_annotation(&object.metadata, &mut errors);
        let plugins = join_plugins(spec.plugins, annotated, &mut errors);
        if !errors.is_empty() {
            return Err(FieldErrors(errors));
        }
        Ok(Self {
            source: object.source.clone(),
            kind,
            metadata: object.metadata.clone(),
            ml_policy: spec.ml_policy,
            pod_group_policy: spec.pod_group_policy,
            plugins,
            template: spec.template,
            conversion: Conversion::default(),
            defaulted: Arc::default(),
        })
    }
}

/// `spec`.
#[derive(Default)]
struct Spec {
    ml_policy: Option<MlPolicy>,
    pod_group_policy: Option<Member>,
    plugins: Option<Vec<PluginUse>>,
    template: Template,
}

impl Spec {
    fn read(runtime: &Value) -> Result<Self, FieldError> {
        let (template, of_template) = required(runtime, &["spec", "template", "spec"])?;
        if !template.is_object() {
            let (expected, found) = ("an object", describe(template));
            return Err(FieldProblem::Type { expected, found }.at(of_template));
        }
        let (spec, path) = required(runtime, &["spec"])?;
        let written: WrittenSpec = typed(spec, &path)?;
        let at = |plugin: PluginUse, index| plugin.at(&path.field("plugins").index(index));
        let plugins = written.plugins.map(|plugins| {
            let plugins = plugins.into_iter().zip(0..);
            plugins.map(|(plugin, index)| at(plugin, index)).collect()
        });
        let metadata = written.template.metadata;
        Ok(Self {
            ml_policy: written.ml_policy.map(|policy| MlPolicy {
                num_nodes: policy.num_nodes,
                member: Member::of(spec, "mlPolicy", policy.plugin, &path),
            }),
            pod_group_policy: written
                .pod_group_policy
                .and_then(|policy| Member::of(spec, "podGroupPolicy", policy.plugin, &path)),
            plugins,
            template: Template {
                labels: metadata.labels,
                annotations: metadata.annotations,
                spec: Arc::new(template.clone()),
            },
        })
    }
}

/// `spec`, except for the policies with keys and for the template's `spec`, which stay JSON.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenSpec {
    ml_policy: Option<WrittenMlPolicy>,
    pod_group_policy: Option<WrittenPodGroupPolicy>,
    plugins: Option<Vec<PluginUse>>,
    template: WrittenTemplate,
}

/// `spec.mlPolicy`, except for the policies with keys.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenMlPolicy {
    #[serde(default, deserialize_with = "count")]
    num_nodes: Option<u32>,
    plugin: Option<PluginUse>,
}

/// `spec.podGroupPolicy`, except for the policies with keys.
#[derive(Deserialize)]
struct WrittenPodGroupPolicy {
    plugin: Option<PluginUse>,
}

/// The template of a JobSet, or a patch of it, except for its `spec`, which stays JSON.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct WrittenTemplate {
    pub(crate) metadata: TemplateMetadata,
}

/// The metadata that a JobSet gets from a template.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct TemplateMetadata {
    pub(crate) labels: StringMap,
    pub(crate) annotations: StringMap,
}

/// Reads the list of plugins in an annotation, whose JSON no schema has validated.
fn read_annotation(metadata: &Metadata, errors: &mut Vec<FieldError>) -> Option<Vec<PluginUse>> {
    let text = metadata.annotations.get(names::PLUGINS_ANNOTATION)?;
    let path = Metadata::path_of_annotation(names::PLUGINS_ANNOTATION);
    match yaml::read_json(text) {
        Ok(value) => {
            let (plugins, found) = PluginUse::read_alone(&value, &path);
            errors.extend(found);
            Some(plugins)
        }
        Err(error) => {
            errors.push(FieldProblem::Json(error).at(path));
            None
        }
    }
}

/// Returns the list that is set. If both are set, they must be equal.
fn join_plugins(
    listed: Option<Vec<PluginUse>>,
    annotated: Option<Vec<PluginUse>>,
    errors: &mut Vec<FieldError>,
) -> Vec<PluginUse> {
    if let (Some(listed), Some(annotated)) = (&listed, &annotated) {
        let same = |(one, other): (&PluginUse, &PluginUse)| {
            (&one.name, &one.config, &one.parameters)
                == (&other.name, &other.config, &other.parameters)
        };
        if listed.len() != annotated.len() || !listed.iter().zip(annotated).all(same) {
            let plugins = FieldPath::of(["spec", "plugins"]);
            errors.push(
                FieldProblem::Differs(plugins)
                    .at(Metadata::path_of_annotation(names::PLUGINS_ANNOTATION)),
            );
        }
    }
    listed.or(annotated).unwrap_or_default()
}
