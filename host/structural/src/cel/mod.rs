//! Compiles and evaluates CEL rules (`x-kubernetes-validations`) with the `cel` crate.
//!
//! This module adds what Kubernetes adds to CEL: the names of fields ([`escape`]), values with the types of the schema ([`values`]),
//! equality of lists in any order ([`keyed`]), type checks ([`types`]) and the old values of an update ([`evaluate`]).

mod compile;
mod environment;
mod escaping;
mod evaluate;
mod field_path;
mod keyed;
mod matches;
mod types;
mod unreadable;
mod values;

pub(crate) use compile::compiled;
pub(crate) use escaping::escape;
pub(crate) use evaluate::check;
