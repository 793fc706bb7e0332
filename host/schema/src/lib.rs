//! The schemas of TrainJob and both runtimes, and admission by them.
//!
//! - [`documents`] are the schemas, and the CRDs that are generated from them.
//! - [`admission`] converts old forms of an object, and then admits it as an API server with the CRDs does. The rules of an API server
//!   are in `trainyard-structural`.

pub mod admission;
pub mod documents;

pub use admission::Admission;
