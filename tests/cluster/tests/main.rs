//! The tests that need Kubernetes, in groups, of which the first argument names one: `cargo test --workspace --test cluster -- calm`.
//!
//! A group is what one command runs (`make test-cluster`, `make test-kueue`). One program
//! has them all, because most need the same code, which would otherwise be compiled and linked for each group.

// Tests may panic.
#![allow(clippy::indexing_slicing)]

/// Adds the tests of files to a program, each under the name of its file, and those of a second function after `+`.
macro_rules! files {
    ($program:expr, $($file:ident $(+ $more:ident)?),+ $(,)?) => {
        $program$(.tests(stringify!($file), $file::tests())$(.tests(stringify!($file), $file::$more()))?)+
    };
}

/// Returns tests, each under the name of its function.
macro_rules! tests {
    ($($test:ident),+ $(,)?) => {
        vec![$(trainyard_cluster::Test::new(stringify!($test), $test)),+]
    };
}

mod added_containers_are_admitted;
mod admission_answers_as_validate;
mod api_servers_trust_the_controllers_certificate;
mod bad_plugins_affect_only_their_own_train_jobs;
mod changed_lookups_trigger_a_reconcile;
mod chart_installs_jobset;
mod chart_installs_plugins;
mod chart_is_accepted_by_the_api_server;
mod chart_keeps_train_jobs;
mod charts_replace_each_other;
mod common;
mod containers_run_as_processes;
mod controller_restart_writes_nothing;
mod controller_survives_api_server_outages;
mod controller_waits_for_its_crds;
mod controllers_do_not_grow;
mod crds_install_and_merge;
mod dashboard_shows_what_a_controller_did;
mod documented_commands_work;
mod elastic_torch_goes_on_without_a_node;
mod events_report_the_same_errors_as_render;
mod external_changes_are_repaired;
mod flux_train_jobs_run;
mod foreign_objects_are_left_unchanged;
mod frameworks;
mod frameworks_form_their_groups;
mod gang_train_jobs_run;
mod gangs_do_not_deadlock;
mod gangs_wait_for_their_crd;
mod hostile_plugins_change_nothing_that_runs;
mod hostile_train_jobs_block_no_others;
mod interactive_cluster_stops_on_ctrl_c;
mod jax_and_xgboost_train_jobs_run;
mod jobset_outlives_helm_releases;
mod keys_are_generated_once;
mod killed_controllers_converge_after_restart;
mod kubectl_get_shows_why_train_jobs_wait;
mod kueue_admits_and_preempts_train_jobs;
mod kustomizations_install;
mod labeled_roles_give_only_what_their_author_has;
mod mpi_train_jobs_run;
mod objects_beside_a_job_set_follow_their_mode;
mod one_replica_leads_and_another_takes_over;
mod plugins_are_declared_in_the_cluster;
mod plugins_are_loaded_from_a_folder;
mod pods_are_refused_as_in_the_table;
mod pods_report_progress;
mod printed_roles_are_sufficient;
mod printed_roles_match_api_calls;
mod queued_job_sets_are_never_lost;
mod reference_clients_lose_nothing;
mod released_clients_work;
mod resource_claims_are_allocated;
mod restored_backups_are_noticed;
mod resumed_train_jobs_get_only_their_current_placement;
mod running_job_sets_are_frozen;
mod running_train_jobs_of_the_reference_are_adopted;
mod schema_agrees_with_the_api_server;
mod service_accounts_have_the_permissions_of_their_roles;
mod shipped_runtimes_are_accepted;
mod test_cluster_runs_job_sets;
mod test_cluster_survives_api_server_restarts;
mod test_control_plane_enforces_schemas;
mod test_proxy_injects_faults;
mod torchtune_train_jobs_run;
mod train_jobs_are_suspended_and_resumed;
mod train_jobs_move_over_and_back;
mod train_jobs_run_to_their_end;
mod train_jobs_that_cannot_start_say_why;
mod train_jobs_wait_for_missing_objects;
mod trainers_report_progress;
mod undecodable_objects_block_no_others;

use std::process::ExitCode;

use anyhow::{Result, bail};
use trainyard_cluster::Program;

type Group = (&'static str, fn() -> Result<Program>);

/// The groups, and what returns their tests.
const GROUPS: [Group; 13] = [
    ("api_server", api_server),
    ("calm", calm),
    ("disturbed", disturbed),
    ("outages", outages),
    ("again", again),
    ("harness", harness),
    ("handover", handover),
    ("load", load),
    ("gangs", gangs),
    ("kueue", kueue),
    ("plugins", plugins),
    ("chart", chart),
    ("frameworks", frameworks::program),
];

fn main() -> Result<ExitCode> {
    let group = Program::group();
    let found = GROUPS
        .iter()
        .find(|(name, _)| group.as_deref() == Some(name));
    let Some((_, program)) = found else {
        let names = GROUPS.map(|(name, _)| name).join(", ");
        bail!("the first argument names the group of tests to run, which is one of {names}");
    };
    Ok(program()?.run())
}

/// Tests that need only an API server: CRDs, schemas, the kustomizations of deploy/, and the admission of TrainJobs and pods.
fn api_server() -> Result<Program> {
    let program = Program::default()
        .tests(
            "schema_agrees_with_the_api_server",
            schema_agrees_with_the_api_server::tests()?,
        )
        .tests("crds_install_and_merge", crds_install_and_merge::tests()?)
        .tests(
            "reference_clients_lose_nothing",
            reference_clients_lose_nothing::tests()?,
        );
    Ok(files!(
        program,
        pods_are_refused_as_in_the_table,
        documented_commands_work + tests_in_turns,
        kustomizations_install,
        labeled_roles_give_only_what_their_author_has,
        added_containers_are_admitted,
        admission_answers_as_validate + tests_without_webhooks,
    ))
}

/// The controller on clusters that work.
fn calm() -> Result<Program> {
    Ok(files!(
        Program::default(),
        train_jobs_run_to_their_end,
        train_jobs_are_suspended_and_resumed,
        train_jobs_that_cannot_start_say_why,
        foreign_objects_are_left_unchanged,
        plugins_are_loaded_from_a_folder + tests_with_an_unknown_entry,
        printed_roles_are_sufficient,
        released_clients_work,
        pods_report_progress,
        changed_lookups_trigger_a_reconcile,
        train_jobs_wait_for_missing_objects,
        undecodable_objects_block_no_others,
        resource_claims_are_allocated,
        events_report_the_same_errors_as_render,
        kubectl_get_shows_why_train_jobs_wait,
        shipped_runtimes_are_accepted,
        flux_train_jobs_run,
        jax_and_xgboost_train_jobs_run,
        gang_train_jobs_run,
        gangs_wait_for_their_crd,
        mpi_train_jobs_run,
        torchtune_train_jobs_run,
    ))
}

/// Controllers whose objects are changed by others, whose calls are recorded, or whose plugins fail.
fn disturbed() -> Result<Program> {
    Ok(files!(
        Program::default(),
        external_changes_are_repaired,
        printed_roles_match_api_calls,
        controller_waits_for_its_crds,
        bad_plugins_affect_only_their_own_train_jobs,
        keys_are_generated_once,
    ))
}

/// What the tests of host/controller prove without Kubernetes, with it: `make test-again`.
fn again() -> Result<Program> {
    Ok(files!(
        Program::default(),
        queued_job_sets_are_never_lost,
        objects_beside_a_job_set_follow_their_mode,
        running_job_sets_are_frozen,
        resumed_train_jobs_get_only_their_current_placement,
        one_replica_leads_and_another_takes_over,
    ))
}

/// Controllers that are killed, and API servers that fail or lose their last writes.
fn outages() -> Result<Program> {
    Ok(files!(
        Program::default(),
        killed_controllers_converge_after_restart,
        controller_survives_api_server_outages,
        restored_backups_are_noticed,
        controllers_do_not_grow,
    ))
}

/// Tests of the harness itself: `make test-harness`, of which `make test-interactive` is a part.
fn harness() -> Result<Program> {
    Ok(files!(
        Program::default(),
        test_control_plane_enforces_schemas,
        service_accounts_have_the_permissions_of_their_roles,
        test_proxy_injects_faults,
        test_cluster_runs_job_sets,
        containers_run_as_processes,
        test_cluster_survives_api_server_restarts,
        interactive_cluster_stops_on_ctrl_c,
    ))
}

/// TrainJobs that move from the Kubeflow Trainer's controller or an earlier release to this one, and back: `make test-handover`. It builds the
/// Kubeflow Trainer's controller from its Go module.
fn handover() -> Result<Program> {
    Ok(files!(
        Program::default(),
        running_train_jobs_of_the_reference_are_adopted,
        train_jobs_move_over_and_back,
    ))
}

/// TrainJobs that are many or expensive: `make test-load`, which takes minutes of CPU.
fn load() -> Result<Program> {
    Ok(files!(
        Program::default(),
        controller_restart_writes_nothing,
        hostile_train_jobs_block_no_others,
    ))
}

/// Gangs that a real scheduler places: `make test-gangs`. It builds that scheduler from its Go module, which takes minutes.
fn gangs() -> Result<Program> {
    Ok(files!(Program::default(), gangs_do_not_deadlock,))
}

/// TrainJobs in queues of Kueue, with its own controller: `make test-kueue`. It builds Kueue from its Go module, which takes minutes.
fn kueue() -> Result<Program> {
    Ok(files!(
        Program::default(),
        kueue_admits_and_preempts_train_jobs,
    ))
}

/// Plugins of a registry, declared in the cluster: `make test-plugins`. It builds the registry and cosign from their Go modules, which takes
/// minutes.
fn plugins() -> Result<Program> {
    Ok(files!(
        Program::default(),
        hostile_plugins_change_nothing_that_runs,
        plugins_are_declared_in_the_cluster,
    ))
}

/// The Helm chart on a real API server: `make test-chart`. It builds helm from Go modules, which takes minutes.
fn chart() -> Result<Program> {
    Ok(files!(
        Program::default(),
        chart_is_accepted_by_the_api_server,
        api_servers_trust_the_controllers_certificate,
        chart_installs_jobset,
        chart_installs_plugins,
        chart_keeps_train_jobs,
        charts_replace_each_other,
        dashboard_shows_what_a_controller_did,
        jobset_outlives_helm_releases,
    ))
}
