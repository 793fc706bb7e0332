//! CEL rules (`x-kubernetes-validations`), compiled once and evaluated by the `cel` crate.
//!
//! That crate evaluates; what Kubernetes adds is here: the names of fields ([`escape`]), values typed by the schema
//! ([`values`]), lists that are equal in any order ([`keyed`]), the check that a rule names only declared fields ([`types`]), and
//! which value was there before ([`evaluate`]).

mod environment;
mod escaping;
mod evaluate;
mod field_path;
mod keyed;
mod matches;
mod reads;
mod rule;
mod types;
mod unreadable;
mod values;

pub(crate) use escaping::escape;
pub(crate) use evaluate::check;
pub(crate) use rule::Rules;
