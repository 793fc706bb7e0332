//! TrainingRuntime and ClusterTrainingRuntime.

use std::{fmt, sync::Arc};

use serde_json::{Map, Value};

use crate::{
    Source, StringMap,
    dialect::Conversion,
    fields::{FieldErrors, FieldProblem, Fields},
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
    pub pod_group_policy: Option<KeyedPolicy>,
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

/// A member of the union in `spec.mlPolicy`.
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
    /// Reads the first member that is set, apart from these. The schema allows only one of them.
    fn read(fields: &mut Fields<'_>, apart: &[&str]) -> Option<Self> {
        let mut keys = fields.names().filter(|key| !apart.contains(key));
        keys.find_map(|key| {
            let config = fields.opaque_object(key)?;
            let key = key.to_owned();
            Some(Self { key, config })
        })
    }
}

impl Member {
    /// Returns the member's key in `mlPolicy`.
    pub fn key(&self) -> &str {
        match self {
            Self::Key(policy) => &policy.key,
            Self::Plugin(_) => PLUGIN,
        }
    }
}

/// `spec.template`: the JobSet to which policies are applied.
#[derive(Debug, Clone, PartialEq)]
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

    /// Returns the field that the runtime's author wrote.
    #[must_use]
    pub fn written(&self, path: &FieldPath) -> FieldPath {
        self.conversion.written(path)
    }

    /// Reads a runtime of either kind that an API server, or admission, has accepted. An object of any other kind is read as a
    /// TrainingRuntime.
    ///
    /// # Errors
    /// Fields that are not supported yet, and values that violate rules beyond the schema, each with its path.
    pub fn read(object: &Object) -> Result<Self, FieldErrors> {
        let kind = RuntimeKind::of(object).unwrap_or(RuntimeKind::Namespaced);
        let mut fields = Fields::of(&object.value, FieldPath::root());
        fields.required("spec");
        let spec = fields.object("spec", Spec::read);
        let spec = spec.unwrap_or_default();
        let annotated = read_annotation(&mut fields, &object.metadata);
        let plugins = join_plugins(&mut fields, spec.plugins, annotated);
        let errors = fields.errors();
        let template = match spec.template {
            Some(template) if errors.is_empty() => template,
            _ => return Err(FieldErrors(errors)),
        };
        Ok(Self {
            source: object.source.clone(),
            kind,
            metadata: object.metadata.clone(),
            ml_policy: spec.ml_policy,
            pod_group_policy: spec.pod_group_policy,
            plugins,
            template,
            conversion: Conversion::default(),
            defaulted: Arc::default(),
        })
    }
}

/// `spec`, without the header.
#[derive(Default)]
struct Spec {
    ml_policy: Option<MlPolicy>,
    pod_group_policy: Option<KeyedPolicy>,
    plugins: Option<Vec<PluginUse>>,
    template: Option<Template>,
}

impl Spec {
    fn read(fields: &mut Fields<'_>) -> Self {
        fields.required("template");
        Self {
            ml_policy: fields.object("mlPolicy", MlPolicy::read),
            pod_group_policy: fields
                .object("podGroupPolicy", |policy| KeyedPolicy::read(policy, &[]))
                .flatten(),
            plugins: fields.objects("plugins", PluginUse::read),
            template: fields.object("template", Template::read),
        }
    }
}

impl MlPolicy {
    fn read(fields: &mut Fields<'_>) -> Self {
        let num_nodes = fields.count(NUM_NODES);
        let keyed = KeyedPolicy::read(fields, &[NUM_NODES, PLUGIN]).map(Member::Key);
        let plugin = || fields.object(PLUGIN, PluginUse::read).map(Member::Plugin);
        Self {
            num_nodes,
            member: keyed.or_else(plugin),
        }
    }
}

impl Template {
    fn read(fields: &mut Fields<'_>) -> Self {
        let (labels, annotations) = fields
            .object("metadata", |metadata| {
                (
                    metadata.string_map("labels"),
                    metadata.string_map("annotations"),
                )
            })
            .unwrap_or_default();
        fields.required("spec");
        let spec = fields
            .opaque_object("spec")
            .unwrap_or_else(|| Value::Object(Map::new()));
        Self {
            labels,
            annotations,
            spec: Arc::new(spec),
        }
    }
}

/// Reads the list of plugins in an annotation, whose JSON no schema has validated.
fn read_annotation(fields: &mut Fields<'_>, metadata: &Metadata) -> Option<Vec<PluginUse>> {
    let text = metadata.annotations.get(names::PLUGINS_ANNOTATION)?;
    let path = annotation_path();
    match yaml::read_json(text) {
        Ok(value) => {
            let (plugins, errors) = PluginUse::read_alone(&value, &path);
            errors
                .into_iter()
                .for_each(|error| fields.fail(error.path, error.problem));
            Some(plugins)
        }
        Err(error) => {
            fields.fail(path, FieldProblem::Json(error));
            None
        }
    }
}

/// Returns the list that is set. If both are set, they must be equal.
fn join_plugins(
    fields: &mut Fields<'_>,
    listed: Option<Vec<PluginUse>>,
    annotated: Option<Vec<PluginUse>>,
) -> Vec<PluginUse> {
    if let (Some(listed), Some(annotated)) = (&listed, &annotated) {
        let same = |(one, other): (&PluginUse, &PluginUse)| {
            one.name == other.name && one.config == other.config
        };
        if listed.len() != annotated.len() || !listed.iter().zip(annotated).all(same) {
            let plugins = FieldPath::root().field("spec").field("plugins");
            fields.fail(annotation_path(), FieldProblem::Differs(plugins));
        }
    }
    listed.or(annotated).unwrap_or_default()
}

fn annotation_path() -> FieldPath {
    FieldPath::root()
        .field("metadata")
        .field("annotations")
        .key(names::PLUGINS_ANNOTATION)
}
