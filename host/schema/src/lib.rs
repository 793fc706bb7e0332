//! What an API server does to an object on the way in, and the CRDs by which it does it.
//!
//! - [`structural`] is a structural schema of Kubernetes, compiled once: pruning, defaults, validation and CEL rules.
//! - [`admission`] is the way in for objects of these kinds, old forms included.
//! - [`documents`] are the schemas of TrainJob and both runtimes, and the CRDs that are made of them.

pub mod admission;
pub mod documents;
pub mod structural;

pub use admission::Admission;
