//! The schemas of TrainJob and both runtimes, and admission by them.
//!
//! - [`documents`] are the schemas, and the CRDs that are generated from them.
//! - [`admission`] converts old forms of an object, and then admits it as an API server with the CRDs does. The rules of an API server
//!   are in `trainyard-structural`. `advice` says what to write instead of a value that a schema refuses.

pub mod admission;
mod advice;
pub mod documents;

pub use admission::Admission;
