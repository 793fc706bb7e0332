//! TrainJob.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    Source,
    dialect::Conversion,
    fields::{FieldErrors, FieldProblem, Fields, cut},
    names,
    object::{Metadata, Object},
    path::FieldPath,
    runtime::RuntimeKind,
    runtime_patch::RuntimePatch,
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
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Initializer {
    /// The dataset to fetch.
    pub dataset: Option<InitializerStep>,
    /// The model to fetch.
    pub model: Option<InitializerStep>,
}

/// One of the two steps of `spec.initializer`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InitializerStep {
    /// The URI to fetch; `None` if it is missing or empty.
    pub storage_uri: Option<String>,
    /// Env of the step's container.
    pub env: Vec<EnvVar>,
    /// The name of the Secret whose keys become env vars.
    pub secret_ref: Option<String>,
}

/// `spec.trainer`: overrides of the runtime.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trainer {
    /// The image. `None` if it is missing or empty; some clients set an empty image, with which no pod could start.
    pub image: Option<String>,
    /// The command; an empty list clears the runtime's, `None` keeps it.
    pub command: Option<Vec<String>>,
    /// The arguments; an empty list clears the runtime's, `None` keeps them.
    pub args: Option<Vec<String>>,
    /// Env of the trainer's container.
    pub env: Vec<EnvVar>,
    /// The number of nodes, at least 1.
    pub num_nodes: Option<u32>,
    /// Kubernetes' ResourceRequirements, as written.
    pub resources_per_node: Option<Value>,
    /// The number of processes on each node, at least 1.
    pub num_proc_per_node: Option<u32>,
}

/// An env var of a TrainJob.
#[derive(Debug, Clone, PartialEq)]
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
    /// run. `None` if it has no valid `runtimeRef`.
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

    /// Returns the field that the TrainJob's author wrote, for errors and explanations.
    #[must_use]
    pub fn written(&self, path: &FieldPath) -> FieldPath {
        self.conversion.written(path)
    }

    /// Reads a TrainJob that an API server, or admission, has accepted.
    ///
    /// # Errors
    /// Fields that are not supported yet, and values that violate rules beyond the schema, each with its path.
    pub fn read(object: &Object) -> Result<Self, FieldErrors> {
        let mut fields = Fields::of(&object.value, FieldPath::root());
        fields.required("spec");
        let spec = fields.object("spec", Spec::read);
        let errors = fields.errors();
        match (spec, errors.is_empty()) {
            (Some(spec), true) => Ok(spec.into_job(object)),
            _ => Err(FieldErrors(errors)),
        }
    }
}

/// `spec`, without the header.
struct Spec {
    runtime_ref: RuntimeRef,
    initializer: Initializer,
    trainer: Option<Trainer>,
    runtime_patches: Vec<RuntimePatch>,
    suspend: bool,
    active_deadline_seconds: Option<i64>,
    managed_by: String,
}

impl Spec {
    fn read(fields: &mut Fields<'_>) -> Self {
        for later in [
            "podTemplateOverrides",
            "podSpecOverrides",
            "labels",
            "annotations",
        ] {
            fields.not_supported(later);
        }
        fields.required("runtimeRef");
        let nowhere = RuntimeRef {
            kind: RuntimeKind::Cluster,
            name: String::new(),
        };
        Self {
            runtime_ref: fields
                .object("runtimeRef", RuntimeRef::read)
                .unwrap_or(nowhere),
            initializer: fields
                .object("initializer", Initializer::read)
                .unwrap_or_default(),
            trainer: fields.object("trainer", Trainer::read),
            runtime_patches: RuntimePatch::read_list(fields),
            suspend: fields.boolean("suspend").unwrap_or(false),
            active_deadline_seconds: fields.integer("activeDeadlineSeconds"),
            managed_by: fields
                .string("managedBy")
                .unwrap_or_else(|| names::MANAGED_BY_TRAINER.to_owned()),
        }
    }

    fn into_job(self, object: &Object) -> TrainJob {
        TrainJob {
            source: object.source.clone(),
            metadata: object.metadata.clone(),
            runtime_ref: self.runtime_ref,
            initializer: self.initializer,
            trainer: self.trainer,
            runtime_patches: self.runtime_patches,
            suspend: self.suspend,
            active_deadline_seconds: self.active_deadline_seconds,
            managed_by: self.managed_by,
            spec: Arc::new(object.value.get("spec").cloned().unwrap_or_default()),
            conversion: Conversion::default(),
            defaulted: Arc::default(),
        }
    }
}

/// Reads one of several allowed values, which the reference's schemas do not check. The first one is the default.
fn one_of(
    fields: &mut Fields<'_>,
    name: &'static str,
    known: &'static [&'static str],
) -> &'static str {
    let default = known.first().copied().unwrap_or_default();
    let Some(found) = fields.string(name) else {
        return default;
    };
    match known.iter().find(|value| **value == found) {
        Some(value) => value,
        None => {
            let path = fields.path().field(name);
            fields.fail(
                path,
                FieldProblem::NotOneOf {
                    known,
                    found: cut(&found),
                },
            );
            default
        }
    }
}

impl RuntimeRef {
    fn read(fields: &mut Fields<'_>) -> Self {
        one_of(fields, "apiGroup", &[names::TRAINER_GROUP]);
        let kind = one_of(
            fields,
            "kind",
            &[names::CLUSTER_TRAINING_RUNTIME, names::TRAINING_RUNTIME],
        );
        let name = fields.required_string("name");
        let namespaced = kind == names::TRAINING_RUNTIME;
        Self {
            kind: if namespaced {
                RuntimeKind::Namespaced
            } else {
                RuntimeKind::Cluster
            },
            name,
        }
    }
}

impl Initializer {
    fn read(fields: &mut Fields<'_>) -> Self {
        Self {
            dataset: fields.object("dataset", InitializerStep::read),
            model: fields.object("model", InitializerStep::read),
        }
    }
}

impl InitializerStep {
    fn read(fields: &mut Fields<'_>) -> Self {
        Self {
            storage_uri: fields.string("storageUri").filter(|uri| !uri.is_empty()),
            env: EnvVar::read_list(fields),
            // An API server accepts an empty name, with which no pod could start.
            secret_ref: fields.object("secretRef", |secret| secret.required_string("name")),
        }
    }
}

impl Trainer {
    fn read(fields: &mut Fields<'_>) -> Self {
        Self {
            image: fields.string("image").filter(|image| !image.is_empty()),
            command: fields.strings("command"),
            args: fields.strings("args"),
            env: EnvVar::read_list(fields),
            num_nodes: fields.count("numNodes"),
            resources_per_node: fields.opaque_object("resourcesPerNode"),
            num_proc_per_node: fields.count("numProcPerNode"),
        }
    }
}

impl EnvVar {
    /// Reads the list `env`.
    fn read_list(fields: &mut Fields<'_>) -> Vec<Self> {
        fields.objects("env", Self::read).unwrap_or_default()
    }

    fn read(fields: &mut Fields<'_>) -> Self {
        let env = Self {
            name: fields.required_string("name"),
            value: fields.string("value"),
            value_from: fields.opaque_object("valueFrom"),
        };
        if env.value_from.is_some() && env.value.as_deref().is_some_and(|value| !value.is_empty()) {
            fields.fail(
                fields.path().field("valueFrom"),
                FieldProblem::Excludes("value"),
            );
        }
        env
    }
}
