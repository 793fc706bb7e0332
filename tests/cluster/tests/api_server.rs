//! Tests that need only an API server: CRDs, schemas, and the kustomizations of deploy/.

mod crds_install_and_merge;
mod kustomizations_install;
mod reference_clients_lose_nothing;
mod schema_agrees_with_the_api_server;

use std::process::ExitCode;

use anyhow::Result;
use trainyard_cluster::Program;

fn main() -> Result<ExitCode> {
    Ok(Program::default()
        .tests(
            "schema_agrees_with_the_api_server",
            schema_agrees_with_the_api_server::tests()?,
        )
        .tests("crds_install_and_merge", crds_install_and_merge::tests()?)
        .tests(
            "reference_clients_lose_nothing",
            reference_clients_lose_nothing::tests()?,
        )
        .tests("kustomizations_install", kustomizations_install::tests())
        .run())
}
