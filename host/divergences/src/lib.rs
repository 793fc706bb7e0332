//! How Trainyard differs from the reference, the Kubeflow Trainer: the rows of `tests/reference/divergences.md` and of the pages of that name
//! of the plugins, each with the matcher that recognizes its differences.
//!
//! The test `differences_from_the_reference_are_listed` compares what both sides make of the cases and of generated inputs, and fails for a
//! difference without a row. `trainyard diff` and the controller's shadow mode compare what the reference made in a cluster, with the same
//! matchers, so that they report what the pages say.

#![allow(
    clippy::indexing_slicing,
    reason = "only JSON values are indexed, which are null where a field is absent"
)]

pub mod difference;
pub mod live;
mod normal;
pub mod plugins;
pub mod rows;
pub mod seen;
pub mod table;
