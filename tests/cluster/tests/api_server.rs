//! What an API server alone is needed for: definitions, schemas, and what kustomize makes of deploy/.

mod the_definitions_install_and_merge;
mod the_kustomization_installs;
mod the_reference_clients_lose_nothing;
mod the_schema_agrees_with_the_server;

use std::process::ExitCode;

use anyhow::Result;
use trainyard_cluster::Program;

fn main() -> Result<ExitCode> {
    Ok(Program::default()
        .tests(
            "the_schema_agrees_with_the_server",
            the_schema_agrees_with_the_server::tests()?,
        )
        .tests(
            "the_definitions_install_and_merge",
            the_definitions_install_and_merge::tests()?,
        )
        .tests(
            "the_reference_clients_lose_nothing",
            the_reference_clients_lose_nothing::tests()?,
        )
        .tests(
            "the_kustomization_installs",
            the_kustomization_installs::tests(),
        )
        .run())
}
