//! What a phase is called with, and all but the record that it leads to.

#[cfg(target_family = "wasm")]
use std::mem::ManuallyDrop;

use super::{Give, Info};
#[cfg(target_family = "wasm")]
use crate::guest::transformer::trainyard::policy::{context, job, lookups, objects, types};

#[cfg(not(target_family = "wasm"))]
impl Context {
    /// The handle that a phase is called with.
    pub(crate) const fn of_call() -> Self {
        Self(trainyard_model::call::Call::CONTEXT)
    }
}

handles! {
    /// One call of one phase.
    Context = context::Context {
        /// The TrainJob.
        fn job() -> Job = context_job;
        /// What the plugin may ask of the cluster.
        fn lookups() -> Lookups = context_lookups;
        /// The objects that the plugin emits beside the JobSet.
        fn objects() -> Objects = context_objects;
        /// The record, with what this call has written so far.
        fn info() -> Info = context_info;
        /// The record as resolve left it, before any plugin. Reads of it need no claim and make no order; it can't be
        /// written.
        fn base() -> Info = context_base;
        /// The reason of the writes that follow, one sentence for the users of `trainyard explain`; an empty text means
        /// none. It is cut at 1,024 characters.
        fn because(text: &str) = context_because;
        /// Tells the user; the TrainJob goes on. `field` is a path into the TrainJob or the runtime, as
        /// `spec.trainer.command`.
        fn warn(message: &str, field: Option<&str>) = context_warn;
        /// Refuses the TrainJob; the call goes on, so that further errors can be told. `field` is as with `warn`.
        fn error(message: &str, field: Option<&str>) = context_error;
        /// A line for the host's log; the level is `error`, `warn`, `info`, `debug` or `trace`, and any other ends the
        /// call.
        fn log(level: &str, line: &str) = context_log;
        /// Whether the host has a feature that came after 1.0.0. Unknown names are false.
        fn supports(feature: &str) -> bool = context_supports;
        /// A quantity in whole units, rounded up: `1500m` is 2, `1Ki` is 1024. None where it is no quantity or out of
        /// range.
        fn quantity_ceil(amount: &str) -> Option<i64> = context_quantity_ceil;
        /// A quantity in thousandths, rounded up: `1500m` is 1500, `2` is 2000. None where it is no quantity or out of
        /// range.
        fn quantity_milli(amount: &str) -> Option<i64> = context_quantity_milli;
        /// A text as a DNS label of at most `max` characters, and 63 at most: what is too long or holds other
        /// characters ends in a hash of the whole. Empty where `max` is below 8.
        fn fit_name(text: &str, max: u32) -> String = context_fit_name;
    }
}

handles! {
    /// The TrainJob. No plugin changes it.
    Job = job::Job {
        /// The TrainJob's name.
        fn name() -> String = job_name;
        /// The TrainJob's namespace.
        fn namespace() -> String = job_namespace;
        /// The TrainJob's UID; offline it is derived from namespace and name.
        fn uid() -> String = job_uid;
        /// Whether the TrainJob is suspended, by `spec.suspend`.
        fn suspended() -> bool = job_suspended;
        /// The value of a label of the TrainJob; none where it has no such label.
        fn label(key: &str) -> Option<String> = job_label;
        /// The value of an annotation of the TrainJob; none where it has no such annotation.
        fn annotation(key: &str) -> Option<String> = job_annotation;
        /// The kind of the runtime that it names: `TrainingRuntime` or `ClusterTrainingRuntime`.
        fn runtime_kind() -> String = job_runtime_kind;
        /// The name of the runtime that it names.
        fn runtime_name() -> String = job_runtime_name;
        /// The value of a label of the runtime; none where it has no such label.
        fn runtime_label(key: &str) -> Option<String> = job_runtime_label;
        /// The value of an annotation of the runtime; none where it has no such annotation.
        fn runtime_annotation(key: &str) -> Option<String> = job_runtime_annotation;
        /// The number of nodes: the TrainJob's, else the runtime's. Never 0.
        fn nodes() -> u32 = job_nodes;
        /// Processes per node where the TrainJob or the runtime's policy gives a number; none is not 1.
        fn processes_per_node() -> Option<u32> = job_processes_per_node;
        /// The TrainJob's `spec`. Each pointer that is read is a claim, in every phase.
        ///
        /// Needs the claim to read `job[POINTER]`.
        fn spec() -> Document = job_spec;
        /// This plugin's block of the runtime's `mlPolicy`, `podGroupPolicy` or `plugins`, with the defaults of its
        /// schema, and checked by it. An empty object where the plugin has none.
        fn config() -> Document = job_config;
        /// What the operator set for this plugin in the policy file. An empty object where nothing is set.
        fn operator_config() -> Document = job_operator_config;
    }
}

handles! {
    /// What the plugin may ask of the cluster. A ConfigMap by its name needs a claim, everything else a claim and a
    /// grant. Secrets are never among it.
    Lookups = lookups::Lookups {
        /// The object of that name: in the TrainJob's namespace, or of the cluster where the kind is cluster-scoped.
        /// None only where the API server does not serve the kind.
        ///
        /// Needs the claim to read `lookups[API-VERSION/KIND/NAME]`.
        fn get(api_version: &str, kind: &str, name: &str) -> Option<Document> = lookups_get;
        /// All objects of a kind in the TrainJob's namespace, or of the cluster where the kind is cluster-scoped;
        /// sorted by name.
        ///
        /// Needs the claim to read `lookups[API-VERSION/KIND/*]`.
        fn all(api_version: &str, kind: &str) -> Vec<Document> = lookups_all;
        /// Whether the API server serves the kind; offline, always.
        ///
        /// Needs the claim to read `lookups[API-VERSION/KIND/#]`.
        fn served(api_version: &str, kind: &str) -> bool = lookups_served;
    }
}

handles! {
    /// The objects of this plugin for this TrainJob.
    Objects = objects::Objects {
        /// The name that `emit` with the same arguments gives the object, in every phase: the TrainJob's name and the
        /// suffix, and, where content is given, a hash over it and the TrainJob's UID.
        fn name(api_version: &str, kind: &str, suffix: &str, content: Option<&str>) -> String = objects_name;
        /// A new object, in build only. `kind` is `ConfigMap` of `v1` for now; the suffix begins with `-`. Anything
        /// else, the same name twice, or a name that the host keeps for its own objects (one that ends in
        /// `-runtime-snapshot` or `-trainyard`) ends the call. A name that another plugin emits too refuses the
        /// TrainJob.
        ///
        /// Needs the claim to write `objects[API-VERSION/KIND/SUFFIX]`.
        fn emit(api_version: &str, kind: &str, suffix: &str, content: Option<&str>) -> Object = objects_emit;
    }
}

handles! {
    /// One object to emit.
    Object = objects::Object {
        /// Its name, as `objects.name` gives it in every phase.
        fn name() -> String = object_name;
        /// Sets a label of the object.
        fn set_label(key: &str, value: &str) = object_set_label;
        /// Sets an annotation of the object.
        fn set_annotation(key: &str, value: &str) = object_set_annotation;
        /// Appends to the text of a key of `data`, which begins empty. A key that holds bytes, or that no ConfigMap
        /// takes, ends the call.
        fn append(key: &str, text: &str) = object_append;
        /// Sets the bytes of a key of `binaryData`. A key that holds text, or that no ConfigMap takes, ends the call.
        fn set_binary(key: &str, value: &[u8]) = object_set_binary;
        /// Nobody can change its content once it is applied.
        fn set_immutable() = object_set_immutable;
        /// How it is applied. In every mode it is made before the JobSet, and made again where it is missing. It is
        /// changed, with `with-jobset` (the default), only while the JobSet has never run; with `once`, never: what is
        /// there is used; with `while-suspended`, only while the JobSet is suspended, also one that has run; with
        /// `live`, whenever it differs. Any other text ends the call.
        fn set_apply(mode: &str) = object_set_apply;
    }
}

handles! {
    /// Opaque JSON that is read by RFC 6901 pointer (the empty pointer is the whole), so that a guest needs no parser.
    /// A pointer to nothing reads as none, zero or empty; a pointer that is no RFC 6901 pointer ends the call.
    Document = types::Document {
        /// What stands there: `object`, `array`, `string`, `number`, `boolean` or `null`; none where nothing does.
        fn kind(at: &str) -> Option<String> = document_kind;
        /// The string there; none where anything else is.
        fn text(at: &str) -> Option<String> = document_text;
        /// The number there, where it is an integer that fits; otherwise none.
        fn integer(at: &str) -> Option<i64> = document_integer;
        /// The boolean there; none where anything else is.
        fn boolean(at: &str) -> Option<bool> = document_boolean;
        /// The number of items of the array or members of the object there; otherwise 0.
        fn len(at: &str) -> u32 = document_len;
        /// The keys of the object there, in its order; otherwise empty.
        fn keys(at: &str) -> Vec<String> = document_keys;
        /// The JSON text of what is there; none where nothing is.
        fn json(at: &str) -> Option<String> = document_json;
    }
}
