//! Plugins of a registry, declared in the cluster: `make test-plugins`. It builds the registry and cosign from their Go modules, which takes
//! minutes.

// Tests may panic.
#![allow(clippy::indexing_slicing)]

mod common;
mod hostile_plugins_change_nothing_that_runs;
mod plugins_are_declared_in_the_cluster;

use std::process::ExitCode;

use trainyard_cluster::Program;

fn main() -> ExitCode {
    Program::default()
        .tests(
            "hostile_plugins_change_nothing_that_runs",
            hostile_plugins_change_nothing_that_runs::tests(),
        )
        .tests(
            "plugins_are_declared_in_the_cluster",
            plugins_are_declared_in_the_cluster::tests(),
        )
        .run()
}
