//! The schemas of TrainJob and both runtimes, and admission by them.
//!
//! - [`documents`] are the schemas, and the CRDs that are generated from them.
//! - [`admission`] does to an object of these kinds what an API server with the CRDs does, and converts old forms first. The rules of
//!   an API server are in `trainyard-structural`.

pub mod admission;
pub mod documents;

pub use admission::Admission;
