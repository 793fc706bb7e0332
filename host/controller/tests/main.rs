//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

mod api_calls_are_bounded_and_counted;
mod configuration_files_are_parsed_strictly;
mod deleted_job_sets_are_recreated;
mod events_are_counted_and_limited;
mod forged_snapshots_have_no_effect;
mod keys_are_generated_once_and_never_shown;
mod large_placements_do_not_delay_other_namespaces;
mod lists_are_requested_once;
mod metrics_match_the_dashboards;
mod only_one_candidate_leads;
mod plugin_calls_have_spans;
mod plugins_that_exhaust_their_limits_are_paused;
mod probes_and_metrics_are_served;
mod queue_is_fair_to_namespaces;
mod reconciles_can_stop_at_any_api_call;
mod slow_plugins_do_not_delay_other_train_jobs;
mod snapshots_can_be_deleted_or_marked_late;
mod stub;
mod suspended_means_no_pods_run;
