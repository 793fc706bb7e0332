//! TrainJob.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Source,
    dialect::Conversion,
    fields::{FieldError, FieldErrors, FieldProblem, count, cut, filled, required, typed},
    names,
    object::{Metadata, Object},
    path::FieldPath,
    plugin_overrides::PluginOverrides,
    runtime::{Runtime, RuntimeKind},
    runtime_patch::{RuntimePatch, WrittenPatch},
};

/// A TrainJob, with typed fields and fragments of Kubernetes' API as written.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainJob {
    pub source: Source,
    pub metadata: Metadata,
    /// The runtime that it runs on.
    pub runtime_ref: RuntimeRef,
    /// The dataset and the model that are fetched before the training starts.
    pub initializer: Initializer,
    /// Its overrides of the runtime; `None` if it has no `trainer`.
    pub trainer: Option<Trainer>,
    /// Patches of the runtime's template, in order.
    pub runtime_patches: Vec<RuntimePatch>,
    /// Whether it is suspended.
    pub suspend: bool,
    /// The number of seconds after which it fails.
    pub active_deadline_seconds: Option<i64>,
    /// The controller that reconciles it: [`names::MANAGED_BY_TRAINER`] or [`names::MANAGED_BY_MULTIKUEUE`].
    pub managed_by: String,
    /// Its overrides for plugins.
    pub plugins: PluginOverrides,
    /// The whole `spec`, without nulls and without defaults.
    pub spec: Arc<Value>,
    /// The conversion of its old forms.
    pub conversion: Conversion,
    /// The fields that were set by defaults of the schema.
    pub defaulted: Arc<[FieldPath]>,
}

/// `spec.runtimeRef`, with its defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeRef {
    /// The runtime's kind. The API group is [`names::TRAINER_GROUP`].
    pub kind: RuntimeKind,
    /// The runtime's name.
    pub name: String,
}

/// `spec.initializer`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
pub struct Initializer {
    /// The dataset to fetch.
    pub dataset: Option<InitializerStep>,
    /// The model to fetch.
    pub model: Option<InitializerStep>,
}

/// One of the two steps of `spec.initializer`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InitializerStep {
    /// The URI to fetch; `None` if it is missing or empty.
    #[serde(deserialize_with = "filled")]
    pub storage_uri: Option<String>,
    /// Env of the step's container.
    pub env: Vec<EnvVar>,
    /// The Secret whose keys become env vars.
    pub secret_ref: Option<SecretRef>,
}

/// A reference to a Secret.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct SecretRef {
    /// Its name, which is not empty.
    pub name: String,
}

/// `spec.trainer`: overrides of the runtime.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Trainer {
    /// The image. `None` if it is missing or empty; some clients set an empty image, with which no pod could start.
    #[serde(deserialize_with = "filled")]
    pub image: Option<String>,
    /// The command; an empty list clears the runtime's, `None` keeps it.
    pub command: Option<Vec<String>>,
    /// The arguments; an empty list clears the runtime's, `None` keeps them.
    pub args: Option<Vec<String>>,
    /// Env of the trainer's container.
    pub env: Vec<EnvVar>,
    /// The number of nodes, at least 1.
    #[serde(deserialize_with = "count")]
    pub num_nodes: Option<u32>,
    /// Kubernetes' ResourceRequirements, as written.
    pub resources_per_node: Option<Value>,
    /// The number of processes on each node, at least 1.
    #[serde(deserialize_with = "count")]
    pub num_proc_per_node: Option<u32>,
}

/// An env var of a TrainJob.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    pub name: String,
    /// Its value, which can refer to other env vars as `$(NAME)`.
    pub value: Option<String>,
    /// Kubernetes' EnvVarSource, as written.
    pub value_from: Option<Value>,
}

impl TrainJob {
    /// Returns whether the object is a TrainJob of the version that Trainyard reads.
    pub fn is(object: &Object) -> bool {
        object.is(names::TRAINER_API_VERSION, names::TRAIN_JOB)
    }

    /// Returns a TrainJob with only the name and the runtime of a refused one, so that errors of its runtime are reported in the same
    /// run. `None` if it has no valid `runtimeRef`, or if its overrides for plugins cannot be read.
    #[must_use]
    pub fn of_runtime_alone(object: &Object) -> Option<Self> {
        let runtime_ref = object.value.pointer("/spec/runtimeRef")?;
        let value = json!({"spec": {"runtimeRef": runtime_ref}});
        let alone = Object {
            value,
            ..object.clone()
        };
        Self::read(&alone).ok()
    }

    /// Returns a TrainJob with nothing but a reference to the runtime, to check a runtime that no TrainJob uses yet. `None` if its name could not
    /// be referenced.
    #[must_use]
    pub fn of_runtime(runtime: &Runtime) -> Option<Self> {
        let Metadata {
            name, namespace, ..
        } = &runtime.metadata;
        let reference = json!({"kind": runtime.kind.as_str(), "name": name});
        let alone = Object {
            source: runtime.source.clone(),
            api_version: names::TRAINER_API_VERSION.to_owned(),
            kind: names::TRAIN_JOB.to_owned(),
            metadata: Metadata {
                name: "job".to_owned(),
                namespace: namespace.clone(),
                ..Metadata::default()
            },
            value: json!({"spec": {"runtimeRef": reference}}),
        };
        Self::read(&alone).ok()
    }

    /// Returns the field that the TrainJob's author wrote, for errors and explanations.
    #[must_use]
    pub fn written(&self, path: &FieldPath) -> FieldPath {
        self.conversion.written(path)
    }

    /// Reads a TrainJob that admission has accepted.
    ///
    /// # Errors
    /// Fields that are not supported yet, and values that violate rules beyond the schema, each with its path; or the first value that does
    /// not have the type of the schema.
    pub fn read(object: &Object) -> Result<Self, FieldErrors> {
        let (spec, path) = required(&object.value, &["spec"])?;
        let typed: Spec = typed(spec, &path)?;
        let mut errors = not_supported(spec, &path);
        let plugins = PluginOverrides::read(&object.metadata, &mut errors);
        let runtime_ref = typed.runtime_ref.checked(&path, &mut errors);
        typed.initializer.check(&path, &mut errors);
        if let Some(trainer) = &typed.trainer {
            check_env(&trainer.env, &path.field("trainer"), &mut errors);
        }
        if !errors.is_empty() {
            return Err(FieldErrors(errors));
        }
        Ok(Self {
            source: object.source.clone(),
            metadata: object.metadata.clone(),
            runtime_ref,
            initializer: typed.initializer,
            trainer: typed.trainer,
            runtime_patches: RuntimePatch::of(spec, &path, typed.runtime_patches),
            suspend: typed.suspend,
            active_deadline_seconds: typed.active_deadline_seconds,
            managed_by: typed.managed_by,
            plugins,
            spec: Arc::new(spec.clone()),
            conversion: Conversion::default(),
            defaulted: Arc::default(),
        })
    }
}

/// `spec`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    runtime_ref: WrittenRef,
    #[serde(default)]
    initializer: Initializer,
    trainer: Option<Trainer>,
    #[serde(default)]
    runtime_patches: Vec<WrittenPatch>,
    #[serde(default)]
    suspend: bool,
    active_deadline_seconds: Option<i64>,
    #[serde(default = "managed_by_trainer")]
    managed_by: String,
}

fn managed_by_trainer() -> String {
    names::MANAGED_BY_TRAINER.to_owned()
}

/// Returns an error for each field that is not supported yet and is not empty.
fn not_supported(spec: &Value, path: &FieldPath) -> Vec<FieldError> {
    const FIELDS: [&str; 4] = [
        "podTemplateOverrides",
        "podSpecOverrides",
        "labels",
        "annotations",
    ];
    let is_set = |field: &&str| match spec.get(field) {
        None => false,
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(map)) => !map.is_empty(),
        Some(_) => true,
    };
    let error = |field| FieldProblem::NotSupported.at(path.field(field));
    FIELDS.into_iter().filter(is_set).map(error).collect()
}

/// `spec.runtimeRef`, whose group and kind no schema checks.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenRef {
    api_group: Option<String>,
    kind: Option<String>,
    name: String,
}

impl WrittenRef {
    fn checked(self, spec: &FieldPath, errors: &mut Vec<FieldError>) -> RuntimeRef {
        let path = spec.field("runtimeRef");
        let mut check = |field, found: Option<&str>, known: &'static [&'static str]| {
            if let Some(found) = found.filter(|found| !known.contains(found)) {
                let found = cut(found);
                errors.push(FieldProblem::NotOneOf { known, found }.at(path.field(field)));
            }
        };
        check(
            "apiGroup",
            self.api_group.as_deref(),
            &[names::TRAINER_GROUP],
        );
        let kinds = &[names::CLUSTER_TRAINING_RUNTIME, names::TRAINING_RUNTIME];
        check("kind", self.kind.as_deref(), kinds);
        RuntimeRef {
            kind: match self.kind.as_deref() {
                Some(names::TRAINING_RUNTIME) => RuntimeKind::Namespaced,
                _ => RuntimeKind::Cluster,
            },
            name: self.name,
        }
    }
}

impl Initializer {
    fn check(&self, spec: &FieldPath, errors: &mut Vec<FieldError>) {
        for (step, name) in [(&self.dataset, "dataset"), (&self.model, "model")] {
            let Some(step) = step else { continue };
            let path = spec.fields(["initializer", name]);
            check_env(&step.env, &path, errors);
            // An API server accepts an empty name, with which no pod could start.
            if step
                .secret_ref
                .as_ref()
                .is_some_and(|secret| secret.name.is_empty())
            {
                errors.push(FieldProblem::Required.at(path.fields(["secretRef", "name"])));
            }
        }
    }
}

/// Refuses env vars without a name, and those that have both a value and a source.
fn check_env(env: &[EnvVar], path: &FieldPath, errors: &mut Vec<FieldError>) {
    for (at, var) in env.iter().enumerate() {
        let path = |field| path.field("env").index(at).field(field);
        if var.name.is_empty() {
            errors.push(FieldProblem::Required.at(path("name")));
        }
        let has_value = var.value.as_deref().is_some_and(|value| !value.is_empty());
        if has_value && var.value_from.is_some() {
            errors.push(FieldProblem::Excludes("value").at(path("valueFrom")));
        }
    }
}
