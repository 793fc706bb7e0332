//! The controller on clusters that work.

mod a_missing_object_is_waited_for;
mod an_object_that_can_not_be_decoded_stops_no_other;
mod claims_are_allocated;
mod common;
mod errors_are_the_same_in_events;
mod flux_instances_run;
mod lookups_wake_their_train_jobs;
mod plugins_of_a_folder_are_used;
mod printed_roles_are_enough;
mod released_clients_work;
mod train_jobs_of_mpi_run;
mod train_jobs_reach_their_end;

use std::process::ExitCode;

use trainyard_cluster::Program;

fn main() -> ExitCode {
    Program::default()
        .tests(
            "train_jobs_reach_their_end",
            train_jobs_reach_their_end::tests(),
        )
        .tests(
            "plugins_of_a_folder_are_used",
            plugins_of_a_folder_are_used::tests(),
        )
        .tests(
            "printed_roles_are_enough",
            printed_roles_are_enough::tests(),
        )
        .tests("released_clients_work", released_clients_work::tests())
        .tests(
            "lookups_wake_their_train_jobs",
            lookups_wake_their_train_jobs::tests(),
        )
        .tests(
            "a_missing_object_is_waited_for",
            a_missing_object_is_waited_for::tests(),
        )
        .tests(
            "an_object_that_can_not_be_decoded_stops_no_other",
            an_object_that_can_not_be_decoded_stops_no_other::tests(),
        )
        .tests("claims_are_allocated", claims_are_allocated::tests())
        .tests(
            "errors_are_the_same_in_events",
            errors_are_the_same_in_events::tests(),
        )
        .tests("flux_instances_run", flux_instances_run::tests())
        .tests("train_jobs_of_mpi_run", train_jobs_of_mpi_run::tests())
        .run()
}
