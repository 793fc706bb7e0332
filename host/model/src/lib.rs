//! The record of a TrainJob's pods and its rules: claims and grants for every access, the committed writes from which the journal is made,
//! commit and rollback, manifests, and the order in which plugins run.
//!
//! This crate depends on neither Kubernetes clients nor WebAssembly. A plugin is a type that implements [`plugin::Plugin`]: a sandboxed
//! component, or a native type in tests and benchmarks. Both access the record only through [`call::Call`].
//!
//! Plugins:
//! - [`manifest`] is what a plugin declares: its [`claims`], and the [`schema`] of its configuration. [`plugin_info`] is a loaded plugin with
//!   the operator's settings. [`reserved`] has the names that are reserved for the host.
//! - [`plan`] orders plugins by their claims, and refuses conflicts.
//!
//! Inputs and results of a call:
//! - [`record`] describes the pods; [`job`] is the TrainJob, [`facts`] are the operator's facts, [`lookup`] has objects of the cluster, and
//!   [`pod_requests`] computes what a scheduler counts.
//! - [`object`] has the objects that plugins emit, and [`material`] describes the key material in them.
//!
//! Calls:
//! - [`call`] is one call of one [`phase`], with a method for each method of the [`contract`], bounded by [`limits`] and a [`deadline`].
//!   [`plugin`] has the trait of plugins, and the outcomes of calls.
//! - [`session`] has the calls of one TrainJob, and [`pipeline`] calls the plugins of a plan, phase by phase.
//!
//! Helpers: [`value`] and [`quantity`], rules for [`names`], cleaning of [`text`], and the [`digest`] of a value.

#![warn(missing_docs)]

pub mod call;
pub mod claims;
pub mod contract;
pub mod deadline;
pub mod digest;
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
pub mod plugin_info;
pub mod pod_requests;
pub mod quantity;
pub mod record;
pub mod reserved;
pub mod schema;
pub mod session;
pub mod text;
pub mod value;
