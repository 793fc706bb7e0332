//! The Kubernetes objects that Trainyard reads and writes: typed headers over JSON values.
//!
//! From bytes to objects:
//! - [`yaml`] parses YAML and JSON as Kubernetes' own tools do, and writes YAML that every parser reads back as the same value.
//! - [`inputs`] reads files, folders and standard input into an [`object::Object`] each, and reports all errors of one run.
//!   `kustomization` recognizes a folder's Kustomization, and [`size`] is the maximum size of an object in a cluster.
//! - [`dialect`] converts the forms of earlier releases to the current one, and [`nulls`] drops nulls as an API server does. [`admitted`] is
//!   an object after both, with its errors and warnings. [`object_role`] is what an object is to Trainyard.
//!
//! From objects to types:
//! - [`trainjob`], [`runtime`], [`runtime_patch`], [`plugin_use`] and [`plugin_overrides`] are typed headers: fields on which Trainyard decides
//!   have a type. Templates and other fragments of Kubernetes' API stay JSON values, so nothing that their author wrote is lost. [`fields`] reads a field
//!   with its path, [`ancestor`] the step that a replicated job runs, and [`names`] are the constants of the API.
//! - [`merge`] patches a JobSet's spec as Kubernetes does, and compares two specs.
//! - [`jobset`] and [`list`] are the output.
//!
//! Every error ([`error`]) has its [`location`]: file, line or document, object and field ([`path`]), as Kubernetes spells it.

pub mod admitted;
pub mod ancestor;
pub mod dialect;
pub mod error;
pub mod fields;
pub mod inputs;
pub mod jobset;
mod kustomization;
pub mod list;
pub mod location;
pub mod merge;
pub mod names;
pub mod nulls;
pub mod object;
pub mod object_role;
pub mod plugin_overrides;
pub mod plugin_use;
pub mod runtime;
pub mod runtime_patch;
pub mod size;
pub mod trainjob;
pub mod yaml;

pub use admitted::Admitted;
pub use error::{InputError, InputErrors};
pub use fields::{FieldError, FieldErrors, FieldProblem};
pub use inputs::Inputs;
pub use jobset::JobSet;
pub use kustomization::{fields_beyond_the_folder, is_kustomization};
pub use location::{Located, Location, ObjectId, Source};
pub use object::{Metadata, Object};
pub use object_role::{FirstLocations, ObjectRole};
pub use plugin_overrides::PluginOverrides;
pub use plugin_use::PluginUse;
pub use runtime::Runtime;
pub use runtime_patch::RuntimePatch;
pub use trainjob::TrainJob;
pub use trainyard_text::{FieldPath, StackPath, json, path};

/// A map of strings that keeps the order in which its author wrote it: labels, annotations.
pub type StringMap = indexmap::IndexMap<String, String>;
