//! The schema documents of TrainJob and both runtimes, and the CRDs that are made of them.
//!
//! A document is written by hand, but for Kubernetes' own types: `{$kubernetes: io.k8s.api.core.v1.EnvVar}` stands for one,
//! and members beside it replace or add to those of the type. `{$document: env}` stands for another document.

mod compact;
mod crd;
mod expand;
mod kubernetes;
mod ours;

pub use compact::compact;
pub use crd::Kind;
pub use expand::{DocumentError, expand};
