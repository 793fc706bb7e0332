//! The controller on clusters that do not work, and controllers that are killed, misled or too many.

mod a_bad_plugin_harms_nobody;
mod a_killed_controller_converges;
mod a_queued_job_set_is_never_lost;
mod a_restart_writes_nothing;
mod a_resumed_job_has_todays_placement_alone;
mod a_running_job_set_is_frozen;
mod a_shaken_api_server_is_waited_out;
mod common;
mod hostile_train_jobs_stop_nobody;
mod keys_are_made_once;
mod kinds_may_come_later;
mod one_controller_leads_and_another_takes_over;
mod roles_are_what_is_called;
mod running_jobs_of_the_reference_are_adopted;
mod what_others_do_is_put_right;

use std::process::ExitCode;

use trainyard_cluster::Program;

fn main() -> ExitCode {
    Program::default()
        .tests(
            "what_others_do_is_put_right",
            what_others_do_is_put_right::tests(),
        )
        .tests(
            "a_queued_job_set_is_never_lost",
            a_queued_job_set_is_never_lost::tests(),
        )
        .tests(
            "a_killed_controller_converges",
            a_killed_controller_converges::tests(),
        )
        .tests(
            "a_shaken_api_server_is_waited_out",
            a_shaken_api_server_is_waited_out::tests(),
        )
        .tests(
            "a_running_job_set_is_frozen",
            a_running_job_set_is_frozen::tests(),
        )
        .tests(
            "a_resumed_job_has_todays_placement_alone",
            a_resumed_job_has_todays_placement_alone::tests(),
        )
        .tests(
            "a_bad_plugin_harms_nobody",
            a_bad_plugin_harms_nobody::tests(),
        )
        .tests(
            "one_controller_leads_and_another_takes_over",
            one_controller_leads_and_another_takes_over::tests(),
        )
        .tests(
            "running_jobs_of_the_reference_are_adopted",
            running_jobs_of_the_reference_are_adopted::tests(),
        )
        .tests(
            "roles_are_what_is_called",
            roles_are_what_is_called::tests(),
        )
        .tests(
            "a_restart_writes_nothing",
            a_restart_writes_nothing::tests(),
        )
        .tests(
            "hostile_train_jobs_stop_nobody",
            hostile_train_jobs_stop_nobody::tests(),
        )
        .tests("kinds_may_come_later", kinds_may_come_later::tests())
        .tests("keys_are_made_once", keys_are_made_once::tests())
        .run()
}
