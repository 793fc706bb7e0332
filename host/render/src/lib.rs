//! The pure path from a TrainJob and its runtime to a JobSet: select, resolve, plan, transform, derive, build, check,
//! assemble. A function of its inputs; policies run through [`trainyard_model::policy::Policy`] alone.
//!
//! In the order of the path:
//! - `renderer`: the path itself. It ends with a [`Rendered`] (`rendered`), or with [`Stopped`]: plugins look something up, or the TrainJob is
//!   refused.
//! - `select`: which plugins are active; `skipped` are those that a process goes on without.
//! - `resolve`: the TrainJob and its runtime become the base record.
//! - The plugins run by [`trainyard_model::pipeline`]; `plugin_log` writes what they log. `additions` and `together` are what several plugins
//!   add to one list, and how much.
//! - `journal`: everything that is written on this path, with who asked for it.
//! - `invariants` and `entries`: what no pod may be, and how many entries an object may have.
//! - `assemble`: the record, written into the runtime's template, by the table of `shape`.
//! - `explain`: who set each field; `place` is where a place of the record stands in the JobSet.
//!
//! `problem` is what is wrong with a TrainJob or its runtime. `catalog` holds the objects of one run of the command line, and renders them.

mod additions;
mod assemble;
mod catalog;
mod entries;
mod explain;
mod invariants;
mod journal;
mod place;
mod plugin_log;
mod problem;
mod rendered;
mod renderer;
mod resolve;
mod select;
mod shape;
mod skipped;
mod together;

pub use trainyard_model::pipeline::PendingLookup;

pub use self::{
    catalog::{Catalog, Counts, Job},
    explain::{NoSuchField, Provenance, Setter, Step as ProvenanceStep, env_vars, path_in_job_set},
    problem::{InputObject, Problem, Warning},
    rendered::{Rendered, RenderedObject},
    renderer::Renderer,
    resolve::ClusterFacts,
    select::{Active, plan_of},
    skipped::{Declared, SkippedPlugin},
};

/// Why a rendering has no result.
pub type Stopped = trainyard_model::pipeline::Stopped<Problem>;

/// The lookups that a rendering waits for.
pub type Needs = trainyard_model::pipeline::Needs<Problem>;
