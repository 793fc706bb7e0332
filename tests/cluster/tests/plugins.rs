//! Plugins of a registry, declared in the cluster: `make test-plugins`. It builds the registry and cosign from their Go modules, which takes
//! minutes.

mod common;
mod plugins_are_declared_in_the_cluster;

use std::process::ExitCode;

use trainyard_cluster::Program;

fn main() -> ExitCode {
    Program::default()
        .tests(
            "plugins_are_declared_in_the_cluster",
            plugins_are_declared_in_the_cluster::tests(),
        )
        .run()
}
