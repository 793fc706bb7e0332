//! The `trainyard` command. `cli` lists its commands; each is a module of the same name:
//! - TrainJobs in files: `render`, `explain` (which also explains live TrainJobs), `plan`, `replay` and `validate`;
//! - the cluster: `controller`, `why`, `support` (`support-bundle`), `rbac`, `crds` and `runtimes`; `diff` compares
//!   one that the Kubeflow Trainer runs in;
//! - plugins: `plugin` and the hidden `compile_worker`;
//! - the operator's files: `schemas`, with `policy-schema` and `config-schema`;
//! - the shell: `completions`, and `kubectl`, whose plugin this program can be.
//!
//! What several commands share:
//! - `args`: their arguments;
//! - `input`: the files and plugins of one command, and the rendering of its TrainJobs. `stats` measures its plugin calls;
//! - `load`: the plugins. `built_ins` has those of this program, and `policy` the operator's settings for them;
//! - `recording`: the bundles that `replay` renders again. `difference` finds the first difference between two values, and
//!   `field_changes` all fields that differ between two renderings;
//! - `upgrade`: what a new version of a plugin changes, and whom it breaks;
//! - `cluster`: the client of an interactive command. `live_objects` reads objects with it, `replicas` the controller's pods, and `apply`
//!   applies objects;
//! - `registries`: the client of registries of plugins. `signers` says whose signatures count, and `sources` resolves the sources of
//!   PolicyPlugins, as the controller does;
//! - `output`, `report` and `log`: standard output, the errors with the exit code, and the log.

mod apply;
mod args;
mod built_ins;
mod cli;
mod cluster;
mod cluster_plugins;
mod compile_worker;
mod completions;
mod controller;
mod crds;
mod diff;
mod difference;
mod explain;
mod field_changes;
mod finding;
mod input;
mod kubectl;
mod live_objects;
mod load;
mod log;
mod output;
mod plan;
mod plugin;
mod policy;
mod rbac;
mod recording;
mod registries;
mod render;
mod replay;
mod replicas;
mod report;
mod runtimes;
mod schemas;
mod signers;
mod sources;
mod stats;
mod support;
mod upgrade;
mod validate;
mod why;

use std::process::ExitCode;

/// More than a third of a rendering's instructions were in glibc's allocator (docs/benchmarks.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // rustls needs a default provider before the first connection if several are linked.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match cli::Cli::main() {
        Ok(code) => code,
        Err(error) if error.use_stderr() => report::wrong_usage(&error),
        // Help, or the version.
        Err(error) => error.exit(),
    }
}
