//! The controller on clusters that work.

// Tests may panic.
#![allow(clippy::indexing_slicing)]

mod changed_lookups_trigger_a_reconcile;
mod common;
mod events_report_the_same_errors_as_render;
mod flux_train_jobs_run;
mod foreign_objects_are_left_unchanged;
mod gang_train_jobs_run;
mod gangs_wait_for_their_crd;
mod jax_and_xgboost_train_jobs_run;
mod kubectl_get_shows_why_train_jobs_wait;
mod mpi_train_jobs_run;
mod plugins_are_loaded_from_a_folder;
mod pods_report_progress;
mod printed_roles_are_sufficient;
mod released_clients_work;
mod resource_claims_are_allocated;
mod shipped_runtimes_are_accepted;
mod torchtune_train_jobs_run;
mod train_jobs_are_suspended_and_resumed;
mod train_jobs_run_to_their_end;
mod train_jobs_that_cannot_start_say_why;
mod train_jobs_wait_for_missing_objects;
mod undecodable_objects_block_no_others;

use std::process::ExitCode;

use trainyard_cluster::Program;

fn main() -> ExitCode {
    Program::default()
        .tests(
            "train_jobs_run_to_their_end",
            train_jobs_run_to_their_end::tests(),
        )
        .tests(
            "train_jobs_are_suspended_and_resumed",
            train_jobs_are_suspended_and_resumed::tests(),
        )
        .tests(
            "train_jobs_that_cannot_start_say_why",
            train_jobs_that_cannot_start_say_why::tests(),
        )
        .tests(
            "foreign_objects_are_left_unchanged",
            foreign_objects_are_left_unchanged::tests(),
        )
        .tests(
            "plugins_are_loaded_from_a_folder",
            plugins_are_loaded_from_a_folder::tests(),
        )
        .tests(
            "plugins_are_loaded_from_a_folder",
            plugins_are_loaded_from_a_folder::tests_with_an_unknown_entry(),
        )
        .tests(
            "printed_roles_are_sufficient",
            printed_roles_are_sufficient::tests(),
        )
        .tests("released_clients_work", released_clients_work::tests())
        .tests("pods_report_progress", pods_report_progress::tests())
        .tests(
            "changed_lookups_trigger_a_reconcile",
            changed_lookups_trigger_a_reconcile::tests(),
        )
        .tests(
            "train_jobs_wait_for_missing_objects",
            train_jobs_wait_for_missing_objects::tests(),
        )
        .tests(
            "undecodable_objects_block_no_others",
            undecodable_objects_block_no_others::tests(),
        )
        .tests(
            "resource_claims_are_allocated",
            resource_claims_are_allocated::tests(),
        )
        .tests(
            "events_report_the_same_errors_as_render",
            events_report_the_same_errors_as_render::tests(),
        )
        .tests(
            "kubectl_get_shows_why_train_jobs_wait",
            kubectl_get_shows_why_train_jobs_wait::tests(),
        )
        .tests(
            "shipped_runtimes_are_accepted",
            shipped_runtimes_are_accepted::tests(),
        )
        .tests("flux_train_jobs_run", flux_train_jobs_run::tests())
        .tests(
            "jax_and_xgboost_train_jobs_run",
            jax_and_xgboost_train_jobs_run::tests(),
        )
        .tests("gang_train_jobs_run", gang_train_jobs_run::tests())
        .tests(
            "gangs_wait_for_their_crd",
            gangs_wait_for_their_crd::tests(),
        )
        .tests("mpi_train_jobs_run", mpi_train_jobs_run::tests())
        .tests(
            "torchtune_train_jobs_run",
            torchtune_train_jobs_run::tests(),
        )
        .run()
}
