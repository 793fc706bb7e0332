//! TrainJob: what a person asks for.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::dialect::Modernized;
use crate::fields::{FieldErrors, FieldProblem, Fields, cut};
use crate::object::{Metadata, Object};
use crate::path::FieldPath;
use crate::runtime::RuntimeKind;
use crate::runtime_patch::RuntimePatch;
use crate::{Source, names};

/// A TrainJob: its wishes, typed, over fragments of Kubernetes' API as they were written.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainJob {
    /// Where it came from.
    pub source: Source,
    /// Its metadata.
    pub metadata: Metadata,
    /// The runtime that it runs on.
    pub runtime_ref: RuntimeRef,
    /// What is fetched before the training starts.
    pub initializer: Initializer,
    /// What it overrides in the runtime; None where it has no `trainer`.
    pub trainer: Option<Trainer>,
    /// What is changed in the runtime's template, in this order.
    pub runtime_patches: Vec<RuntimePatch>,
    /// Whether it is to wait.
    pub suspend: bool,
    /// After how many seconds it fails.
    pub active_deadline_seconds: Option<i64>,
    /// Who reconciles it: [`names::MANAGED_BY_TRAINER`] or [`names::MANAGED_BY_MULTIKUEUE`].
    pub managed_by: String,
    /// The whole `spec`, without nulls and without defaults.
    pub spec: Value,
    /// What was rewritten of it.
    pub dialect: Modernized,
    /// The fields that its schema filled in.
    pub defaulted: Arc<[FieldPath]>,
}

/// `spec.runtimeRef`, with its defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeRef {
    /// Which of the two kinds; their API group is [`names::TRAINER_GROUP`].
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
    /// What to fetch; None where it is absent or empty.
    pub storage_uri: Option<String>,
    /// Env of the step's container.
    pub env: Vec<EnvVar>,
    /// The name of the Secret whose keys become env vars.
    pub secret_ref: Option<String>,
}

/// `spec.trainer`: what the TrainJob overrides.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trainer {
    /// The image. None where it is absent or empty: an empty image, which some clients write, would fail in every pod.
    pub image: Option<String>,
    /// The command; an empty list clears the runtime's, None keeps it.
    pub command: Option<Vec<String>>,
    /// The arguments; an empty list clears the runtime's, None keeps them.
    pub args: Option<Vec<String>>,
    /// Env of the trainer's container.
    pub env: Vec<EnvVar>,
    /// The number of nodes, at least 1.
    pub num_nodes: Option<u32>,
    /// Kubernetes' ResourceRequirements, as they were written.
    pub resources_per_node: Option<Value>,
    /// The number of processes on each node, at least 1.
    pub num_proc_per_node: Option<u32>,
}

/// An env var as a TrainJob has it.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvVar {
    /// Its name.
    pub name: String,
    /// Its value, which may name other env vars as `$(NAME)`.
    pub value: Option<String>,
    /// Kubernetes' EnvVarSource, as it was written.
    pub value_from: Option<Value>,
}

impl TrainJob {
    /// Whether the object is a TrainJob of the version that Trainyard reads.
    pub fn is(object: &Object) -> bool {
        object.is(names::TRAINER_API_VERSION, names::TRAIN_JOB)
    }

    /// Returns a TrainJob that has nothing but the name and the runtime of one that is refused, so that what is wrong with its
    /// runtime can be told beside. `None` if it names no runtime.
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

    /// The field as the TrainJob's author spelled it: errors and explanations name what stands in the file.
    #[must_use]
    pub fn written(&self, path: &FieldPath) -> FieldPath {
        self.dialect.written(path)
    }

    /// Reads a TrainJob that an API server, or the schema step, has let in.
    ///
    /// # Errors
    /// Every field that is not supported yet, and what no schema says: each with its path.
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

/// `spec`, before the header joins it.
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
            spec: object.value.get("spec").cloned().unwrap_or_default(),
            dialect: Modernized::default(),
            defaulted: Arc::default(),
        }
    }
}

/// One of a closed list of values, which the reference's schemas leave open; the first is the default.
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
            // An API server lets in an empty name: no pod could start with it.
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
