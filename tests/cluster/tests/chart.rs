//! The Helm chart on a real API server: `make test-chart`. It builds helm from Go modules, which takes minutes.

// Tests may panic.
#![allow(clippy::indexing_slicing)]

mod api_servers_trust_the_controllers_certificate;
mod chart_installs_jobset;
mod chart_installs_plugins;
mod chart_is_accepted_by_the_api_server;
mod chart_keeps_train_jobs;
mod charts_replace_each_other;
mod common;
mod dashboard_shows_what_a_controller_did;
mod jobset_outlives_helm_releases;

use std::process::ExitCode;

use trainyard_cluster::Program;

fn main() -> ExitCode {
    Program::default()
        .tests(
            "chart_is_accepted_by_the_api_server",
            chart_is_accepted_by_the_api_server::tests(),
        )
        .tests(
            "api_servers_trust_the_controllers_certificate",
            api_servers_trust_the_controllers_certificate::tests(),
        )
        .tests("chart_installs_jobset", chart_installs_jobset::tests())
        .tests("chart_installs_plugins", chart_installs_plugins::tests())
        .tests("chart_keeps_train_jobs", chart_keeps_train_jobs::tests())
        .tests(
            "charts_replace_each_other",
            charts_replace_each_other::tests(),
        )
        .tests(
            "dashboard_shows_what_a_controller_did",
            dashboard_shows_what_a_controller_did::tests(),
        )
        .tests(
            "jobset_outlives_helm_releases",
            jobset_outlives_helm_releases::tests(),
        )
        .run()
}
