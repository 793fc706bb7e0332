//! How Trainyard differs from the reference, the Kubeflow Trainer: the rows of `tests/reference/divergences.md` and of the pages of that name
//! of the plugins, each with the matcher that recognizes its differences.
//!
//! The test `differences_from_the_reference_are_listed` compares what both sides make of the cases and of generated inputs, and fails for a
//! difference without a row. `trainyard diff` and the controller's shadow mode compare what the reference made in a cluster, with the same
//! matchers, so that they report what the pages say.
//!
//! - `answer`: what a side makes of an input, and what a difference is. `normal` and `form` are the form in which objects are compared, and
//!   `difference` compares them. `maps` says which fields have keys that their author chooses;
//! - `seen`: a difference with its TrainJob and its runtime, for the matchers;
//! - `expected`: what Trainyard's value has to be there;
//! - `rows`: the matchers, and `plugins` those of the policies. `listing` has all of them, and `table` what the pages say about them;
//! - `live`: the same for objects of a cluster.

#![allow(
    clippy::indexing_slicing,
    reason = "only JSON values are indexed, which are null where a field is absent"
)]

pub mod answer;
pub mod difference;
mod expected;
mod form;
pub mod listing;
pub mod live;
pub mod maps;
mod normal;
pub mod plugins;
pub mod rows;
pub mod seen;
pub mod table;
