//! The info record and the rules over it: claims and grants on every access, a journal of every write, commit and
//! rollback, manifests, and the order in which plugins run.
//!
//! This crate knows neither Kubernetes clients nor WebAssembly. A policy is whatever implements [`policy::Policy`]: a
//! sandboxed component, or a native type in tests and benchmarks. Both reach the record through [`call::Call`] alone.
//!
//! What a plugin is:
//! - [`manifest`] is what it declares, [`claims`] are what it reads and writes with what the operator grants, [`reserved`] are names that the host
//!   keeps for itself, [`schema`] is that of its configuration, and [`plugin`] is all of it once the plugin is loaded.
//! - [`plan`] orders plugins by their claims, and refuses those that conflict.
//!
//! What a call works on:
//! - [`record`] is the one copy of what is known of the pods; [`job`] is the TrainJob, [`facts`] are the operator's, [`lookup`] are objects of the
//!   cluster, and [`pod_requests`] is what a scheduler counts.
//! - [`object`] is what plugins emit, and [`material`] the keys in it, which nobody here holds.
//! - [`session`] is one TrainJob's way through the plugins, [`call`] one call of one phase: a method here for each method of the contract
//!   ([`contract`]), bounded by [`limits`] and a [`deadline`]. [`policy`] says how it ended, [`phase`] which it was. [`pipeline`] calls the plugins of a plan, phase by phase.
//!
//! What all of them use: [`value`] and [`quantity`], [`names`] that a cluster takes, [`text`] of guests, and the `digest` of what is compared.

pub mod call;
pub mod claims;
pub mod contract;
pub mod deadline;
mod digest;
pub mod facts;
pub mod job;
pub mod limits;
pub mod lookup;
pub mod manifest;
pub mod material;
pub mod names;
pub mod object;
pub mod phase;
pub mod pipeline;
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
