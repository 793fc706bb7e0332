//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

mod a_bundle_replays;
mod a_controller_stops_when_it_is_told;
mod bundle;
mod cases_render_as_expected;
mod components_of_every_contract_still_run;
mod errors_name_the_field_that_was_written;
mod every_test_file_is_run;
mod examples_run_as_printed;
mod explain_names_who_set_a_field;
mod layers_are_kept;
mod links_lead_to_files;
mod live_train_jobs_are_explained_by_their_snapshot;
mod made_up_bundles_are_refused;
mod nothing_hidden_is_printed;
mod output_is_for_pipes;
mod output_is_stable;
mod the_deployment_is_whole;
mod the_guide_works;
mod the_map_is_true;
mod the_plan_can_be_looked_at;
mod the_policy_file_is_enforced;
mod the_reference_differs_as_listed;
mod validate_agrees_with_the_server;
mod validate_refuses_what_a_server_would;
mod weaknesses_are_explained;
mod what_yaml_costs_is_bounded;
