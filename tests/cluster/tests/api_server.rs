//! Tests that need only an API server: CRDs, schemas, the kustomizations of deploy/, and the admission of TrainJobs and pods.

// Tests may panic.
#![allow(clippy::indexing_slicing)]

mod added_containers_are_admitted;
mod admission_answers_as_validate;
mod common;
mod crds_install_and_merge;
mod documented_commands_work;
mod kustomizations_install;
mod labeled_roles_give_only_what_their_author_has;
mod pods_are_refused_as_in_the_table;
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
        .tests(
            "pods_are_refused_as_in_the_table",
            pods_are_refused_as_in_the_table::tests(),
        )
        .tests(
            "documented_commands_work",
            documented_commands_work::tests(),
        )
        .tests(
            "documented_commands_work",
            documented_commands_work::tests_of_replaced(),
        )
        .tests("kustomizations_install", kustomizations_install::tests())
        .tests(
            "labeled_roles_give_only_what_their_author_has",
            labeled_roles_give_only_what_their_author_has::tests(),
        )
        .tests(
            "added_containers_are_admitted",
            added_containers_are_admitted::tests(),
        )
        .tests(
            "admission_answers_as_validate",
            admission_answers_as_validate::tests(),
        )
        .tests(
            "admission_answers_as_validate",
            admission_answers_as_validate::tests_without_webhooks(),
        )
        .run())
}
