//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

// Tests may panic.
#![allow(clippy::panic, clippy::unwrap_used)]

mod config_types_derive_their_schema;
mod errors_name_the_method_that_was_called;
mod gangs_are_the_pods_that_start_together;
mod handles_ask_the_host_once;
mod mock_host_behaves_as_the_host;
mod native_plugins_fail_as_in_the_sandbox;
mod sdk_contract_matches_the_host;
mod sdk_names_match_the_host;
mod several_plugins_run_as_in_a_cluster;
mod yaml_errors_are_those_of_a_cluster;
mod yaml_is_rendered_as_by_the_command_line;
