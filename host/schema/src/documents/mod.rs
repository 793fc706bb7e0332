//! The schema documents of TrainJob and both runtimes, and the CRDs that are generated from them.
//!
//! Documents are written by hand, except for Kubernetes' own types: `{$kubernetes: io.k8s.api.core.v1.EnvVar}` is a placeholder for
//! one. Members beside it are added to those of the type, or replace them. `{$document: env}` is a placeholder for another document.
//! `$union` makes a schema one of the unions to which plugins add members, with the schema in `plugins/NAME/schema.yaml`.

mod compact;
mod crd;
mod error;
mod expand;
mod kind;
mod kubernetes;
mod ours;
mod unions;

pub use compact::compact;
pub use crd::definition;
pub use error::DocumentError;
pub use expand::expand;
pub use kind::Kind;
pub use unions::union_keys;
