//! Controllers whose objects are changed by others, whose plugins fail, or that run beside another controller.

// Tests may panic.
#![allow(clippy::indexing_slicing)]

mod bad_plugins_affect_only_their_own_train_jobs;
mod common;
mod controller_waits_for_its_crds;
mod external_changes_are_repaired;
mod keys_are_generated_once;
mod objects_beside_a_job_set_follow_their_mode;
mod one_replica_leads_and_another_takes_over;
mod printed_roles_match_api_calls;
mod queued_job_sets_are_never_lost;
mod resumed_train_jobs_get_only_their_current_placement;
mod running_job_sets_are_frozen;

use std::process::ExitCode;

use trainyard_cluster::Program;

fn main() -> ExitCode {
    Program::default()
        .tests(
            "external_changes_are_repaired",
            external_changes_are_repaired::tests(),
        )
        .tests(
            "queued_job_sets_are_never_lost",
            queued_job_sets_are_never_lost::tests(),
        )
        .tests(
            "objects_beside_a_job_set_follow_their_mode",
            objects_beside_a_job_set_follow_their_mode::tests(),
        )
        .tests(
            "running_job_sets_are_frozen",
            running_job_sets_are_frozen::tests(),
        )
        .tests(
            "resumed_train_jobs_get_only_their_current_placement",
            resumed_train_jobs_get_only_their_current_placement::tests(),
        )
        .tests(
            "bad_plugins_affect_only_their_own_train_jobs",
            bad_plugins_affect_only_their_own_train_jobs::tests(),
        )
        .tests(
            "one_replica_leads_and_another_takes_over",
            one_replica_leads_and_another_takes_over::tests(),
        )
        .tests(
            "printed_roles_match_api_calls",
            printed_roles_match_api_calls::tests(),
        )
        .tests(
            "controller_waits_for_its_crds",
            controller_waits_for_its_crds::tests(),
        )
        .tests("keys_are_generated_once", keys_are_generated_once::tests())
        .run()
}
