//! Renders a TrainJob and its runtime to a JobSet, as a pure function of its inputs. Plugins run through
//! [`trainyard_model::plugin::Plugin`].
//!
//! In the order of a rendering:
//! - `renderer`: [`Renderer::render`], which returns a [`Rendered`] (`rendered`), or a [`Stopped`] if the TrainJob is refused or plugins look
//!   up objects.
//! - `select`: which plugins are active, and which are disabled for the TrainJob. `skipped` describes the plugins that a process runs without.
//! - `resolve`: the base record of a TrainJob and its runtime.
//! - [`trainyard_model::pipeline`] runs the plugins, and `plugin_log` writes what they log. `additions` and `totals` have the rules for
//!   what several plugins add.
//! - `journal`: every change of the record, with its source.
//! - `authors`: which object has the field that a problem or warning is about.
//! - `invariants` and `entries`: the checks of the final pods and objects, and the maximum number of entries of an object.
//! - `validation`: checks of the rendered JobSet, its Jobs and pods, and of the metadata of other objects, by the rules of JobSet and of
//!   Kubernetes' API server.
//! - `assemble`: writes the record into the runtime's template, by the table of [`trainyard_model::record::Field`]. `json` has the edits.
//! - `unplaceable`: warnings about pods that no machine can run.
//! - `differences`: warnings about what the reference, or Kueue with its code, computes differently.
//! - `explain`: what set each field. `place` finds an entry of the record in the JobSet, and `record_path` translates paths of the record.
//!
//! `problem` has the errors of TrainJobs and runtimes. `catalog` holds the objects of an input, such as the command line's, and renders its
//! TrainJobs. `input_job` is one of these, with the locations of its problems.

mod additions;
mod assemble;
mod authors;
mod catalog;
mod differences;
mod entries;
mod explain;
mod input_job;
mod invariants;
mod journal;
mod json;
mod place;
mod plugin_log;
mod problem;
mod record_path;
mod rendered;
mod renderer;
mod resolve;
mod select;
mod skipped;
mod totals;
mod unplaceable;
mod validation;

pub use trainyard_model::pipeline::PendingLookup;

pub use self::{
    catalog::{Catalog, Counts},
    explain::{NoSuchField, Provenance, ProvenanceStep, Setter, env_vars, path_in_job_set},
    input_job::InputJob,
    problem::{InputObject, Problem, Warning},
    rendered::{Rendered, RenderedObject},
    renderer::Renderer,
    resolve::ClusterFacts,
    select::{Active, DisabledBy, DisabledPlugin, PlannedPlugins, plan_of},
    skipped::{Declared, SkippedPlugin},
};

/// Why a rendering has no result.
pub type Stopped = trainyard_model::pipeline::Stopped<Problem>;

/// The lookups that a rendering waits for.
pub type Needs = trainyard_model::pipeline::Needs<Problem>;
