//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

mod a_deleted_job_set_is_made_again;
mod a_reconcile_may_stop_at_any_call;
mod api_calls_are_bounded_and_counted;
mod configuration_files_are_read_strictly;
mod events_are_counted_and_limited;
mod forged_snapshots_lead_nowhere;
mod keys_are_made_once_and_shown_nowhere;
mod large_placements_delay_nobody_else;
mod lists_are_asked_for_once;
mod metrics_are_what_dashboards_read;
mod one_candidate_leads;
mod plugin_calls_have_spans;
mod plugins_that_exhaust_their_limits_are_left_alone;
mod probes_and_metrics_are_served;
mod slow_plugins_delay_nobody_else;
mod snapshots_may_be_deleted_or_marked_late;
mod stub;
mod suspended_means_that_no_pods_run;
mod the_queue_is_fair;
