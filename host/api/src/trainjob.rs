//! TrainJob: what a person asks for.

use serde_json::Value;

use crate::dialect::Modernized;
use crate::fields::{FieldErrors, FieldProblem, Fields, cut};
use crate::object::{Metadata, Object};
use crate::path::FieldPath;
use crate::runtime::RuntimeKind;
use crate::runtime_patch::RuntimePatch;
use crate::{Source, names};

/// The most items of `command`, `args` and every `env`.
const MAX_ITEMS: usize = 128;
/// The most characters of `trainer.image`.
const MAX_IMAGE: usize = 500;
/// The most characters of an item of `command` or `args`.
const MAX_ARGUMENT: usize = 1_048_576;
/// The most characters of `storageUri`.
const MAX_URI: usize = 2048;
/// The most characters of a runtime's name.
const MAX_RUNTIME_NAME: usize = 253;
/// The most characters of a TrainJob's name: it becomes a label's value.
const MAX_NAME: usize = 63;

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

    /// The field as the TrainJob's author spelled it: errors and explanations name what stands in the file.
    #[must_use]
    pub fn written(&self, path: &FieldPath) -> FieldPath {
        self.dialect.written(path)
    }

    /// Reads a TrainJob.
    ///
    /// # Errors
    /// Every wrong, unknown or not yet supported field, with its path.
    pub fn read(object: &Object) -> Result<Self, FieldErrors> {
        let mut fields = Fields::of(&object.value, FieldPath::root());
        for header in ["apiVersion", "kind", "metadata", "status"] {
            fields.raw(header);
        }
        check_name(&mut fields, &object.metadata.name);
        fields.required("spec");
        let spec = fields.object("spec", Spec::read);
        let errors = fields.finish();
        match (spec, errors.is_empty()) {
            (Some(spec), true) => Ok(spec.into_job(object)),
            _ => Err(FieldErrors(errors)),
        }
    }
}

fn check_name(fields: &mut Fields<'_>, name: &str) {
    let path = FieldPath::root().field("metadata").field("name");
    let middle = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.starts_with(|c: char| c.is_ascii_lowercase())
        || !name.chars().all(middle)
        || name.ends_with('-')
    {
        let form = "lowercase letters, digits and -, with a letter first and no - at the end";
        fields.fail(
            path.clone(),
            FieldProblem::Form {
                form,
                found: cut(name),
            },
        );
    }
    fields.check_length(path, name, MAX_NAME);
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
            active_deadline_seconds: fields.integer("activeDeadlineSeconds", 1, i64::MAX),
            managed_by: one_of(
                fields,
                "managedBy",
                &[names::MANAGED_BY_TRAINER, names::MANAGED_BY_MULTIKUEUE],
            )
            .to_owned(),
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
            dialect: object.dialect.clone(),
        }
    }
}

/// One of a closed list of values; the first is the default.
fn one_of(fields: &mut Fields<'_>, name: &'static str, known: &[&'static str]) -> &'static str {
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
                    known: known.to_vec(),
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
        fields.check_length(fields.path().field("name"), &name, MAX_RUNTIME_NAME);
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
        let storage_uri = fields
            .short_string("storageUri", MAX_URI)
            .filter(|uri| !uri.is_empty());
        if let Some(uri) = storage_uri.as_deref().filter(|uri| !is_storage_uri(uri)) {
            let form = "a URI with a scheme, such as hf://owner/name";
            fields.fail(
                fields.path().field("storageUri"),
                FieldProblem::Form {
                    form,
                    found: cut(uri),
                },
            );
        }
        Self {
            storage_uri,
            env: EnvVar::read_list(fields),
            secret_ref: fields.object("secretRef", |secret| secret.required_string("name")),
        }
    }
}

/// `^[A-Za-z][A-Za-z0-9+.-]*://.+$`, as the reference's CRD has it.
fn is_storage_uri(uri: &str) -> bool {
    let Some((scheme, rest)) = uri.split_once("://") else {
        return false;
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-');
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(allowed)
        && !rest.is_empty()
}

impl Trainer {
    fn read(fields: &mut Fields<'_>) -> Self {
        Self {
            image: fields
                .short_string("image", MAX_IMAGE)
                .filter(|image| !image.is_empty()),
            command: arguments(fields, "command"),
            args: arguments(fields, "args"),
            env: EnvVar::read_list(fields),
            num_nodes: fields.count("numNodes"),
            resources_per_node: fields.opaque_object("resourcesPerNode"),
            num_proc_per_node: fields.count("numProcPerNode"),
        }
    }
}

fn arguments(fields: &mut Fields<'_>, name: &'static str) -> Option<Vec<String>> {
    let arguments = fields.strings(name, MAX_ITEMS)?;
    for (at, argument) in arguments.iter().enumerate() {
        fields.check_length(fields.path().field(name).index(at), argument, MAX_ARGUMENT);
    }
    Some(arguments)
}

impl EnvVar {
    /// Reads the list `env`.
    fn read_list(fields: &mut Fields<'_>) -> Vec<Self> {
        let env = fields
            .objects("env", MAX_ITEMS, Self::read)
            .unwrap_or_default();
        fields.unique("env", env.iter().map(|env| env.name.as_str()));
        env
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
