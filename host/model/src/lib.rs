//! The info record and the rules over it: claims and grants on every access, a journal of every write, commit and
//! rollback, manifests, and the order in which plugins run.
//!
//! This crate knows neither Kubernetes clients nor WebAssembly. A policy is whatever implements [`policy::Policy`]: a
//! sandboxed component, or a native type in tests and benchmarks. Both reach the record through [`call::Call`] alone.

pub mod call;
pub mod claims;
pub mod contract;
pub mod deadline;
pub mod facts;
pub mod job;
pub mod limits;
pub mod lookup;
pub mod manifest;
pub mod material;
pub mod names;
pub mod object;
pub mod plan;
pub mod plugin;
pub mod pod_requests;
pub mod policy;
pub mod quantity;
pub mod record;
pub mod reserved;
pub mod schema;
pub mod session;
pub mod text;
pub mod value;
pub mod wording;
