//! Controllers that are killed, and API servers that fail or lose their last writes.

// Tests may panic.
#![allow(clippy::indexing_slicing)]

mod common;
mod controller_survives_api_server_outages;
mod controllers_do_not_grow;
mod killed_controllers_converge_after_restart;
mod restored_backups_are_noticed;

use std::process::ExitCode;

use trainyard_cluster::Program;

fn main() -> ExitCode {
    Program::default()
        .tests(
            "killed_controllers_converge_after_restart",
            killed_controllers_converge_after_restart::tests(),
        )
        .tests(
            "controller_survives_api_server_outages",
            controller_survives_api_server_outages::tests(),
        )
        .tests(
            "restored_backups_are_noticed",
            restored_backups_are_noticed::tests(),
        )
        .tests("controllers_do_not_grow", controllers_do_not_grow::tests())
        .run()
}
