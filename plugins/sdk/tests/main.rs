//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

mod configuration_gives_its_schema;
mod contract_is_the_hosts;
mod errors_name_the_method_that_was_called;
mod mock_shows_what_a_host_would;
mod names_are_the_hosts;
mod native_policies_end_as_in_the_sandbox;
