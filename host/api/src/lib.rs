//! The Kubernetes objects that Trainyard reads and writes: a typed header over JSON values.
//!
//! From bytes to objects:
//! - [`yaml`] reads YAML and JSON as Kubernetes' own tools do, and writes YAML that any reader takes back as it was.
//! - [`inputs`] reads files, folders and standard input into [`object::EmittedObject`]s, and reports all that is wrong in one run;
//!   `kustomization` tells a folder's Kustomization from its objects. [`size`] is what a cluster stores at most.
//! - [`dialect`] turns what was written for earlier releases into what the current one reads, [`nulls`] drops what an API server drops, and
//!   [`admitted`] is an object after both, with all that stands against it. [`known`] tells our kinds from those of others.
//!
//! From objects to types:
//! - [`trainjob`], [`runtime`], [`runtime_patch`] and [`plugin_use`] are typed headers: what Trainyard decides on has a type. Templates and other
//!   fragments of Kubernetes' API stay JSON values, so that nothing that their author wrote is lost and nothing is invented.
//!   [`fields`] reads a field with its path, and [`names`] are the constants of the API.
//! - [`merge`] patches a JobSet's spec as Kubernetes does, and says where two differ.
//! - [`jobset`] and [`list`] are what comes out.
//!
//! Every error ([`error`]) names the place: file, line or document, object and field ([`path`]), as Kubernetes spells it.

pub mod admitted;
pub mod dialect;
pub mod error;
pub mod fields;
pub mod inputs;
pub mod jobset;
pub mod known;
mod kustomization;
pub mod list;
pub mod merge;
pub mod names;
pub mod nulls;
pub mod object;
pub mod plugin_use;
pub mod runtime;
pub mod runtime_patch;
pub mod size;
pub mod trainjob;
pub mod yaml;

pub use admitted::Admitted;
pub use error::{InputError, InputErrors, Located, Place};
pub use fields::{FieldError, FieldErrors, FieldProblem};
pub use inputs::Inputs;
pub use jobset::JobSet;
pub use known::{FirstPlaces, Known};
pub use object::{Metadata, Object, ObjectId, Source};
pub use plugin_use::PluginUse;
pub use runtime::Runtime;
pub use runtime_patch::RuntimePatch;
pub use trainjob::TrainJob;
pub use trainyard_text::{FieldPath, path};

/// A map of strings that keeps the order in which its author wrote it: labels, annotations.
pub type StringMap = indexmap::IndexMap<String, String>;
