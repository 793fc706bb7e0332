//! The tests of the harness itself: they are run when it changed, by `make test-harness`.

mod accounts_may_do_what_rbac_lets_them;
mod the_cluster_outlives_its_api_server;
mod the_cluster_runs_jobs;
mod the_control_plane_serves;
mod the_proxy_injects_faults;

use std::process::ExitCode;

use trainyard_cluster::Program;

fn main() -> ExitCode {
    Program::default()
        .tests(
            "the_control_plane_serves",
            the_control_plane_serves::tests(),
        )
        .tests(
            "accounts_may_do_what_rbac_lets_them",
            accounts_may_do_what_rbac_lets_them::tests(),
        )
        .tests(
            "the_proxy_injects_faults",
            the_proxy_injects_faults::tests(),
        )
        .tests("the_cluster_runs_jobs", the_cluster_runs_jobs::tests())
        .tests(
            "the_cluster_outlives_its_api_server",
            the_cluster_outlives_its_api_server::tests(),
        )
        .run()
}
