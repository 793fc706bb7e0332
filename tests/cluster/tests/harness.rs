//! Tests of the harness itself: `make test-harness`, of which `make test-interactive` is a part.

// Tests may panic.
#![allow(clippy::indexing_slicing)]

mod containers_run_as_processes;
mod interactive_cluster_stops_on_ctrl_c;
mod service_accounts_have_the_permissions_of_their_roles;
mod test_cluster_runs_job_sets;
mod test_cluster_survives_api_server_restarts;
mod test_control_plane_enforces_schemas;
mod test_proxy_injects_faults;

use std::process::ExitCode;

use trainyard_cluster::Program;

fn main() -> ExitCode {
    Program::default()
        .tests(
            "test_control_plane_enforces_schemas",
            test_control_plane_enforces_schemas::tests(),
        )
        .tests(
            "service_accounts_have_the_permissions_of_their_roles",
            service_accounts_have_the_permissions_of_their_roles::tests(),
        )
        .tests(
            "test_proxy_injects_faults",
            test_proxy_injects_faults::tests(),
        )
        .tests(
            "test_cluster_runs_job_sets",
            test_cluster_runs_job_sets::tests(),
        )
        .tests(
            "containers_run_as_processes",
            containers_run_as_processes::tests(),
        )
        .tests(
            "test_cluster_survives_api_server_restarts",
            test_cluster_survives_api_server_restarts::tests(),
        )
        .tests(
            "interactive_cluster_stops_on_ctrl_c",
            interactive_cluster_stops_on_ctrl_c::tests(),
        )
        .run()
}
